#include "platform/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

aster_status aster_private_directory(const char *directory, struct aster_error *error)
{
    if (mkdir(directory, 0700) != 0 && errno != EEXIST) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create the directory %s", directory);
    }
    return ASTER_OK;
}

static bool write_all(int fd, struct aster_bytes content)
{
    const char *at = content.data;
    size_t left = content.size;
    while (left > 0) {
        ssize_t written = write(fd, at, left);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        left -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static void sync_directory_of(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(directory, sizeof directory, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

aster_status aster_private_file_draft(const char *path, struct aster_bytes content, mode_t mode,
                                      char temporary[ASTER_PRIVATE_PATH_MAX], struct aster_error *error)
{
    if (snprintf(temporary, ASTER_PRIVATE_PATH_MAX, "%s.XXXXXX", path) >= ASTER_PRIVATE_PATH_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path %.100s... is too long", path);
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create %s", temporary);
    }
    bool written = write_all(fd, content) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
    int code = errno;
    close(fd);
    if (!written) {
        unlink(temporary);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot write %s", path);
    }
    return ASTER_OK;
}

aster_status aster_private_file_place(const char *temporary, const char *path, bool replace, struct aster_error *error)
{
    /* link() refuses an existing name in the same step in which it would create it. */
    bool placed = (replace ? rename(temporary, path) : link(temporary, path)) == 0;
    int code = errno;
    if (!placed || !replace) {
        unlink(temporary);
    }
    if (!placed && code == EEXIST) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s exists and is not replaced: choose another place or remove it", path);
    }
    if (!placed) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot write %s", path);
    }
    sync_directory_of(path);
    return ASTER_OK;
}

void aster_private_file_discard(const char *temporary)
{
    unlink(temporary);
}

aster_status aster_private_file_write(const char *path, struct aster_bytes content, mode_t mode, bool replace,
                                      struct aster_error *error)
{
    char temporary[ASTER_PRIVATE_PATH_MAX];
    aster_status status = aster_private_file_draft(path, content, mode, temporary, error);
    return status == ASTER_OK ? aster_private_file_place(temporary, path, replace, error) : status;
}

static aster_status check_secret(const char *path, const struct stat *facts, struct aster_error *error)
{
    if (!S_ISREG(facts->st_mode)) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is not a regular file", path);
    }
    if (facts->st_uid != geteuid() && facts->st_uid != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s belongs to user %u: it must belong to the user that runs this, or root", path,
                               (unsigned)facts->st_uid);
    }
    if ((facts->st_mode & 077) != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s has mode %04o, others can reach it: chmod 600 %s", path,
                               (unsigned)(facts->st_mode & 07777), path);
    }
    return ASTER_OK;
}

static aster_status read_open(int fd, const char *path, size_t max, char **content, size_t *size,
                              struct aster_error *error)
{
    char *memory = malloc(max + 2);
    if (memory == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory to read %s", path);
    }
    size_t have = 0;
    while (have <= max) {
        ssize_t got = read(fd, memory + have, max + 1 - have);
        if (got < 0 && errno != EINTR) {
            int code = errno;
            free(memory);
            return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot read %s", path);
        }
        if (got == 0) {
            break;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    if (have > max) {
        free(memory);
        return aster_error_set(error, ASTER_ERR_LIMIT, "%s is larger than %zu bytes: it is not what it should be", path,
                               max);
    }
    memory[have] = '\0';
    *content = memory;
    *size = have;
    return ASTER_OK;
}

aster_status aster_private_file_read(const char *path, size_t max, bool secret, char **content, size_t *size,
                                     struct aster_error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat facts;
    if (fd < 0 || fstat(fd, &facts) != 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot open %s", path);
    }
    aster_status status = secret ? check_secret(path, &facts, error) : ASTER_OK;
    if (status == ASTER_OK) {
        status = read_open(fd, path, max, content, size, error);
    }
    close(fd);
    return status;
}
