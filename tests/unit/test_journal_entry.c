#include "base/alloc.h"
#include "engine/cursor.h"
#include "journal/entry.h"
#include "support/fuzz_seal.h"
#include "support/operations.h"
#include "support/unit.h"

static struct aster_record row_record(const char *resource)
{
    struct aster_record record = {
        .kind = ASTER_RECORD_ROW, .resource = aster_text(resource), .row = row_held("holder", 7)};
    record.row.lease_revision = 3;
    record.row.value = aster_text("value");
    record.row.value_revision = 300;
    record.row.last_holder = aster_text("before");
    record.row.last_epoch_held = 5;
    record.row.applied = (struct aster_applied){{1, 2, 3}, aster_text("holder"), ASTER_OP_ACQUIRE, true, 7};
    return record;
}

static struct aster_record removed_record(const char *resource, int64_t floor)
{
    return (struct aster_record){.kind = ASTER_RECORD_REMOVED, .resource = aster_text(resource), .floor = floor};
}

static struct aster_record event_record(const char *resource, int64_t revision)
{
    return (struct aster_record){.kind = ASTER_RECORD_EVENT,
                                 .event = {.revision = revision,
                                           .unix_ms = 1700000000000,
                                           .kind = ASTER_EVENT_TAKEOVER,
                                           .resource = aster_text(resource),
                                           .actor = aster_text("holder"),
                                           .previous = aster_text("before"),
                                           .epoch = 7}};
}

static void add(struct aster_entry_builder *builder, struct aster_record record)
{
    assert_int_equal(aster_entry_add(builder, &record, NULL), ASTER_OK);
}

/* One record of each kind. */
static struct aster_bytes sample(struct aster_entry_builder *builder)
{
    struct aster_bytes entry;
    aster_entry_builder_reset(builder);
    add(builder, row_record("r"));
    add(builder, event_record("r", 12));
    add(builder, removed_record("gone", 9));
    assert_int_equal(aster_entry_seal(builder, &entry, NULL), ASTER_OK);
    return entry;
}

static struct aster_record next(struct aster_entry_reader *reader)
{
    struct aster_record record;
    bool found = false;
    assert_int_equal(aster_entry_next(reader, &record, &found, NULL), ASTER_OK);
    assert_true(found);
    return record;
}

static aster_status read_all(struct aster_bytes entry)
{
    struct aster_entry_reader reader;
    struct aster_record record;
    bool found = true;
    aster_status status = aster_entry_open(entry, &reader, NULL);
    while (status == ASTER_OK && found) {
        status = aster_entry_next(&reader, &record, &found, NULL);
    }
    return status;
}

static void records_come_back_as_they_were_and_in_order(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_entry_reader reader;
    assert_int_equal(aster_entry_open(sample(&builder), &reader, NULL), ASTER_OK);
    struct aster_record row = next(&reader);
    struct aster_record given = row_record("r");
    assert_int_equal(row.kind, ASTER_RECORD_ROW);
    assert_true(aster_bytes_equal(row.resource, aster_text("r")));
    assert_false(row.keep_value);
    assert_int_equal(aster_row_checksum(row.resource, &row.row), aster_row_checksum(given.resource, &given.row));
    struct aster_record event = next(&reader);
    assert_int_equal(event.kind, ASTER_RECORD_EVENT);
    assert_int_equal(event.event.revision, 12);
    assert_int_equal(event.event.unix_ms, 1700000000000);
    assert_int_equal(event.event.kind, ASTER_EVENT_TAKEOVER);
    assert_int_equal(event.event.epoch, 7);
    assert_true(aster_bytes_equal(event.event.resource, aster_text("r")));
    assert_true(aster_bytes_equal(event.event.actor, aster_text("holder")));
    assert_true(aster_bytes_equal(event.event.previous, aster_text("before")));
    struct aster_record removed = next(&reader);
    assert_int_equal(removed.kind, ASTER_RECORD_REMOVED);
    assert_true(aster_bytes_equal(removed.resource, aster_text("gone")));
    assert_int_equal(removed.floor, 9);
    struct aster_record none;
    bool found = true;
    assert_int_equal(aster_entry_next(&reader, &none, &found, NULL), ASTER_OK);
    assert_false(found);
    aster_entry_builder_fini(&builder);
}

static void the_largest_numbers_survive(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_entry_reader reader;
    struct aster_bytes entry;
    struct aster_record record = row_record("r");
    record.row.epoch = record.row.last_epoch_held = record.row.applied.epoch = INT64_MAX;
    record.row.lease_revision = record.row.value_revision = INT64_MAX;
    record.row.ttl_ms = ASTER_TTL_HARD_MAX_MS;
    add(&builder, record);
    add(&builder, removed_record("r", INT64_MAX));
    assert_int_equal(aster_entry_seal(&builder, &entry, NULL), ASTER_OK);
    assert_int_equal(aster_entry_open(entry, &reader, NULL), ASTER_OK);
    struct aster_record back = next(&reader);
    assert_int_equal(aster_row_checksum(back.resource, &back.row), aster_row_checksum(record.resource, &record.row));
    assert_int_equal(next(&reader).floor, INT64_MAX);
    aster_entry_builder_fini(&builder);
}

