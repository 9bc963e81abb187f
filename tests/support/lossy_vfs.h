/* A SQLite VFS over the default one that knows what a power cut leaves behind: each file as of its last sync, plus any
 * part of what was written since. It can also act as a full disk, a disk whose syncs fail, or a slow one. Nothing is
 * really synced. Becomes the default VFS of the process; thread-safe. */
#ifndef SUPPORT_LOSSY_VFS_H
#define SUPPORT_LOSSY_VFS_H

#include <stdbool.h>
#include <stdint.h>

/* Files whose name ends in `name` or `name`-wal are watched; others pass through. */
void lossy_vfs_install(const char *name);
/* Forget all files; every fault off. No file may be open. */
void lossy_vfs_reset(void);

/* Write what a power cut at this instant could leave of the database and its log to `path` and `path`-wal: of the
 * unsynced writes, `keep_percent` on average survive, some of them torn. */
void lossy_vfs_cut(const char *path, unsigned keep_percent, uint64_t seed);

/* Do that inside the `calls`-th write or sync from now, before it takes effect. lossy_vfs_fired() tells whether it has
 * happened, and disarms. */
void lossy_vfs_cut_after(int calls, const char *path, unsigned keep_percent, uint64_t seed);
bool lossy_vfs_fired(void);

enum lossy_fault {
    LOSSY_NO_FAULT,
    LOSSY_NO_GROWTH, /* no room for larger files: SQLITE_FULL */
    LOSSY_NO_WRITE,  /* no room for any write: SQLITE_FULL */
    LOSSY_NO_SYNC    /* syncs fail: SQLITE_IOERR_FSYNC */
};
void lossy_vfs_set_fault(enum lossy_fault fault);

void lossy_vfs_set_sync_us(int64_t us);
int64_t lossy_vfs_syncs(void);

#endif
