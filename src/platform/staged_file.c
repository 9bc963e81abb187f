#include "platform/staged_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/entropy.h"

#define MARK ".aster-"
#define LEFT_OVER_SECONDS 86400
#define COPY_SIZE (64 * 1024)

/* "/a/b" -> "/a/" and "b"; "b" -> "./" and "b". */
static const char *split(const char *path, char directory[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(directory, PATH_MAX, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 2, slash != NULL ? path : "./");
    return slash != NULL ? slash + 1 : path;
}

static aster_status check_target(const char *target, mode_t *mode, struct aster_error *error)
{
    struct stat facts;
    *mode = 0;
    if (lstat(target, &facts) != 0) {
        return errno == ENOENT ? ASTER_OK : aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot look at %s", target);
    }
    if (!S_ISREG(facts.st_mode)) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %s: name the file itself", target,
                               S_ISDIR(facts.st_mode)   ? "a directory"
                               : S_ISLNK(facts.st_mode) ? "a symbolic link"
                                                        : "no regular file");
    }
    *mode = facts.st_mode & 07777;
    return ASTER_OK;
}

static void remove_left_overs(const char *directory, const char *name)
{
    char prefix[NAME_MAX + sizeof MARK + 1];
    int length = snprintf(prefix, sizeof prefix, ".%s" MARK, name);
    DIR *entries = opendir(directory);
    struct stat facts;
    for (struct dirent *entry = NULL; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (strncmp(entry->d_name, prefix, (size_t)length) == 0 &&
            fstatat(dirfd(entries), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            time(NULL) - facts.st_mtime > LEFT_OVER_SECONDS) {
            unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        data += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool copy(int from, int to)
{
    char buffer[COPY_SIZE];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got == 0) {
            return true;
        }
        if ((got < 0 && errno != EINTR) || (got > 0 && !write_all(to, buffer, (size_t)got))) {
            return false;
        }
    }
}

static aster_status fill(const char *path, int from, mode_t mode, struct aster_error *error)
{
    struct stat source;
    bool keeps_mode = mode == 0 && fstat(from, &source) == 0 && S_ISREG(source.st_mode);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, keeps_mode ? source.st_mode & 0777 : 0666);
    if (fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create %s", path);
    }
    bool written = (mode == 0 || fchmod(fd, mode) == 0) && copy(from, fd) && fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && written) {
        written = false;
        code = errno;
    }
    return written ? ASTER_OK : aster_error_set_os(error, ASTER_ERR_IO, code, "cannot write %s", path);
}

aster_status aster_staged_file_copy(struct aster_staged_file *staged, const char *source, const char *target,
                                    struct aster_error *error)
{
    char directory[PATH_MAX];
    uint64_t number = 0;
    mode_t mode;
    staged->path[0] = '\0';
    if (snprintf(staged->target, sizeof staged->target, "%s", target) >= (int)sizeof staged->target) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path %.100s... is too long", target);
    }
    const char *name = split(target, directory);
    aster_status status = name[0] == '\0' ? aster_error_set(error, ASTER_ERR_INVALID, "%s names no file", target)
                                          : check_target(target, &mode, error);
    if (status != ASTER_OK) {
        return status;
    }
    int from = open(source, O_RDONLY | O_CLOEXEC);
    if (from < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot open %s", source);
    }
    remove_left_overs(directory, name);
    status = aster_entropy_fill(&number, sizeof number, error);
    if (status == ASTER_OK && snprintf(staged->path, sizeof staged->path, "%s.%s" MARK "%016" PRIx64, directory, name,
                                       number) >= (int)sizeof staged->path) {
        staged->path[0] = '\0';
        status = aster_error_set(error, ASTER_ERR_INVALID, "the path %.100s... is too long", target);
    }
    if (status == ASTER_OK) {
        status = fill(staged->path, from, mode, error);
    }
    close(from);
    if (status != ASTER_OK) {
        aster_staged_file_discard(staged);
    }
    return status;
}

aster_status aster_staged_file_place(struct aster_staged_file *staged, struct aster_error *error)
{
    char directory[PATH_MAX];
    split(staged->target, directory);
    if (rename(staged->path, staged->target) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot put %s in place", staged->target);
    }
    staged->path[0] = '\0';
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int code = errno;
    if (fd >= 0) {
        close(fd);
    }
    return synced ? ASTER_OK
                  : aster_error_set_os(error, ASTER_ERR_INDETERMINATE, code,
                                       "%s is in place, but its directory could not be made durable", staged->target);
}

void aster_staged_file_discard(struct aster_staged_file *staged)
{
    if (staged->path[0] != '\0') {
        unlink(staged->path);
        staged->path[0] = '\0';
    }
}
