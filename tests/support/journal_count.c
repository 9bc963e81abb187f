#include "support/journal_count.h"

#include <inttypes.h>
#include <stdio.h>

#include "support/operations.h"
#include "support/unit.h"

static const char *name_of(int64_t position, char name[32])
{
    snprintf(name, 32, "r/%" PRId64, position % JOURNAL_COUNT_ROWS);
    return name;
}

/* Every third entry of a row keeps the value of the one before. */
static bool puts_value(int64_t position)
{
    return (position - 1) / JOURNAL_COUNT_ROWS % 3 != 1;
}

static int64_t value_position(int64_t position)
{
    return puts_value(position) ? position : position - JOURNAL_COUNT_ROWS;
}

struct aster_bytes journal_count_entry(struct aster_entry_builder *builder, int64_t position, size_t value_size)
{
    static char value[ASTER_VALUE_MAX];
    char name[32];
    struct aster_bytes entry;
    assert_in_range(value_size, 32, sizeof value);
    memset(value, 0, value_size);
    snprintf(value, 32, "%" PRId64, position);
    struct aster_record record = {.kind = ASTER_RECORD_ROW,
                                  .resource = aster_text(name_of(position, name)),
                                  .row = row_held("holder", position),
                                  .keep_value = !puts_value(position)};
    record.row.value_revision = value_position(position);
    if (!record.keep_value) {
        record.row.value = (struct aster_bytes){value, value_size};
    }
    aster_entry_builder_reset(builder);
    assert_int_equal(aster_entry_add(builder, &record, NULL), ASTER_OK);
    record = (struct aster_record){.kind = ASTER_RECORD_EVENT,
                                   .event = {.revision = position,
                                             .kind = ASTER_EVENT_GRANTED,
                                             .resource = aster_text(name),
                                             .actor = aster_text("holder"),
                                             .epoch = position}};
    assert_int_equal(aster_entry_add(builder, &record, NULL), ASTER_OK);
    assert_int_equal(aster_entry_seal(builder, &entry, NULL), ASTER_OK);
    return entry;
}

static void check_row(const struct journal_told *told, int64_t position)
{
    char name[32];
    char value[32];
    /* None yet: its name is that of an entry to come. */
    int64_t named = position > 0 ? position : position + JOURNAL_COUNT_ROWS;
    const struct aster_row *row = journal_told_find(told, name_of(named, name));
    if (position <= 0) {
        assert_null(row);
        return;
    }
    assert_non_null(row);
    assert_int_equal(row->epoch, position);
    assert_int_equal(row->value_revision, value_position(position));
    snprintf(value, sizeof value, "%" PRId64, value_position(position));
    assert_true(row->value.size >= 32);
    assert_string_equal(row->value.data, value);
}

int64_t journal_count_load(const struct aster_journal *journal)
{
    struct journal_told told = {0};
    struct aster_error error = ASTER_ERROR_INIT;
    if (journal_told_load(&told, journal, &error) != ASTER_OK) {
        fail_msg("the journal does not load: %s", error.message);
    }
    int64_t last = told.last_position;
    for (int64_t position = last; position > last - JOURNAL_COUNT_ROWS; position--) {
        check_row(&told, position);
    }
    size_t events = (size_t)(last < JOURNAL_COUNT_HISTORY ? last : JOURNAL_COUNT_HISTORY);
    assert_int_equal(told.event_count, events);
    for (size_t i = 0; i < events; i++) {
        assert_int_equal(told.events[i].revision, last - (int64_t)(events - 1 - i));
    }
    journal_told_fini(&told);
    return last;
}
