#include "support/journal_suite.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/seed.h"
#include "support/unit.h"

#define HISTORY_MAX 100

static const struct journal_subject *subject;

static int set_up(void **state)
{
    struct journal_world *world = malloc(sizeof *world);
    assert_non_null(world);
    journal_world_init(world, subject, HISTORY_MAX);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    journal_world_fini(*state);
    free(*state);
    return 0;
}

static void expect_row(const struct journal_world *world, const char *resource, int64_t epoch, const char *value)
{
    const struct aster_row *row = journal_told_find(&world->told, resource);
    assert_non_null(row);
    assert_int_equal(row->epoch, epoch);
    assert_true(aster_bytes_equal(row->value, aster_text(value)));
    assert_true(row->held);
    assert_true(aster_bytes_equal(row->holder, aster_text("holder")));
    assert_int_equal(row->applied.kind, ASTER_OP_ACQUIRE);
    assert_int_equal(row->applied.request_id[2], (unsigned char)epoch);
}

/* Enough entries that folding is worth its cost; returns the epoch of the last image of "filler". */
static int64_t pile_up(struct journal_world *world)
{
    static char value[20000];
    memset(value, 'x', sizeof value - 1);
    int64_t epoch = 0;
    for (int i = 0; i < 40; i++) {
        epoch++;
        journal_world_row(world, "filler", epoch, epoch, value);
        journal_world_append(world);
    }
    return epoch;
}

static void a_new_journal_holds_nothing(void **state)
{
    struct journal_world *world = *state;
    assert_int_equal(world->told.floor, 0);
    assert_int_equal(world->told.row_count, 0);
    assert_int_equal(world->told.event_count, 0);
    assert_int_equal(world->told.last_position, 0);
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 0);
}

static void what_was_appended_is_told_when_it_is_opened_again(void **state)
{
    struct journal_world *world = *state;
    journal_world_row(world, "a", 1, 0, "");
    journal_world_event(world, "a", 1);
    journal_world_row(world, "b", 7, 1, "value");
    journal_world_event(world, "b", 7);
    journal_world_append(world);
    journal_world_row(world, "c", 3, 0, "");
    journal_world_append(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 3);
    expect_row(world, "a", 1, "");
    expect_row(world, "b", 7, "value");
    expect_row(world, "c", 3, "");
    assert_int_equal(world->told.event_count, 2);
    assert_int_equal(world->told.events[0].revision, 1);
    assert_int_equal(world->told.events[1].epoch, 7);
    assert_int_equal(world->told.events[1].kind, ASTER_EVENT_GRANTED);
    journal_world_row(world, "c", 4, 0, "");
    journal_world_append(world);
    journal_world_reopen(world);
    expect_row(world, "c", 4, "");
}

static void the_last_image_of_a_resource_counts_before_and_after_folding(void **state)
{
    struct journal_world *world = *state;
    for (int64_t epoch = 1; epoch <= 5; epoch++) {
        journal_world_row(world, "r", epoch, 0, "");
        journal_world_append(world);
    }
    journal_world_reopen(world);
    expect_row(world, "r", 5, "");
    int64_t filler = pile_up(world);
    journal_world_row(world, "r", 6, 0, "");
    journal_world_append(world);
    journal_world_checkpoint(world);
    journal_world_row(world, "r", 7, 0, "");
    journal_world_append(world);
    journal_world_reopen(world);
    expect_row(world, "r", 7, "");
    assert_int_equal(journal_told_find(&world->told, "filler")->epoch, filler);
    assert_int_equal(world->told.row_count, 2);
}

