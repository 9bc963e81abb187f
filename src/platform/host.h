/* Facts about the host and the file system. */
#ifndef PLATFORM_HOST_H
#define PLATFORM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "aster/status.h"

#define ASTER_BOOT_ID_SIZE 37 /* a UUID's 36 characters and the NUL */

/* The kernel's random id of this boot. Errors: ASTER_ERR_IO. Thread-safe. */
aster_status aster_host_boot_id(char boot_id[ASTER_BOOT_ID_SIZE], struct aster_error *error);

/* By how much CLOCK_BOOTTIME of this process's time namespace is ahead of the host's; 0 outside of one. Thread-safe. */
int64_t aster_host_boottime_offset_ns(void);

/* An identity that no other process has: "user@host:pid:random". Fits ASTER_IDENTITY_MAX. Errors: ASTER_ERR_IO. */
#define ASTER_PROCESS_IDENTITY_SIZE 257
aster_status aster_host_process_identity(char identity[ASTER_PROCESS_IDENTITY_SIZE], struct aster_error *error);

/* Does statfs' f_type `magic` belong to a file system shared between machines (NFS, SMB, 9p, Ceph, FUSE, ...)?
 * Returns its name, or NULL for a local one. Pure. */
const char *aster_filesystem_network_name(uint64_t magic);
/* The same for a file system that is memory and empty after a reboot (tmpfs, ramfs). Pure. */
const char *aster_filesystem_memory_name(uint64_t magic);

#endif
