/* Publishing a file under a fence: the protected resource is a path. A worker that lost its lease does not replace the
 * file any more, whatever it still believes.
 *
 * What is compared: the fence of the last publication, kept beside the file in PATH.fence, so an older epoch never
 * replaces a newer one, on any store; and the store's own row. With a store that has fenced writes (memory, SQLite) the
 * file is put in place inside the store's atomic step, and nobody can be granted between the check and the write. With
 * a grantor the row is looked at just before: a lease that ends in that moment is noticed only once its successor has
 * published. Programs that write PATH without this function are not held to anything: give the directory to the user
 * that the publishers run as. docs/files.md has the recipe. */
#ifndef ASTER_PUBLISH_H
#define ASTER_PUBLISH_H

#include "aster/serializer.h"

ASTER_BEGIN_DECLS

struct aster_publish_options {
    size_t struct_size;
    struct aster_serializer *serializer; /* borrowed; NULL = only PATH.fence is compared */
    int64_t lock_timeout_ms;             /* how long to wait for another publisher of this path; 0 = 10000 */
};

#define ASTER_PUBLISH_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        sizeof(struct aster_publish_options), NULL, 0                                                                  \
    }

struct aster_publication {
    struct aster_verdict verdict; /* reason NONE = the file is in place and durable; else nothing changed */
    bool in_step;                 /* the store's row was compared in the same atomic step as the write */
};

/* Replace `target` by a copy of `source`, or leave both as they are. Readers see the old file or the new one, never a
 * part, also after a crash; a new file gets the mode of the source within the umask, a replaced one keeps its mode.
 * `writer` is the identity that the caller has authenticated. options may be NULL. Beside the file are kept
 * PATH.fence, the fence in the text form of aster_fence_format(), and PATH.lock, empty. Blocks for the disk and for
 * other publishers. Thread-safe.
 * Errors: ASTER_ERR_INVALID (a name; `target` is no regular file), ASTER_ERR_IO (which file, and why), ASTER_ERR_BUSY
 * (another publisher kept the lock), ASTER_ERR_CORRUPT (PATH.fence), and those of the serializer. */
ASTER_API aster_status aster_publish_file(const char *source, const char *target, const struct aster_fence *fence,
                                          struct aster_bytes writer, const struct aster_publish_options *options,
                                          struct aster_publication *publication, struct aster_error *error);

ASTER_END_DECLS

#endif
