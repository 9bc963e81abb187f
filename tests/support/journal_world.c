#include "support/journal_world.h"

#include <stdlib.h>

#include "support/operations.h"
#include "support/unit.h"

static void *grown(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) == 0) { /* full at 0 and at each power of two */
        array = realloc(array, (count > 0 ? 2 * count : 1) * size);
        assert_non_null(array);
    }
    return array;
}

static struct aster_bytes copy(struct journal_told *told, struct aster_bytes bytes)
{
    char *made = malloc(bytes.size + 1);
    assert_non_null(made);
    if (bytes.size > 0) {
        memcpy(made, bytes.data, bytes.size);
    }
    told->copies = grown(told->copies, told->copy_count, sizeof *told->copies);
    told->copies[told->copy_count++] = made;
    return (struct aster_bytes){made, bytes.size};
}

static aster_status take_floor(void *user, int64_t floor, struct aster_error *error)
{
    (void)error;
    struct journal_told *told = user;
    assert_int_equal(told->floor, -1);
    told->floor = floor;
    return ASTER_OK;
}

static aster_status take_row(void *user, struct aster_bytes resource, const struct aster_row *row,
                             struct aster_error *error)
{
    (void)error;
    struct journal_told *told = user;
    assert_true(told->floor >= 0);
    assert_int_equal(told->event_count, 0);
    told->rows = grown(told->rows, told->row_count, sizeof *told->rows);
    struct journal_told_row *to = &told->rows[told->row_count++];
    to->resource = copy(told, resource);
    to->row = *row;
    to->row.holder = copy(told, row->holder);
    to->row.last_holder = copy(told, row->last_holder);
    to->row.applied.caller = copy(told, row->applied.caller);
    to->row.value = copy(told, row->value);
    return ASTER_OK;
}

static aster_status take_event(void *user, const struct aster_event *event, struct aster_error *error)
{
    (void)error;
    struct journal_told *told = user;
    assert_true(told->event_count == 0 || told->events[told->event_count - 1].revision < event->revision);
    assert_true(event->resource.size > 0);
    told->events = grown(told->events, told->event_count, sizeof *told->events);
    told->events[told->event_count++] = *event;
    return ASTER_OK;
}

static int compare(const void *a, const void *b)
{
    const struct journal_told_row *left = a;
    const struct journal_told_row *right = b;
    size_t size = left->resource.size < right->resource.size ? left->resource.size : right->resource.size;
    int order = memcmp(left->resource.data, right->resource.data, size);
    return order != 0 ? order
                      : (left->resource.size > right->resource.size) - (left->resource.size < right->resource.size);
}

aster_status journal_told_load(struct journal_told *told, const struct aster_journal *journal,
                               struct aster_error *error)
{
    const struct aster_journal_loading into = {told, take_floor, take_row, take_event};
    *told = (struct journal_told){.floor = -1, .last_position = -1};
    aster_status status = journal->ops->load(journal->self, &into, &told->last_position, error);
    if (told->row_count > 0) {
        qsort(told->rows, told->row_count, sizeof *told->rows, compare);
    }
    for (size_t i = 1; i < told->row_count; i++) {
        assert_true(compare(&told->rows[i - 1], &told->rows[i]) < 0); /* each row once */
    }
    return status;
}

void journal_told_fini(struct journal_told *told)
{
    for (size_t i = 0; i < told->copy_count; i++) {
        free(told->copies[i]);
    }
    free(told->copies);
    free(told->rows);
    free(told->events);
    *told = (struct journal_told){0};
}

const struct aster_row *journal_told_find(const struct journal_told *told, const char *resource)
{
    for (size_t i = 0; i < told->row_count; i++) {
        if (aster_bytes_equal(told->rows[i].resource, aster_text(resource))) {
            return &told->rows[i].row;
        }
    }
    return NULL;
}

void journal_world_open(struct journal_world *world)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = world->subject->open(world->subject->user, world->history_max, &world->journal, &error);
    if (status == ASTER_OK) {
        status = journal_told_load(&world->told, &world->journal, &error);
    }
    if (status != ASTER_OK) {
        fail_msg("the journal does not open and load: %s", error.message);
    }
    assert_int_equal(world->told.last_position, world->position);
}

void journal_world_close(struct journal_world *world)
{
    if (world->journal.ops != NULL) {
        world->journal.ops->destroy(world->journal.self);
    }
    world->journal = (struct aster_journal){0};
    journal_told_fini(&world->told);
}

void journal_world_init(struct journal_world *world, const struct journal_subject *subject, int64_t history_max)
{
    *world = (struct journal_world){.subject = subject, .history_max = history_max};
    subject->wipe(subject->user);
    journal_world_open(world);
}

void journal_world_fini(struct journal_world *world)
{
    journal_world_close(world);
    aster_entry_builder_fini(&world->entry);
}

void journal_world_reopen(struct journal_world *world)
{
    journal_world_close(world);
    journal_world_open(world);
}

static void add(struct journal_world *world, const struct aster_record *record)
{
    assert_int_equal(aster_entry_add(&world->entry, record, NULL), ASTER_OK);
}

void journal_world_row(struct journal_world *world, const char *resource, int64_t epoch, int64_t value_revision,
                       const char *value)
{
    struct aster_record record = {.kind = ASTER_RECORD_ROW,
                                  .resource = aster_text(resource),
                                  .row = row_held("holder", epoch),
                                  .keep_value = value == NULL};
    record.row.value = aster_text(value);
    record.row.value_revision = value_revision;
    record.row.applied =
        (struct aster_applied){{1, 2, (unsigned char)epoch}, aster_text("holder"), ASTER_OP_ACQUIRE, false, epoch};
    add(world, &record);
}

void journal_world_removed(struct journal_world *world, const char *resource, int64_t floor)
{
    const struct aster_record record = {.kind = ASTER_RECORD_REMOVED, .resource = aster_text(resource), .floor = floor};
    add(world, &record);
}

void journal_world_event(struct journal_world *world, const char *resource, int64_t epoch)
{
    const struct aster_record record = {.kind = ASTER_RECORD_EVENT,
                                        .event = {.revision = ++world->revision,
                                                  .unix_ms = 1700000000000,
                                                  .kind = ASTER_EVENT_GRANTED,
                                                  .resource = aster_text(resource),
                                                  .actor = aster_text("holder"),
                                                  .epoch = epoch}};
    add(world, &record);
}

aster_status journal_world_try(struct journal_world *world, struct aster_error *error)
{
    struct aster_bytes entry;
    assert_int_equal(aster_entry_seal(&world->entry, &entry, NULL), ASTER_OK);
    aster_status status = world->journal.ops->append(world->journal.self, world->position + 1, entry, error);
    if (status == ASTER_OK) {
        world->position++;
        aster_entry_builder_reset(&world->entry);
    }
    return status;
}

void journal_world_append(struct journal_world *world)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (journal_world_try(world, &error) != ASTER_OK) {
        fail_msg("the journal does not append: %s", error.message);
    }
}

void journal_world_checkpoint(struct journal_world *world)
{
    struct aster_error error = ASTER_ERROR_INIT;
    bool more = true;
    for (int steps = 0; more; steps++) {
        if (world->journal.ops->checkpoint(world->journal.self, &more, &error) != ASTER_OK) {
            fail_msg("the checkpoint fails: %s", error.message);
        }
        assert_true(steps < 10000);
    }
}
