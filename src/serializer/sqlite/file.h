/* The file of a database, before SQLite opens it: its path, its making, and where it may be. */
#ifndef SQLITE_FILE_H
#define SQLITE_FILE_H

#include <stdbool.h>

#include "aster/status.h"

/* A copy of `path`, to be freed, that SQLite takes for the name of a file whatever it looks like. `what` names the
 * thing in messages ("store"). Errors: ASTER_ERR_INVALID (empty, ":memory:"), ASTER_ERR_NOMEM. */
aster_status aster_database_path(const char *path, const char *what, char **copy, struct aster_error *error);

struct aster_database_file {
    const char *path;
    bool create;                   /* make an empty file, for this user only, if nothing is there */
    bool allow_network_filesystem; /* else refused, with `network_advice` */
    const char *network_advice;
};

/* Leaves no new file behind when it fails. Errors: ASTER_ERR_INVALID (no regular file, a network file system, by name),
 * ASTER_ERR_IO. */
aster_status aster_database_file_prepare(const struct aster_database_file *file, struct aster_error *error);

#endif
