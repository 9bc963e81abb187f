/* `aster doctor`: does this machine keep what Aster relies on? */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/output.h"
#include "cli/schema/sqlite_file.h"
#include "cli/store.h"
#include "platform/files.h"
#include "platform/host.h"

#define ROOM_LEAST ((uint64_t)64 << 20) /* of the file and its write-ahead log, with some to spare */

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL };

struct doctor {
    json_t *json; /* array, or NULL for lines */
    int failed;
};

static void report(struct doctor *doctor, enum level level, const char *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void report(struct doctor *doctor, enum level level, const char *check, const char *format, ...)
{
    static const char *const names[] = {"OK", "WARN", "FAIL"};
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    doctor->failed += level == LEVEL_FAIL;
    if (doctor->json != NULL) {
        json_array_append_new(doctor->json,
                              json_pack("{s:s, s:s, s:s}", "check", check, "level", names[level], "text", text));
    } else {
        printf("%-5s %-12s %s\n", names[level], check, text);
    }
}

static void check_clock(struct doctor *doctor)
{
    struct timespec step;
    struct timespec boot;
    struct timespec monotonic;
    if (clock_getres(CLOCK_BOOTTIME, &step) != 0 || clock_gettime(CLOCK_BOOTTIME, &boot) != 0 ||
        clock_gettime(CLOCK_MONOTONIC, &monotonic) != 0) {
        report(doctor, LEVEL_FAIL, "clock", "CLOCK_BOOTTIME does not work here; Aster needs Linux 2.6.39 or later");
        return;
    }
    int64_t suspended_s = boot.tv_sec - monotonic.tv_sec;
    report(doctor, step.tv_sec == 0 && step.tv_nsec <= 1000000 ? LEVEL_OK : LEVEL_WARN, "clock",
           "CLOCK_BOOTTIME in steps of %ld ns; this machine was suspended for %" PRId64 " s since it started",
           step.tv_nsec, suspended_s > 0 ? suspended_s : 0);
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    if (timer < 0) {
        report(doctor, LEVEL_FAIL, "timer", "no timer on CLOCK_BOOTTIME: leases cannot be renewed in time");
        return;
    }
    close(timer);
    report(doctor, LEVEL_OK, "timer", "timers on CLOCK_BOOTTIME work");
}

static void check_host(struct doctor *doctor)
{
    char boot_id[ASTER_BOOT_ID_SIZE];
    char identity[ASTER_PROCESS_IDENTITY_SIZE];
    struct aster_error error = ASTER_ERROR_INIT;
    int number = 0;
    if (aster_host_boot_id(boot_id, &error) == ASTER_OK) {
        report(doctor, LEVEL_OK, "boot id", "%s", boot_id);
    } else {
        report(doctor, LEVEL_FAIL, "boot id", "%s; mount /proc", error.message);
    }
    if (aster_host_process_identity(identity, &error) == ASTER_OK) {
        report(doctor, LEVEL_OK, "identity", "%s", identity);
    } else {
        report(doctor, LEVEL_FAIL, "identity", "%s", error.message);
    }
    bool works = prctl(PR_GET_PDEATHSIG, &number) == 0 && prctl(PR_GET_CHILD_SUBREAPER, &number) == 0;
    report(doctor, works ? LEVEL_OK : LEVEL_FAIL, "aster run",
           works ? "the kernel can end a command together with its parent"
                 : "the kernel cannot end a command together with its parent: a crash of aster run would leave it");
    bool visible = access("/proc/self/stat", R_OK) == 0;
    report(doctor, visible ? LEVEL_OK : LEVEL_WARN, "processes",
           visible ? "/proc shows who is left of a command"
                   : "/proc is not mounted: processes that leave a command's group are not found");
}

/* `path`: the store, or the directory that it would be made in. */
static void check_file_system(struct doctor *doctor, const char *path)
{
    uint64_t magic = 0;
    uint64_t bytes = 0;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_file_system_magic(path, &magic, &error) != ASTER_OK ||
        aster_file_system_free(path, &bytes, &error) != ASTER_OK) {
        report(doctor, LEVEL_FAIL, "file system", "%s", error.message);
        return;
    }
    const char *network = aster_filesystem_network_name(magic);
    const char *memory = aster_filesystem_memory_name(magic);
    if (network != NULL) {
        report(doctor, LEVEL_FAIL, "file system",
               "%s: shared between machines, where SQLite's WAL does not work; use a local disk", network);
    } else if (memory != NULL) {
        report(doctor, LEVEL_WARN, "file system",
               "%s is memory: after a reboot epochs begin again, and an old fence may pass one day; use a disk",
               memory);
    } else {
        report(doctor, LEVEL_OK, "file system", "local");
    }
    report(doctor, bytes >= ROOM_LEAST ? LEVEL_OK : LEVEL_WARN, "room", "%.1f MiB free%s", (double)bytes / 1048576,
           bytes >= ROOM_LEAST ? "" : ": once it is full nothing is granted or released; make room");
}

