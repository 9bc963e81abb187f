#include "platform/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

aster_status aster_file_create_private(const char *path, bool *created, struct aster_error *error)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno != EEXIST) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create %s%s", path,
                                  errno == ENOENT ? "; make its directory first" : "");
    }
    *created = fd >= 0;
    if (fd >= 0) {
        close(fd);
    }
    return ASTER_OK;
}

aster_status aster_file_check_regular(const char *path, struct aster_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot look at %s", path);
    }
    if (!S_ISREG(facts.st_mode)) {
        return aster_error_set(error, ASTER_ERR_INVALID, "%s is %s; name a file", path,
                               S_ISDIR(facts.st_mode) ? "a directory" : "not a regular file");
    }
    return ASTER_OK;
}

aster_status aster_file_identify(const char *path, struct aster_file_identity *identity, struct aster_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot look at %s", path);
    }
    *identity = (struct aster_file_identity){(uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
    return ASTER_OK;
}

aster_status aster_file_system_magic(const char *path, uint64_t *magic, struct aster_error *error)
{
    struct statfs facts;
    if (statfs(path, &facts) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot see what file system %s is on", path);
    }
    *magic = (uint64_t)facts.f_type & UINT32_MAX; /* f_type is signed on some architectures */
    return ASTER_OK;
}

aster_status aster_file_system_free(const char *path, uint64_t *bytes, struct aster_error *error)
{
    struct statfs facts;
    if (statfs(path, &facts) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot tell how much room the file system has");
    }
    *bytes = (uint64_t)facts.f_bavail * (uint64_t)facts.f_bsize;
    return ASTER_OK;
}

void aster_pause_ns(int64_t ns)
{
    const struct timespec pause = {ns / 1000000000, ns % 1000000000};
    nanosleep(&pause, NULL);
}
