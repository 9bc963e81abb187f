/* aster-conformance [memory|sqlite|example]...: run the suite over the serializers that Aster ships. No argument: all.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/memory.h"
#include "aster/sqlite.h"
#include "aster/sys/conformance.h"

#define OWN_SERIALIZER_WITHOUT_MAIN
#include "../../examples/own_serializer.c"

static aster_status memory_open(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                                struct aster_error *error)
{
    (void)user;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.clock = clock;
    return aster_memory_open(&options, serializer, error);
}

static aster_status memory_restart(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    (void)user;
    return aster_memory_restart(*serializer, error);
}

/* A fresh file for every scenario. */
struct sqlite_place {
    char directory[64];
    char path[128];
    int files;
    const struct aster_clock *clock;
};

static void remove_files(const struct sqlite_place *place)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%s", place->path, suffixes[i]);
        unlink(path);
    }
}

static aster_status sqlite_reopen(struct sqlite_place *place, struct aster_serializer **serializer,
                                  struct aster_error *error)
{
    struct aster_sqlite_options options = ASTER_SQLITE_OPTIONS_INIT;
    options.clock = place->clock;
    return aster_sqlite_open(place->path, &options, serializer, error);
}

static aster_status sqlite_open(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                                struct aster_error *error)
{
    struct sqlite_place *place = user;
    if (place->files > 0) {
        remove_files(place);
    }
    snprintf(place->path, sizeof place->path, "%s/%d.db", place->directory, place->files++);
    place->clock = clock;
    return sqlite_reopen(place, serializer, error);
}

/* What a restart of the machine is to the file: the rows were granted under another boot. */
static aster_status sqlite_restart(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    struct sqlite_place *place = user;
    aster_serializer_destroy(*serializer);
    *serializer = NULL;
    sqlite3 *db = NULL;
    int code = sqlite3_open(place->path, &db);
    if (code == SQLITE_OK) {
        code = sqlite3_exec(db, "UPDATE aster_lease SET boot_id = 'another boot'", NULL, NULL, NULL);
    }
    if (code != SQLITE_OK) {
        snprintf(error->message, sizeof error->message, "cannot rewrite the boot id: %s", sqlite3_errmsg(db));
    }
    sqlite3_close(db);
    return code == SQLITE_OK ? sqlite_reopen(place, serializer, error) : ASTER_ERR_IO;
}

static aster_status run_sqlite(FILE *out)
{
    const char *base = getenv("TMPDIR");
    struct sqlite_place place = {.files = 0};
    snprintf(place.directory, sizeof place.directory, "%.30s/aster-conformance-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(place.directory) == NULL) {
        perror("aster-conformance: cannot make a temporary directory");
        return ASTER_ERR_IO;
    }
    const struct aster_conformance_subject subject = {sizeof subject, "sqlite", sqlite_open,
                                                      sqlite_restart, false,    &place};
    aster_status status = aster_conformance_run(&subject, out, NULL);
    remove_files(&place);
    rmdir(place.directory);
    return status;
}

static aster_status run_memory(FILE *out)
{
    const struct aster_conformance_subject subject = {sizeof subject, "memory", memory_open,
                                                      memory_restart, false,    NULL};
    return aster_conformance_run(&subject, out, NULL);
}

static aster_status run_memory_on_the_real_clock(FILE *out)
{
    const struct aster_conformance_subject subject = {
        sizeof subject, "memory, real clock", memory_open, memory_restart, true, NULL};
    return aster_conformance_run(&subject, out, NULL);
}

static aster_status run_example(FILE *out)
{
    const struct aster_conformance_subject subject = {sizeof subject, "example", own_open, NULL, false, NULL};
    return aster_conformance_run(&subject, out, NULL);
}

static const struct {
    const char *name;
    aster_status (*run)(FILE *out);
} subjects[] = {
    {"memory", run_memory},
    {"sqlite", run_sqlite},
    {"example", run_example},
    {"memory-real", run_memory_on_the_real_clock},
};

static int run_named(const char *name)
{
    int found = 0;
    int failed = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (name == NULL || strcmp(name, subjects[i].name) == 0) {
            found = 1;
            failed |= subjects[i].run(stdout) != ASTER_OK;
        }
    }
    if (!found) {
        fprintf(stderr, "aster-conformance: no subject \"%s\": use memory, sqlite, example or memory-real\n", name);
        return 64;
    }
    return failed;
}

int main(int count, char **arguments)
{
    int result = count < 2 ? run_named(NULL) : 0;
    for (int i = 1; i < count; i++) {
        int code = run_named(arguments[i]);
        result = code > result ? code : result;
    }
    return result;
}