/* Where the store would be made: its directory must be there, or, for the default store, can be made as well. */
static void check_place(struct doctor *doctor, const struct aster_store_name *name)
{
    char directory[ASTER_STORE_PATH_MAX + 1];
    snprintf(directory, sizeof directory, "%s", name->path);
    do {
        char *slash = strrchr(directory, '/');
        slash[slash == directory ? 1 : 0] = '\0';
    } while (name->is_default && strcmp(directory, "/") != 0 && access(directory, F_OK) != 0 && errno == ENOENT);
    if (access(directory, W_OK | X_OK) != 0) {
        report(doctor, LEVEL_FAIL, "file", "%s cannot be made: %s: %s; name another store with --store", name->path,
               directory, strerrordesc_np(errno));
    } else {
        report(doctor, LEVEL_OK, "file", "%s is not there yet; the first lease makes it", name->path);
        check_file_system(doctor, directory);
    }
}

static void check_file(struct doctor *doctor, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0) {
        report(doctor, LEVEL_FAIL, "file", "%s: %s", path, strerrordesc_np(errno));
        return;
    }
    if (facts.st_uid != geteuid()) {
        report(doctor, LEVEL_WARN, "file", "%s belongs to another user: identities in it are what writers say", path);
    } else if ((facts.st_mode & 077) != 0) {
        report(doctor, LEVEL_WARN, "file",
               "%s has mode %04o: others can read or write it; chmod 600 it unless you share it", path,
               (unsigned)facts.st_mode & 07777U);
    } else {
        report(doctor, LEVEL_OK, "file", "%s is yours alone", path);
    }
    check_file_system(doctor, path);
}

static bool count_row(const struct aster_snapshot *row, void *user)
{
    int64_t *count = user;
    (void)row;
    (*count)++;
    return true;
}

/* A row that was changed by something else than Aster is noticed only when it is read. */
static void check_rows(struct doctor *doctor, struct aster_serializer *serializer, const char *store)
{
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t count = 0;
    int64_t start_ns = aster_clock_now_ns(aster_clock_system());
    if (aster_list(serializer, aster_text(NULL), count_row, &count, &error) != ASTER_OK) {
        report(doctor, LEVEL_FAIL, "store", "%s", error.message);
        return;
    }
    report(doctor, LEVEL_OK, "store", "%s: %" PRId64 " intact rows, read in %.1f ms", store, count,
           (double)(aster_clock_now_ns(aster_clock_system()) - start_ns) / 1e6);
}

static void check_guards(struct doctor *doctor, const char *path)
{
    const struct aster_schema_target every = {NULL, NULL, NULL};
    struct aster_schema_report found = {.json = json_array()};
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_schema_file_verify(path, &every, &found, &error) != ASTER_OK) {
        report(doctor, LEVEL_FAIL, "guards", "%s", error.message);
    } else {
        report(doctor, found.broken == 0 ? LEVEL_OK : LEVEL_FAIL, "guards", "%d protected tables, %d not intact%s",
               found.checked, found.broken,
               found.broken == 0 ? "" : "; `aster schema verify sqlite` says which and what to do");
    }
    json_decref(found.json);
}

static void check_server(struct doctor *doctor, const struct aster_cli *cli, const struct aster_store_name *name)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_store_open_quietly(cli->store, cli->node, ASTER_STORE_MUST_EXIST, NULL, &serializer, &error) !=
        ASTER_OK) {
        report(doctor, LEVEL_FAIL, "store", "%s", error.message);
        return;
    }
    check_rows(doctor, serializer, name->shown);
    aster_serializer_destroy(serializer);
}

static void check_store(struct doctor *doctor, const struct aster_cli *cli)
{
    struct aster_store_name name;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_store_resolve(cli->store, &name, &error) != ASTER_OK) {
        report(doctor, LEVEL_FAIL, "store", "%s", error.message);
        return;
    }
    if (name.kind == ASTER_STORE_MEMORY) {
        report(doctor, LEVEL_WARN, "store", "mem: excludes nobody outside one process; use sqlite:PATH");
        return;
    }
    if (name.kind == ASTER_STORE_GRANTOR || name.kind == ASTER_STORE_POSTGRES) {
        check_server(doctor, cli, &name);
        return;
    }
    if (access(name.path, F_OK) != 0 && errno == ENOENT) {
        check_place(doctor, &name);
        return;
    }
    check_file(doctor, name.path);
    struct aster_serializer *serializer = NULL;
    if (aster_store_open_quietly(cli->store, cli->node, ASTER_STORE_MUST_EXIST, NULL, &serializer, &error) !=
        ASTER_OK) {
        report(doctor, LEVEL_FAIL, "store", "%s", error.message);
        return;
    }
    check_rows(doctor, serializer, name.shown);
    aster_serializer_destroy(serializer);
    check_guards(doctor, name.path);
}

static const struct aster_option options[] = {ASTER_OPTION_END};

static int run(const struct aster_cli *cli, const void *arguments, int argc, char **argv)
{
    (void)arguments;
    (void)argc;
    (void)argv;
    struct doctor doctor = {cli->json ? json_array() : NULL, 0};
    check_clock(&doctor);
    check_host(&doctor);
    check_store(&doctor, cli);
    int code = doctor.failed == 0 ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
    if (cli->json) {
        int failed = aster_json_print(doctor.json, JSON_INDENT(1), stdout);
        return failed != ASTER_EXIT_OK ? failed : code;
    }
    return code;
}

const struct aster_command aster_command_doctor = {
    .name = "doctor",
    .summary = "Check that this machine and the store keep what Aster relies on",
    .operands = "",
    .details = "Exits 1 when a check fails. It changes nothing.",
    .example = "aster doctor",
    .options = options,
    .run = run,
};