static void a_value_that_is_kept_survives_folding_and_opening_again(void **state)
{
    struct journal_world *world = *state;
    journal_world_row(world, "r", 1, 1, "the value");
    journal_world_row(world, "empty", 1, 0, NULL);
    journal_world_append(world);
    journal_world_row(world, "r", 2, 1, NULL);
    journal_world_append(world);
    journal_world_reopen(world);
    expect_row(world, "r", 2, "the value");
    expect_row(world, "empty", 1, "");
    for (int64_t epoch = 3; epoch < 6; epoch++) {
        pile_up(world);
        journal_world_checkpoint(world);
        journal_world_row(world, "r", epoch, 1, NULL);
        journal_world_append(world);
        journal_world_reopen(world);
        expect_row(world, "r", epoch, "the value");
    }
}

static void a_removed_row_is_gone_and_the_floor_stays(void **state)
{
    struct journal_world *world = *state;
    journal_world_row(world, "folded", 5, 1, "old");
    journal_world_append(world);
    pile_up(world);
    journal_world_checkpoint(world);
    journal_world_removed(world, "folded", 6);
    journal_world_row(world, "young", 8, 0, "");
    journal_world_removed(world, "young", 9);
    journal_world_append(world);
    journal_world_reopen(world);
    assert_null(journal_told_find(&world->told, "folded"));
    assert_null(journal_told_find(&world->told, "young"));
    assert_int_equal(world->told.floor, 9);
    pile_up(world);
    journal_world_checkpoint(world);
    journal_world_row(world, "folded", 10, 0, NULL);
    journal_world_append(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.floor, 9);
    expect_row(world, "folded", 10, "");
    assert_null(journal_told_find(&world->told, "young"));
}

static void the_newest_events_are_kept_and_older_ones_are_not_told(void **state)
{
    struct journal_world *world = *state;
    for (int i = 0; i < 3 * HISTORY_MAX; i++) {
        journal_world_event(world, "r", i + 1);
        if (i % 7 == 0) {
            journal_world_append(world);
        }
        if (i % 120 == 0) {
            pile_up(world);
            journal_world_checkpoint(world);
        }
    }
    journal_world_append(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.event_count, HISTORY_MAX);
    assert_int_equal(world->told.events[0].revision, 2 * HISTORY_MAX + 1);
    assert_int_equal(world->told.events[HISTORY_MAX - 1].revision, 3 * HISTORY_MAX);
    pile_up(world);
    journal_world_checkpoint(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.event_count, HISTORY_MAX);
}

static void a_history_of_none_keeps_none(void **state)
{
    struct journal_world *world = *state;
    world->history_max = 0;
    journal_world_reopen(world);
    journal_world_row(world, "r", 1, 0, "");
    journal_world_event(world, "r", 1);
    journal_world_append(world);
    pile_up(world);
    journal_world_checkpoint(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.event_count, 0);
    expect_row(world, "r", 1, "");
}

/* A step at a time: what is there afterwards does not depend on when it was folded. */
static void appends_go_on_between_the_steps_of_folding(void **state)
{
    struct journal_world *world = *state;
    char name[32];
    int64_t epoch = 0;
    int steps = 0;
    for (int round = 0; round < 40; round++) {
        epoch++;
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "resource/%d", i);
            journal_world_row(world, name, epoch, 0, "");
        }
        journal_world_append(world);
        bool more = false;
        assert_int_equal(world->journal.ops->checkpoint(world->journal.self, &more, NULL), ASTER_OK);
        steps += more;
    }
    assert_true(steps > 0);
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 1000);
    expect_row(world, "resource/0", epoch, "");
    expect_row(world, "resource/999", epoch, "");
}

static void little_is_not_worth_a_step(void **state)
{
    struct journal_world *world = *state;
    journal_world_row(world, "r", 1, 0, "");
    journal_world_append(world);
    bool more = true;
    assert_int_equal(world->journal.ops->checkpoint(world->journal.self, &more, NULL), ASTER_OK);
    assert_false(more);
}

