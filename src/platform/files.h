/* Files and pauses: what the stores need from the operating system beside their database library. */
#ifndef PLATFORM_FILES_H
#define PLATFORM_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"

/* Create `path`, empty and with mode 0600, if nothing is there; *created tells. Errors: ASTER_ERR_IO. */
aster_status aster_file_create_private(const char *path, bool *created, struct aster_error *error);

/* Refuse what is there and no regular file: a directory, a device, a pipe. Errors: ASTER_ERR_INVALID, ASTER_ERR_IO. */
aster_status aster_file_check_regular(const char *path, struct aster_error *error);

/* What makes two paths the same file. Errors: ASTER_ERR_IO. */
struct aster_file_identity {
    uint64_t device;
    uint64_t inode;
};
aster_status aster_file_identify(const char *path, struct aster_file_identity *identity, struct aster_error *error);

/* statfs' f_type of the file system that `path` is on. Errors: ASTER_ERR_IO. */
aster_status aster_file_system_magic(const char *path, uint64_t *magic, struct aster_error *error);

/* Bytes that this user may still write to the file system that `path` is on. Errors: ASTER_ERR_IO. */
aster_status aster_file_system_free(const char *path, uint64_t *bytes, struct aster_error *error);

/* The process, of this PID namespace, that has a part of `path` locked for writing (fcntl), and its program. False =
 * nobody, or it cannot be seen. Opens no descriptor of the file: closing that would drop this process's own locks. */
struct aster_lock_owner {
    long pid;
    char name[64]; /* printable */
};
bool aster_file_lock_owner(const char *path, struct aster_lock_owner *owner);

/* Stop the calling thread for `ns` nanoseconds, or less when a signal comes. */
void aster_pause_ns(int64_t ns);

#endif
