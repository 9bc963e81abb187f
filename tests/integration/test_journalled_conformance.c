/* The conformance suite over the engine in memory with a journal: one in a SQLite file, one in the test's memory. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/sys/conformance.h"
#include "journal/journalled.h"
#include "journal/sqlite/journal.h"
#include "support/fake_journal.h"

struct place {
    char directory[64];
    char path[128];
    int files;
    struct fake_store store; /* of the other subject */
    bool stored;
    const struct aster_clock *clock;
};

static aster_status open_over(const struct place *place, const struct aster_journal *journal,
                              struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_journalled_options options = ASTER_JOURNALLED_OPTIONS_INIT;
    options.memory.clock = place->clock;
    aster_status status = aster_journalled_open(&options, journal, serializer, error);
    if (status != ASTER_OK) {
        journal->ops->destroy(journal->self);
    }
    return status;
}

static aster_status open_file(const struct place *place, struct aster_serializer **serializer,
                              struct aster_error *error)
{
    struct aster_journal journal;
    aster_status status = aster_sqlite_journal_open(place->path, NULL, &journal, error);
    return status == ASTER_OK ? open_over(place, &journal, serializer, error) : status;
}

static void remove_file(const struct place *place)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%s", place->path, suffixes[i]);
        unlink(path);
    }
}

static aster_status open_fresh_file(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                                    struct aster_error *error)
{
    struct place *place = user;
    remove_file(place);
    snprintf(place->path, sizeof place->path, "%s/%d.journal", place->directory, place->files++);
    place->clock = clock;
    return open_file(place, serializer, error);
}

static aster_status restart_file(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    aster_serializer_destroy(*serializer);
    *serializer = NULL;
    return open_file(user, serializer, error);
}

static aster_status open_fake(struct place *place, struct aster_serializer **serializer, struct aster_error *error)
{
    const struct aster_journal journal = fake_journal(&place->store);
    return open_over(place, &journal, serializer, error);
}

static aster_status open_fresh_fake(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                                    struct aster_error *error)
{
    struct place *place = user;
    if (place->stored) {
        fake_store_fini(&place->store);
    }
    fake_store_init(&place->store);
    place->stored = true;
    place->clock = clock;
    return open_fake(place, serializer, error);
}

static aster_status restart_fake(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    aster_serializer_destroy(*serializer);
    *serializer = NULL;
    return open_fake(user, serializer, error);
}

static void run(const struct aster_conformance_subject *subject)
{
    struct aster_conformance_result result;
    assert_int_equal(aster_conformance_run(subject, stdout, &result), ASTER_OK);
    assert_int_equal(result.failed, 0);
    assert_true(result.passed > 20);
}

static void every_scenario_holds_over_a_sqlite_journal(void **state)
{
    (void)state;
    struct place place = {.directory = "/tmp/aster-journalled-XXXXXX"};
    assert_non_null(mkdtemp(place.directory));
    run(&(struct aster_conformance_subject){sizeof(struct aster_conformance_subject), "sqlite journal", open_fresh_file,
                                            restart_file, false, &place});
    remove_file(&place);
    rmdir(place.directory);
}

static void every_scenario_holds_over_any_journal(void **state)
{
    (void)state;
    struct place place = {.files = 0};
    run(&(struct aster_conformance_subject){sizeof(struct aster_conformance_subject), "fake journal", open_fresh_fake,
                                            restart_fake, false, &place});
    fake_store_fini(&place.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scenario_holds_over_any_journal),
        cmocka_unit_test(every_scenario_holds_over_a_sqlite_journal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