static void a_kept_value_is_not_written_again(void **state)
{
    (void)state;
    static const char large[ASTER_VALUE_MAX];
    struct aster_entry_builder builder = {0};
    struct aster_entry_reader reader;
    struct aster_bytes entry;
    struct aster_record record = row_record("r");
    record.row.value = (struct aster_bytes){large, sizeof large};
    record.keep_value = true;
    assert_int_equal(aster_entry_add(&builder, &record, NULL), ASTER_ERR_INVALID);
    record.row.value.size = 0;
    add(&builder, record);
    assert_int_equal(aster_entry_seal(&builder, &entry, NULL), ASTER_OK);
    assert_true(entry.size < 100);
    assert_int_equal(aster_entry_open(entry, &reader, NULL), ASTER_OK);
    struct aster_record back = next(&reader);
    assert_true(back.keep_value);
    assert_int_equal(back.row.value.size, 0);
    assert_int_equal(back.row.value_revision, 300);
    aster_entry_builder_fini(&builder);
}

/* What one acquire or release of a name that was just mentioned adds: the entry stays small in a busy batch. */
static void names_that_were_just_mentioned_take_one_byte(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    add(&builder, row_record("a-resource-of-20-byt"));
    size_t first = builder.used;
    add(&builder, event_record("a-resource-of-20-byt", 1));
    size_t event = builder.used - first;
    add(&builder, row_record("a-resource-of-20-byt"));
    size_t second = builder.used - first - event;
    assert_in_range(event, 1, 20);
    assert_in_range(second, 1, 45);
    aster_entry_builder_fini(&builder);
}

static void every_truncation_and_every_damaged_byte_is_detected(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_bytes entry = sample(&builder);
    unsigned char *copy = malloc(entry.size);
    assert_non_null(copy);
    memcpy(copy, entry.data, entry.size);
    for (size_t cut = 0; cut < entry.size; cut++) {
        assert_int_equal(read_all((struct aster_bytes){copy, cut}), ASTER_ERR_CORRUPT);
    }
    for (size_t at = 0; at < entry.size; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            copy[at] ^= (unsigned char)flip;
            assert_int_equal(read_all((struct aster_bytes){copy, entry.size}), ASTER_ERR_CORRUPT);
            copy[at] ^= (unsigned char)flip;
        }
    }
    assert_int_equal(read_all((struct aster_bytes){copy, entry.size}), ASTER_OK);
    free(copy);
    aster_entry_builder_fini(&builder);
}

/* As above with a right check: a record that is cut off is an error wherever the cut is, and never read half. */
static void a_sealed_truncation_is_an_error_unless_it_ends_a_record(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    add(&builder, row_record("r"));
    size_t first = builder.used;
    add(&builder, event_record("r", 12));
    for (size_t cut = 2; cut < builder.used; cut++) {
        uint8_t *sealed = fuzz_seal(builder.data, cut);
        assert_int_equal(read_all((struct aster_bytes){sealed, cut + 8}), cut == first ? ASTER_OK : ASTER_ERR_CORRUPT);
        free(sealed);
    }
    aster_entry_builder_fini(&builder);
}

static void another_version_and_unknown_kinds_are_refused_with_the_next_step(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_entry_reader reader;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_bytes entry = sample(&builder);
    unsigned char *data = builder.data;
    data[0] = ASTER_ENTRY_VERSION + 1;
    uint8_t *sealed = fuzz_seal(data, entry.size - 8);
    assert_int_equal(aster_entry_open((struct aster_bytes){sealed, entry.size}, &reader, &error), ASTER_ERR_VERSION);
    assert_non_null(strstr(error.message, "newer Aster"));
    free(sealed);
    data[0] = ASTER_ENTRY_VERSION;
    for (unsigned kind = 0; kind < 256; kind++) {
        data[1] = (unsigned char)kind;
        sealed = fuzz_seal(data, entry.size - 8);
        bool known = kind == ASTER_RECORD_ROW;
        aster_status status = read_all((struct aster_bytes){sealed, entry.size});
        assert_int_equal(status, known ? ASTER_OK : ASTER_ERR_CORRUPT);
        free(sealed);
    }
    aster_entry_builder_fini(&builder);
}

static void what_no_row_or_event_can_be_is_refused_and_leaves_the_entry_alone(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_bytes entry;
    assert_int_equal(aster_entry_seal(&builder, &entry, NULL), ASTER_ERR_INVALID);
    add(&builder, row_record("r"));
    size_t used = builder.used;
    struct aster_record wrong[8] = {row_record(""),       row_record("r"),     removed_record("r", -1),
                                    row_record("r"),      event_record("", 1), event_record("r", -1),
                                    event_record("r", 1), event_record("r", 1)};
    wrong[1].kind = (enum aster_record_kind)4;
    wrong[3].row.epoch = -1;
    wrong[6].event.kind = (enum aster_event_kind)99;
    wrong[7].event.reason = (enum aster_reason)99;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(aster_entry_add(&builder, &wrong[i], NULL), ASTER_ERR_INVALID);
        assert_int_equal(builder.used, used);
        assert_int_equal(builder.records, 1);
    }
    aster_entry_builder_fini(&builder);
}

