/* What a SQLite journal still holds after power cuts at every kind of moment, on full disks, and when syncs fail. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "journal/sqlite/journal.h"
#include "support/journal_count.h"
#include "support/lossy_vfs.h"
#include "support/seed.h"
#include "support/unit.h"

struct fixture {
    char directory[64];
    char path[96];
    char cut_path[96];
    struct aster_journal journal;
    struct aster_entry_builder entry;
    struct aster_error error;
    int64_t acknowledged;
    uint64_t seed;
};

static aster_status open_path(const char *path, struct aster_journal *journal, struct aster_error *error)
{
    struct aster_sqlite_journal_options options = ASTER_SQLITE_JOURNAL_OPTIONS_INIT;
    options.history_max = JOURNAL_COUNT_HISTORY;
    return aster_sqlite_journal_open(path, &options, journal, error);
}

static void open_and_load(struct fixture *fixture)
{
    if (open_path(fixture->path, &fixture->journal, &fixture->error) != ASTER_OK) {
        fail_msg("cannot open: %s", fixture->error.message);
    }
    assert_int_equal(journal_count_load(&fixture->journal), fixture->acknowledged);
}

static void close_journal(struct fixture *fixture)
{
    fixture->journal.ops->destroy(fixture->journal.self);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.seed = test_seed(7)};
    snprintf(fixture.directory, sizeof fixture.directory, "/tmp/aster-test-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    snprintf(fixture.path, sizeof fixture.path, "%s/journal.db", fixture.directory);
    snprintf(fixture.cut_path, sizeof fixture.cut_path, "%s/cut.db", fixture.directory);
    open_and_load(&fixture);
    *state = &fixture;
    return 0;
}

static void remove_files(const char *path)
{
    char log[128];
    snprintf(log, sizeof log, "%s-wal", path);
    unlink(path);
    unlink(log);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    close_journal(fixture);
    aster_entry_builder_fini(&fixture->entry);
    remove_files(fixture->path);
    remove_files(fixture->cut_path);
    rmdir(fixture->directory);
    lossy_vfs_reset();
    return 0;
}

static uint64_t random_below(struct fixture *fixture, uint64_t bound)
{
    fixture->seed = fixture->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (fixture->seed >> 33) % bound;
}

static aster_status append(struct fixture *fixture, size_t value_size)
{
    int64_t position = fixture->acknowledged + 1;
    struct aster_bytes entry = journal_count_entry(&fixture->entry, position, value_size);
    aster_status status = fixture->journal.ops->append(fixture->journal.self, position, entry, &fixture->error);
    fixture->acknowledged += status == ASTER_OK;
    return status;
}

static void append_many(struct fixture *fixture, int count, size_t value_size)
{
    while (count-- > 0) {
        if (append(fixture, value_size) != ASTER_OK) {
            fail_msg("cannot append: %s", fixture->error.message);
        }
    }
}

static aster_status step(struct fixture *fixture, bool *more)
{
    return fixture->journal.ops->checkpoint(fixture->journal.self, more, &fixture->error);
}

/* What the cut left: a journal that loads, up to which position. It must also take the next entry. */
static int64_t position_after_cut(struct fixture *fixture)
{
    struct aster_journal journal;
    struct aster_entry_builder builder = {0};
    if (open_path(fixture->cut_path, &journal, &fixture->error) != ASTER_OK) {
        fail_msg("what the power cut left does not open: %s", fixture->error.message);
    }
    int64_t last = journal_count_load(&journal);
    struct aster_bytes entry = journal_count_entry(&builder, last + 1, 100);
    assert_int_equal(journal.ops->append(journal.self, last + 1, entry, NULL), ASTER_OK);
    assert_int_equal(journal_count_load(&journal), last + 1);
    journal.ops->destroy(journal.self);
    aster_entry_builder_fini(&builder);
    return last;
}

static size_t random_size(struct fixture *fixture)
{
    return random_below(fixture, 4) == 0 ? 20000 : 100; /* now and then enough to make folding worth it */
}

/* Cut the power inside one of the next writes or syncs; a large append and a checkpoint have many. */
static void arm(struct fixture *fixture)
{
    static const unsigned kept[] = {0, 30, 70, 100};
    lossy_vfs_cut_after(1 + (int)random_below(fixture, 14), fixture->cut_path, kept[random_below(fixture, 4)],
                        fixture->seed);
}

