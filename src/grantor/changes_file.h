/* The file that keeps what operators changed: read as a whole, replaced in one step, and never written over what
 * somebody else wrote meanwhile. One thread at a time. */
#ifndef GRANTOR_CHANGES_FILE_H
#define GRANTOR_CHANGES_FILE_H

#include "grantor/overlay.h"
#include "platform/private_file.h"

struct grantor_changes_file {
    char *path;  /* NULL = there is no place for one */
    char *known; /* its content as it was last read or written; NULL = no file */
    size_t known_size;
    char *drafted; /* the content of the draft */
    size_t drafted_size;
    char temporary[ASTER_PRIVATE_PATH_MAX];
};

bool grantor_changes_file_init(struct grantor_changes_file *file, const char *path); /* false when out of memory */
void grantor_changes_file_fini(struct grantor_changes_file *file);

/* No file is an empty overlay. Differences to the settings are told to the log. Errors: ASTER_ERR_INVALID with file and
 * line, or when others may write to it; ASTER_ERR_IO; ASTER_ERR_NOMEM. */
aster_status grantor_changes_file_read(struct grantor_changes_file *file, const struct grantor_settings *settings,
                                       struct grantor_overlay **overlay, struct aster_error *error);

/* Write the next content beside it, synced. Errors: ASTER_ERR_REFUSED (no place, or it was changed by somebody else),
 * ASTER_ERR_IO (a full disk, above all), ASTER_ERR_NOMEM. */
aster_status grantor_changes_file_draft(struct grantor_changes_file *file, const struct grantor_overlay *overlay,
                                        struct aster_error *error);
/* Put the draft in its place. The draft is used up, also on failure. Errors: ASTER_ERR_IO. */
aster_status grantor_changes_file_place(struct grantor_changes_file *file, struct aster_error *error);
void grantor_changes_file_discard(struct grantor_changes_file *file);

#endif