static void a_full_entry_takes_no_more_and_can_still_be_sealed(void **state)
{
    (void)state;
    static const char large[ASTER_VALUE_MAX];
    struct aster_entry_builder builder = {0};
    struct aster_bytes entry;
    struct aster_record record = row_record("r");
    record.row.value = (struct aster_bytes){large, sizeof large};
    aster_status status;
    while ((status = aster_entry_add(&builder, &record, NULL)) == ASTER_OK) {
        assert_true(builder.records < 100);
    }
    assert_int_equal(status, ASTER_ERR_LIMIT);
    assert_true(builder.records >= 15);
    assert_int_equal(aster_entry_seal(&builder, &entry, NULL), ASTER_OK);
    assert_true(entry.size <= ASTER_ENTRY_MAX);
    assert_int_equal(read_all(entry), ASTER_OK);
    aster_entry_builder_fini(&builder);
}

static void without_memory_nothing_is_added(void **state)
{
    (void)state;
    struct aster_entry_builder builder = {0};
    struct aster_record record = row_record("r");
    aster_alloc_fail_after(0);
    aster_status status = aster_entry_add(&builder, &record, NULL);
    aster_alloc_fail_after(-1);
    assert_int_equal(status, ASTER_ERR_NOMEM);
    assert_int_equal(builder.records, 0);
    add(&builder, record);
    aster_entry_builder_fini(&builder);
}

/* Entries are stored on disks: these bytes never change within version 1. They are put together here field by field,
 * and only the check at the end is taken from the code. */
static void the_bytes_of_version_1_are_fixed(void **state)
{
    (void)state;
    static const unsigned char golden[] = {
        1,                                                   /* version */
        1,    0x0b, 1,                                       /* a row: held, takeover, with a request id; acquire */
        5,    'r',  10,   'h',  'o',  'l',  'd',  'e',  'r', /* resource and holder in full: size + 4 */
        10,   'b',  'e',  'f',  'o',  'r',  'e',  2,         /* last holder in full; the caller is the holder */
        7,    2,    0,    0x90, 0x4e, 3,    0xac, 0x02, /* epoch, distances; ttl 10000, renewals, value revision 300 */
        1,    2,    3,    0,    0,    0,    0,    0,    0,   0, 0, 0, 0, 0, 0, 0, /* request id */
        5,    'v',  'a',  'l',  'u',  'e',                                        /* value */
        3,    2,    0,    1,    2,    3,    12,      /* an event: takeover; resource, actor and previous as above */
        0x80, 0xd0, 0x95, 0xff, 0xbc, 0x31, 7,    0, /* unix_ms, epoch, carried epoch */
        2,    8,    'g',  'o',  'n',  'e',  9};      /* a removal, and the floor */
    struct aster_entry_builder builder = {0};
    struct aster_bytes entry = sample(&builder);
    assert_int_equal(entry.size, sizeof golden + 8);
    assert_memory_equal(entry.data, golden, sizeof golden);
    aster_entry_builder_fini(&builder);
}

static void an_integer_has_one_spelling(void **state)
{
    (void)state;
    static const struct {
        unsigned char bytes[11];
        size_t size;
    } refused[] = {{{0x80, 0}, 2},
                   {{0x80}, 1},
                   {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2}, 10},
                   {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 11}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct aster_reader reader = {refused[i].bytes, refused[i].size, 0, false};
        aster_read_varint(&reader);
        assert_true(reader.failed);
    }
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        unsigned char bytes[10];
        struct aster_writer writer = {bytes, sizeof bytes, 0, false};
        aster_write_varint(&writer, values[i]);
        struct aster_reader reader = {bytes, writer.used, 0, false};
        assert_int_equal(aster_read_varint(&reader), values[i]);
        assert_false(reader.failed);
        assert_int_equal(reader.used, writer.used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_they_were_and_in_order),
        cmocka_unit_test(the_largest_numbers_survive),
        cmocka_unit_test(a_kept_value_is_not_written_again),
        cmocka_unit_test(names_that_were_just_mentioned_take_one_byte),
        cmocka_unit_test(every_truncation_and_every_damaged_byte_is_detected),
        cmocka_unit_test(a_sealed_truncation_is_an_error_unless_it_ends_a_record),
        cmocka_unit_test(another_version_and_unknown_kinds_are_refused_with_the_next_step),
        cmocka_unit_test(what_no_row_or_event_can_be_is_refused_and_leaves_the_entry_alone),
        cmocka_unit_test(a_full_entry_takes_no_more_and_can_still_be_sealed),
        cmocka_unit_test(without_memory_nothing_is_added),
        cmocka_unit_test(the_bytes_of_version_1_are_fixed),
        cmocka_unit_test(an_integer_has_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