static void a_position_out_of_order_is_refused_and_changes_nothing(void **state)
{
    struct journal_world *world = *state;
    journal_world_row(world, "r", 1, 0, "");
    journal_world_append(world);
    journal_world_row(world, "r", 2, 0, "");
    for (int64_t wrong = -1; wrong <= 1; wrong++) {
        static const int64_t positions[] = {0, 1, 3};
        struct aster_bytes entry;
        struct aster_error error = ASTER_ERROR_INIT;
        assert_int_equal(aster_entry_seal(&world->entry, &entry, NULL), ASTER_OK);
        assert_int_equal(world->journal.ops->append(world->journal.self, positions[wrong + 1], entry, &error),
                         ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "2"));
    }
    journal_world_reopen(world);
    expect_row(world, "r", 1, "");
    journal_world_append(world);
    journal_world_reopen(world);
    expect_row(world, "r", 2, "");
}

static void nothing_is_appended_before_the_load_or_without_content(void **state)
{
    struct journal_world *world = *state;
    struct aster_journal journal;
    assert_int_equal(world->journal.ops->append(world->journal.self, 1, (struct aster_bytes){"", 0}, NULL),
                     ASTER_ERR_INVALID);
    journal_world_close(world);
    assert_int_equal(subject->open(subject->user, HISTORY_MAX, &journal, NULL), ASTER_OK);
    assert_int_equal(journal.ops->append(journal.self, 1, aster_text("entry"), NULL), ASTER_ERR_INVALID);
    journal.ops->destroy(journal.self);
    journal_world_open(world);
    assert_int_equal(world->told.last_position, 0);
}

static void the_largest_entry_and_the_longest_names_fit(void **state)
{
    struct journal_world *world = *state;
    static char value[ASTER_VALUE_MAX + 1];
    char name[ASTER_RESOURCE_MAX + 1];
    memset(value, 'v', ASTER_VALUE_MAX);
    memset(name, 'n', ASTER_RESOURCE_MAX);
    name[ASTER_RESOURCE_MAX] = '\0';
    for (int i = 0; i < 15; i++) {
        name[0] = (char)('a' + i);
        journal_world_row(world, name, 1, 1, value);
    }
    journal_world_append(world);
    journal_world_row(world, "\xc3\xa9", 1, 0, "");
    journal_world_row(world, "e\xcc\x81", 2, 0, "");
    journal_world_append(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 17);
    expect_row(world, name, 1, value);
    expect_row(world, "\xc3\xa9", 1, "");
    expect_row(world, "e\xcc\x81", 2, "");
    journal_world_checkpoint(world);
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 17);
    expect_row(world, name, 1, value);
}

struct refusing {
    int rows_left;
};

static aster_status accept_floor(void *user, int64_t floor, struct aster_error *error)
{
    (void)user;
    (void)floor;
    (void)error;
    return ASTER_OK;
}

static aster_status refuse_row(void *user, struct aster_bytes resource, const struct aster_row *row,
                               struct aster_error *error)
{
    (void)resource;
    (void)row;
    (void)error;
    struct refusing *refusing = user;
    return refusing->rows_left-- > 0 ? ASTER_OK : ASTER_ERR_NOMEM;
}

static aster_status accept_event(void *user, const struct aster_event *event, struct aster_error *error)
{
    (void)user;
    (void)event;
    (void)error;
    return ASTER_OK;
}

static void a_load_ends_with_what_a_callback_says_and_can_be_repeated(void **state)
{
    struct journal_world *world = *state;
    pile_up(world);
    journal_world_checkpoint(world);
    journal_world_row(world, "r", 1, 0, "");
    journal_world_append(world);
    for (int rows = 0; rows < 2; rows++) {
        struct refusing refusing = {rows};
        const struct aster_journal_loading into = {&refusing, accept_floor, refuse_row, accept_event};
        int64_t last = -1;
        assert_int_equal(world->journal.ops->load(world->journal.self, &into, &last, NULL), ASTER_ERR_NOMEM);
        assert_int_equal(last, -1);
    }
    journal_world_reopen(world);
    assert_int_equal(world->told.row_count, 2);
}

#define MODEL_ROWS 40

