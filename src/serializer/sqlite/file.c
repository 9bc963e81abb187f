#include "serializer/sqlite/file.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/files.h"
#include "serializer/sqlite/filesystem.h"

aster_status aster_database_path(const char *path, const char *what, char **copy, struct aster_error *error)
{
    if (path == NULL || path[0] == '\0') {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path of the %s is empty: name a file", what);
    }
    if (strcmp(path, ":memory:") == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "\":memory:\" is no file: use aster_memory_open() for leases within one process");
    }
    size_t size = strlen(path) + sizeof "./";
    char *made = malloc(size);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a path");
    }
    snprintf(made, size, "%s%s", path[0] == '/' ? "" : "./", path);
    *copy = made;
    return ASTER_OK;
}

aster_status aster_database_file_prepare(const struct aster_database_file *file, struct aster_error *error)
{
    /* Closing a descriptor of a database drops all locks that this process has on it: nobody else of this process may
     * open the file between its creation and the close. */
    static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;
    bool created = false;
    aster_status status = ASTER_OK;
    if (file->create) {
        pthread_mutex_lock(&creating);
        status = aster_file_create_private(file->path, &created, error);
        pthread_mutex_unlock(&creating);
    }
    if (status == ASTER_OK) {
        status = aster_file_check_regular(file->path, error);
    }
    if (status == ASTER_OK && !file->allow_network_filesystem) {
        status = aster_filesystem_check(file->path, file->network_advice, error);
    }
    if (status != ASTER_OK && created) {
        unlink(file->path);
    }
    return status;
}
