#include "cli/demo/output_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

/* Everything that the demo ever creates there. */
static const char *const files[] = {"invoices.db",       "invoices.db-wal",      "invoices.db-shm",
                                    "control.db",        "control.db-wal",       "control.db-shm",
                                    "rendered-by-A.pdf", "rendered-by-B.pdf",    "control-by-A.pdf",
                                    "control-by-B.pdf",  "invoice-in-store.pdf", "demo-timeline.svg"};

static void remove_files(int directory_fd)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlinkat(directory_fd, files[i], 0);
    }
}

static aster_status make_fresh(char path[PATH_MAX], struct aster_error *error)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/aster-demo-XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(path) == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make a directory in TMPDIR; name one with --out");
    }
    return ASTER_OK;
}

aster_status aster_demo_directory_open(const char *wanted, char directory[DEMO_PATH_MAX], struct aster_error *error)
{
    char path[PATH_MAX];
    char absolute[PATH_MAX];
    if (wanted == NULL) {
        aster_status status = make_fresh(path, error);
        if (status != ASTER_OK) {
            return status;
        }
        wanted = path;
    } else if (mkdir(wanted, 0777) != 0 && errno != EEXIST) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make the directory given to --out");
    }
    int fd = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || realpath(wanted, absolute) == NULL) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot use the directory given to --out");
    }
    remove_files(fd);
    close(fd);
    if (strlen(absolute) >= DEMO_PATH_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the output directory's path is longer than %d bytes",
                               DEMO_PATH_MAX - 1);
    }
    memcpy(directory, absolute, strlen(absolute) + 1);
    return ASTER_OK;
}

void aster_demo_directory_remove(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        remove_files(fd);
        close(fd);
        rmdir(directory);
    }
}