struct model {
    struct {
        bool exists;
        int64_t epoch;
        int64_t value_revision;
        char value[64];
    } rows[MODEL_ROWS];
    int64_t floor;
};

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

static void change(struct journal_world *world, struct model *model, uint64_t *random)
{
    size_t i = next_random(random) % MODEL_ROWS;
    uint64_t choice = next_random(random) % 10;
    char name[32];
    snprintf(name, sizeof name, "model/%zu", i);
    if (choice == 0 && model->rows[i].exists) {
        model->rows[i].exists = false;
        model->rows[i].value_revision = 0;
        model->rows[i].value[0] = '\0';
        model->floor = model->rows[i].epoch > model->floor ? model->rows[i].epoch : model->floor;
        journal_world_removed(world, name, model->floor);
        return;
    }
    model->rows[i].epoch = (model->rows[i].exists ? model->rows[i].epoch : model->floor) + 1;
    model->rows[i].exists = true;
    bool puts = choice < 5;
    if (puts) {
        model->rows[i].value_revision++;
        snprintf(model->rows[i].value, sizeof model->rows[i].value, "value %llu",
                 (unsigned long long)next_random(random));
    }
    journal_world_row(world, name, model->rows[i].epoch, model->rows[i].value_revision,
                      puts ? model->rows[i].value : NULL);
}

static void compare_with_model(const struct journal_world *world, const struct model *model)
{
    char name[32];
    assert_int_equal(world->told.floor, model->floor);
    for (size_t i = 0; i < MODEL_ROWS; i++) {
        snprintf(name, sizeof name, "model/%zu", i);
        if (model->rows[i].exists) {
            expect_row(world, name, model->rows[i].epoch, model->rows[i].value);
            assert_int_equal(journal_told_find(&world->told, name)->value_revision, model->rows[i].value_revision);
        } else {
            assert_null(journal_told_find(&world->told, name));
        }
    }
}

static void a_random_history_is_told_as_it_was(void **state)
{
    struct journal_world *world = *state;
    struct model model = {0};
    uint64_t random = test_seed(1);
    for (int round = 0; round < 60; round++) {
        uint64_t records = 1 + next_random(&random) % 30;
        for (uint64_t i = 0; i < records; i++) {
            change(world, &model, &random);
        }
        journal_world_append(world);
        if (next_random(&random) % 12 == 0) {
            pile_up(world);
            bool more = false;
            assert_int_equal(world->journal.ops->checkpoint(world->journal.self, &more, NULL), ASTER_OK);
        }
        if (next_random(&random) % 6 == 0) {
            journal_world_reopen(world);
            compare_with_model(world, &model);
        }
    }
    journal_world_reopen(world);
    compare_with_model(world, &model);
}

#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int journal_suite_run(const char *name, const struct journal_subject *over)
{
    const struct CMUnitTest tests[] = {
        SCENARIO(a_new_journal_holds_nothing),
        SCENARIO(what_was_appended_is_told_when_it_is_opened_again),
        SCENARIO(the_last_image_of_a_resource_counts_before_and_after_folding),
        SCENARIO(a_value_that_is_kept_survives_folding_and_opening_again),
        SCENARIO(a_removed_row_is_gone_and_the_floor_stays),
        SCENARIO(the_newest_events_are_kept_and_older_ones_are_not_told),
        SCENARIO(a_history_of_none_keeps_none),
        SCENARIO(appends_go_on_between_the_steps_of_folding),
        SCENARIO(little_is_not_worth_a_step),
        SCENARIO(a_position_out_of_order_is_refused_and_changes_nothing),
        SCENARIO(nothing_is_appended_before_the_load_or_without_content),
        SCENARIO(the_largest_entry_and_the_longest_names_fit),
        SCENARIO(a_load_ends_with_what_a_callback_says_and_can_be_repeated),
        SCENARIO(a_random_history_is_told_as_it_was),
    };
    subject = over;
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
