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

/* Says that the files beside it are a demo's own. */
#define MARKER ".aster-demo"

#define NODE(name) "grantor/" name "/node.key", "grantor/" name "/node.crt", "grantor/" name "/endpoint.secret"

/* Everything that the demo ever creates there. */
static const char *const files[] = {MARKER,
                                    "invoices.db",
                                    "invoices.db-wal",
                                    "invoices.db-shm",
                                    "control.db",
                                    "control.db-wal",
                                    "control.db-shm",
                                    "rendered-by-A.pdf",
                                    "rendered-by-B.pdf",
                                    "control-by-A.pdf",
                                    "control-by-B.pdf",
                                    "invoice-in-store.pdf",
                                    "demo-timeline.svg",
                                    "orders.db",
                                    "orders.db-wal",
                                    "orders.db-shm",
                                    "asterd.log",
                                    "grantor/asterd.conf",
                                    "grantor/journal.db",
                                    "grantor/journal.db-wal",
                                    "grantor/journal.db-shm",
                                    NODE("asterd"),
                                    NODE("worker-A"),
                                    NODE("worker-B"),
                                    NODE("operator"),
                                    NODE("stranger")};

/* Inner ones first. */
static const char *const folders[] = {"grantor/asterd",   "grantor/worker-A", "grantor/worker-B",
                                      "grantor/operator", "grantor/stranger", "grantor"};

static void remove_files(int directory_fd)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        unlinkat(directory_fd, files[i], 0);
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        unlinkat(directory_fd, folders[i], AT_REMOVEDIR);
    }
}

/* The files of an earlier demo go; anybody else's of the same name stay, and the demo does not start. */
static aster_status claim(int directory_fd, const char *directory, struct aster_error *error)
{
    bool marked = faccessat(directory_fd, MARKER, F_OK, 0) == 0;
    for (size_t i = 0; !marked && i < sizeof files / sizeof files[0]; i++) {
        if (faccessat(directory_fd, files[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            char shown[ASTER_PRINTABLE_MAX];
            return aster_error_set(error, ASTER_ERR_INVALID,
                                   "%s holds a file %s that is not the demo's; name a new directory with --out",
                                   aster_printable(aster_text(directory), shown), files[i]);
        }
    }
    remove_files(directory_fd);
    int fd = openat(directory_fd, MARKER, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write to %s; name another directory with --out",
                                  aster_printable(aster_text(directory), shown));
    }
    close(fd);
    return ASTER_OK;
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
        char shown[ASTER_PRINTABLE_MAX];
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make the directory %s given to --out",
                                  aster_printable(aster_text(wanted), shown));
    }
    int fd = open(wanted, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || realpath(wanted, absolute) == NULL) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot use the directory given to --out");
    }
    aster_status status = claim(fd, absolute, error);
    close(fd);
    if (status != ASTER_OK) {
        return status;
    }
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