static void a_power_cut_anywhere_loses_nothing_that_was_acknowledged(void **state)
{
    struct fixture *fixture = *state;
    int in_append = 0;
    int in_step = 0;
    for (int round = 0; round < 400; round++) {
        int64_t before = fixture->acknowledged;
        bool more = false;
        arm(fixture);
        append_many(fixture, 1, random_size(fixture));
        if (lossy_vfs_fired()) {
            in_append++;
            assert_in_range(position_after_cut(fixture), before, before + 1);
        }
        arm(fixture);
        assert_int_equal(step(fixture, &more), ASTER_OK);
        if (lossy_vfs_fired()) {
            in_step++;
            assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
        }
    }
    assert_true(in_append > 30);
    assert_true(in_step > 5);
}

static void a_power_cut_right_after_an_answer_leaves_that_entry(void **state)
{
    struct fixture *fixture = *state;
    for (int round = 0; round < 60; round++) {
        append_many(fixture, 1 + (int)random_below(fixture, 4), random_size(fixture));
        lossy_vfs_cut(fixture->cut_path, round % 2 == 0 ? 0 : 50, fixture->seed);
        assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
        bool more;
        assert_int_equal(step(fixture, &more), ASTER_OK);
        lossy_vfs_cut(fixture->cut_path, round % 2 == 0 ? 0 : 50, fixture->seed);
        assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
    }
}

static void on_a_full_disk_nothing_is_written_and_later_the_same_entry_is(void **state)
{
    struct fixture *fixture = *state;
    append_many(fixture, 10, 100);
    lossy_vfs_set_fault(LOSSY_NO_WRITE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(append(fixture, 3000), ASTER_ERR_IO);
        assert_non_null(strstr(fixture->error.message, "full"));
        assert_non_null(strstr(fixture->error.message, "nothing was applied"));
    }
    lossy_vfs_cut(fixture->cut_path, 100, fixture->seed);
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    assert_int_equal(position_after_cut(fixture), 10);
    append_many(fixture, 1, 100);
    close_journal(fixture);
    open_and_load(fixture);
}

/* The space of the log is there already: a disk that fills up stops appends only once that is used up. */
static void a_disk_without_room_for_growth_stops_appends_late_and_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    append_many(fixture, 5, 20000);
    lossy_vfs_set_fault(LOSSY_NO_GROWTH);
    aster_status status = ASTER_OK;
    int64_t before = fixture->acknowledged;
    while (status == ASTER_OK && fixture->acknowledged < 10000) {
        bool more;
        status = append(fixture, 20000);
        step(fixture, &more); /* fails at some time, which must not matter */
    }
    assert_int_equal(status, ASTER_ERR_IO);
    assert_true(fixture->acknowledged - before > 50);
    lossy_vfs_cut(fixture->cut_path, 50, fixture->seed);
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
    append_many(fixture, 50, 20000);
    bool more = true;
    while (more) {
        assert_int_equal(step(fixture, &more), ASTER_OK);
    }
    close_journal(fixture);
    open_and_load(fixture);
}

static void a_full_disk_does_not_keep_the_journal_from_loading(void **state)
{
    struct fixture *fixture = *state;
    append_many(fixture, 40, 20000);
    lossy_vfs_cut(fixture->cut_path, 100, fixture->seed); /* entries, a log and nothing folded */
    close_journal(fixture);
    remove_files(fixture->path);
    lossy_vfs_reset();
    char from[128];
    char to[128];
    assert_int_equal(rename(fixture->cut_path, fixture->path), 0);
    snprintf(from, sizeof from, "%s-wal", fixture->cut_path);
    snprintf(to, sizeof to, "%s-wal", fixture->path);
    assert_int_equal(rename(from, to), 0);
    lossy_vfs_set_fault(LOSSY_NO_WRITE);
    open_and_load(fixture);
    assert_int_equal(append(fixture, 100), ASTER_ERR_IO);
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    append_many(fixture, 1, 100);
}

/* Unknown: after a crash the entry is there or not, and without one the next entry takes its place. */
static void an_entry_whose_sync_failed_is_unknown_and_the_next_one_replaces_it(void **state)
{
    struct fixture *fixture = *state;
    append_many(fixture, 10, 100);
    for (int round = 0; round < 20; round++) {
        lossy_vfs_set_fault(LOSSY_NO_SYNC);
        struct aster_entry_builder other = {0};
        journal_count_entry(&other, 1, 100); /* another content than what comes next */
        struct aster_bytes entry;
        assert_int_equal(aster_entry_seal(&other, &entry, NULL), ASTER_OK);
        int64_t position = fixture->acknowledged + 1;
        aster_status status = fixture->journal.ops->append(fixture->journal.self, position, entry, &fixture->error);
        aster_entry_builder_fini(&other);
        assert_int_equal(status, ASTER_ERR_INDETERMINATE);
        lossy_vfs_set_fault(LOSSY_NO_FAULT);
        append_many(fixture, 1 + round % 3, 100);
        lossy_vfs_cut(fixture->cut_path, (unsigned)(round % 3) * 50, fixture->seed);
        assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
    }
    close_journal(fixture);
    open_and_load(fixture);
}

static void after_a_failed_sync_a_power_cut_leaves_the_entry_or_none(void **state)
{
    struct fixture *fixture = *state;
    int found[2] = {0, 0};
    for (int round = 0; round < 40; round++) {
        append_many(fixture, 1, 100);
        lossy_vfs_set_fault(LOSSY_NO_SYNC);
        assert_int_equal(append(fixture, 100), ASTER_ERR_INDETERMINATE);
        lossy_vfs_cut(fixture->cut_path, (unsigned)(round % 2) * 100, fixture->seed);
        lossy_vfs_set_fault(LOSSY_NO_FAULT);
        int64_t last = position_after_cut(fixture);
        assert_in_range(last, fixture->acknowledged, fixture->acknowledged + 1);
        found[last - fixture->acknowledged]++;
    }
    assert_true(found[0] > 0);
    assert_true(found[1] > 0);
}

static void a_checkpoint_whose_sync_fails_loses_nothing_and_is_done_later(void **state)
{
    struct fixture *fixture = *state;
    bool more = false;
    int failed = 0;
    for (int round = 0; round < 20; round++) {
        append_many(fixture, 40, 20000);
        lossy_vfs_set_fault(LOSSY_NO_SYNC);
        failed += step(fixture, &more) != ASTER_OK;
        lossy_vfs_cut(fixture->cut_path, (unsigned)(round % 3) * 50, fixture->seed);
        lossy_vfs_set_fault(LOSSY_NO_FAULT);
        assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
        append_many(fixture, 1, 100);
        lossy_vfs_cut(fixture->cut_path, (unsigned)(round % 3) * 50, fixture->seed);
        assert_int_equal(position_after_cut(fixture), fixture->acknowledged);
        do {
            assert_int_equal(step(fixture, &more), ASTER_OK);
        } while (more);
    }
    assert_true(failed > 10);
    close_journal(fixture);
    open_and_load(fixture);
}

static void one_append_is_one_sync(void **state)
{
    struct fixture *fixture = *state;
    append_many(fixture, 1, 100);
    int64_t before = lossy_vfs_syncs();
    append_many(fixture, 200, 100);
    assert_int_equal(lossy_vfs_syncs() - before, 200);
}

int main(void)
{
    lossy_vfs_install("journal.db");
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_power_cut_anywhere_loses_nothing_that_was_acknowledged),
        TEST(a_power_cut_right_after_an_answer_leaves_that_entry),
        TEST(on_a_full_disk_nothing_is_written_and_later_the_same_entry_is),
        TEST(a_disk_without_room_for_growth_stops_appends_late_and_loses_nothing),
        TEST(a_full_disk_does_not_keep_the_journal_from_loading),
        TEST(an_entry_whose_sync_failed_is_unknown_and_the_next_one_replaces_it),
        TEST(after_a_failed_sync_a_power_cut_leaves_the_entry_or_none),
        TEST(a_checkpoint_whose_sync_fails_loses_nothing_and_is_done_later),
        TEST(one_append_is_one_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
