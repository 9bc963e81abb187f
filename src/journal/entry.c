#include "journal/entry.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "engine/codec.h"
#include "engine/cursor.h"
#include "journal/entry_names.h"

#define CHECK_SIZE 8U
/* More than any record takes beside its names and its value. */
#define RECORD_FIXED_MAX 160U

enum row_flag {
    FLAG_HELD = 1,
    FLAG_TAKEOVER = 2,
    FLAG_KEEP_VALUE = 4,
    FLAG_REQUEST_ID = 8, /* not all zero */
    FLAGS_ALL = 15
};

static const unsigned char no_request_id[ASTER_REQUEST_ID_SIZE];

void aster_entry_builder_fini(struct aster_entry_builder *builder)
{
    free(builder->data);
    *builder = (struct aster_entry_builder){0};
}

void aster_entry_builder_reset(struct aster_entry_builder *builder)
{
    *builder = (struct aster_entry_builder){.data = builder->data, .capacity = builder->capacity};
}

static const char *check_event(const struct aster_event *event)
{
    if (event->kind < ASTER_EVENT_GRANTED || event->kind > ASTER_EVENT_UNAUTHORIZED) {
        return "the event has an unknown kind";
    }
    if (event->reason < ASTER_REASON_NONE || event->reason > ASTER_REASON_NO_FENCE) {
        return "the event has an unknown reason";
    }
    if (event->revision < 0 || event->unix_ms < 0 || event->epoch < 0 || event->carried_epoch < 0) {
        return "a number of the event is negative";
    }
    bool named = aster_resource_check(event->resource, NULL) == ASTER_OK &&
                 (event->actor.size == 0 || aster_identity_check(event->actor, "actor", NULL) == ASTER_OK) &&
                 (event->previous.size == 0 || aster_identity_check(event->previous, "holder", NULL) == ASTER_OK);
    return named ? NULL : "a name of the event is not valid";
}

/* NULL, or what is wrong with the record. */
static const char *check_record(const struct aster_record *record)
{
    switch (record->kind) {
    case ASTER_RECORD_ROW:
        if (record->keep_value && record->row.value.size > 0) {
            return "a value is kept and given";
        }
        return aster_row_check(record->resource, &record->row);
    case ASTER_RECORD_REMOVED:
        if (record->floor < 0) {
            return "the floor is negative";
        }
        return aster_resource_check(record->resource, NULL) == ASTER_OK ? NULL : "the resource is not a valid name";
    case ASTER_RECORD_EVENT:
        return check_event(&record->event);
    }
    return "the record has an unknown kind";
}

static size_t size_bound(const struct aster_record *record)
{
    const struct aster_row *row = &record->row;
    const struct aster_event *event = &record->event;
    switch (record->kind) {
    case ASTER_RECORD_ROW:
        return RECORD_FIXED_MAX + record->resource.size + row->holder.size + row->last_holder.size +
               row->applied.caller.size + row->value.size;
    case ASTER_RECORD_REMOVED:
        return RECORD_FIXED_MAX + record->resource.size;
    default:
        return RECORD_FIXED_MAX + event->resource.size + event->actor.size + event->previous.size;
    }
}

/* Room for `more` bytes and the check. */
static aster_status reserve(struct aster_entry_builder *builder, size_t more, struct aster_error *error)
{
    size_t needed = builder->used + more + 1 + CHECK_SIZE;
    if (needed > ASTER_ENTRY_MAX) {
        return aster_error_set(error, ASTER_ERR_LIMIT,
                               "the journal entry holds %zu bytes and must not exceed %zu: begin another one",
                               builder->used, ASTER_ENTRY_MAX);
    }
    if (needed <= builder->capacity) {
        return ASTER_OK;
    }
    size_t capacity = builder->capacity * 2 > needed ? builder->capacity * 2 : needed;
    unsigned char *data = aster_realloc(builder->data, capacity);
    if (data == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a journal entry of %zu bytes", needed);
    }
    builder->data = data;
    builder->capacity = capacity;
    return ASTER_OK;
}

static void write_row(struct aster_writer *writer, struct aster_entry_name *names, const struct aster_record *record)
{
    const struct aster_row *row = &record->row;
    bool has_id = memcmp(row->applied.request_id, no_request_id, ASTER_REQUEST_ID_SIZE) != 0;
    unsigned flags = (row->held ? FLAG_HELD : 0) | (row->applied.takeover ? FLAG_TAKEOVER : 0) |
                     (record->keep_value ? FLAG_KEEP_VALUE : 0) | (has_id ? FLAG_REQUEST_ID : 0);
    aster_write_integer(writer, flags, 1);
    aster_write_integer(writer, (uint64_t)row->applied.kind, 1);
    aster_entry_name_write(writer, names, ASTER_SLOT_RESOURCE, record->resource);
    aster_entry_name_write(writer, names, ASTER_SLOT_HOLDER, row->holder);
    aster_entry_name_write(writer, names, ASTER_SLOT_LAST_HOLDER, row->last_holder);
    aster_entry_name_write(writer, names, ASTER_SLOT_CALLER, row->applied.caller);
    aster_write_varint(writer, (uint64_t)row->epoch);
    aster_write_varint(writer, (uint64_t)(row->epoch - row->last_epoch_held));
    aster_write_varint(writer, (uint64_t)(row->epoch - row->applied.epoch));
    aster_write_varint(writer, (uint64_t)row->ttl_ms);
    aster_write_varint(writer, (uint64_t)row->lease_revision);
    aster_write_varint(writer, (uint64_t)row->value_revision);
    if (has_id) {
        aster_write_raw(writer, row->applied.request_id, ASTER_REQUEST_ID_SIZE);
    }
    if (!record->keep_value) {
        aster_write_varint(writer, row->value.size);
        aster_write_raw(writer, row->value.data, row->value.size);
    }
}

static void read_row(struct aster_reader *reader, struct aster_entry_name *names, struct aster_record *record)
{
    struct aster_row *row = &record->row;
    uint64_t flags = aster_read_integer(reader, 1);
    row->held = (flags & FLAG_HELD) != 0;
    row->applied.takeover = (flags & FLAG_TAKEOVER) != 0;
    record->keep_value = (flags & FLAG_KEEP_VALUE) != 0;
    row->applied.kind = (enum aster_operation_kind)aster_read_integer(reader, 1);
    record->resource = aster_entry_name_read(reader, names, ASTER_SLOT_RESOURCE);
    row->holder = aster_entry_name_read(reader, names, ASTER_SLOT_HOLDER);
    row->last_holder = aster_entry_name_read(reader, names, ASTER_SLOT_LAST_HOLDER);
    row->applied.caller = aster_entry_name_read(reader, names, ASTER_SLOT_CALLER);
    uint64_t epoch = aster_read_varint(reader);
    row->epoch = (int64_t)epoch;
    row->last_epoch_held = (int64_t)(epoch - aster_read_varint(reader));
    row->applied.epoch = (int64_t)(epoch - aster_read_varint(reader));
    row->ttl_ms = (int64_t)aster_read_varint(reader);
    row->lease_revision = (int64_t)aster_read_varint(reader);
    row->value_revision = (int64_t)aster_read_varint(reader);
    if ((flags & FLAG_REQUEST_ID) != 0) {
        aster_read_raw(reader, row->applied.request_id, ASTER_REQUEST_ID_SIZE);
    }
    if (!record->keep_value) {
        row->value = aster_read_view(reader, aster_read_varint(reader));
    }
    bool id_is_zero = memcmp(row->applied.request_id, no_request_id, ASTER_REQUEST_ID_SIZE) == 0;
    bool id_is_as_said = id_is_zero == ((flags & FLAG_REQUEST_ID) == 0);
    reader->failed = reader->failed || (flags & ~(uint64_t)FLAGS_ALL) != 0 || !id_is_as_said;
}

static void write_event(struct aster_writer *writer, struct aster_entry_name *names, const struct aster_event *event)
{
    aster_write_integer(writer, (uint64_t)event->kind, 1);
    aster_write_integer(writer, (uint64_t)event->reason, 1);
    aster_entry_name_write(writer, names, ASTER_SLOT_RESOURCE, event->resource);
    aster_entry_name_write(writer, names, ASTER_SLOT_CALLER, event->actor);
    aster_entry_name_write(writer, names, ASTER_SLOT_LAST_HOLDER, event->previous);
    aster_write_varint(writer, (uint64_t)event->revision);
    aster_write_varint(writer, (uint64_t)event->unix_ms);
    aster_write_varint(writer, (uint64_t)event->epoch);
    aster_write_varint(writer, (uint64_t)event->carried_epoch);
}

static void read_event(struct aster_reader *reader, struct aster_entry_name *names, struct aster_event *event)
{
    event->kind = (enum aster_event_kind)aster_read_integer(reader, 1);
    event->reason = (enum aster_reason)aster_read_integer(reader, 1);
    event->resource = aster_entry_name_read(reader, names, ASTER_SLOT_RESOURCE);
    event->actor = aster_entry_name_read(reader, names, ASTER_SLOT_CALLER);
    event->previous = aster_entry_name_read(reader, names, ASTER_SLOT_LAST_HOLDER);
    event->revision = (int64_t)aster_read_varint(reader);
    event->unix_ms = (int64_t)aster_read_varint(reader);
    event->epoch = (int64_t)aster_read_varint(reader);
    event->carried_epoch = (int64_t)aster_read_varint(reader);
}

aster_status aster_entry_add(struct aster_entry_builder *builder, const struct aster_record *record,
                             struct aster_error *error)
{
    const char *broken = check_record(record);
    if (broken != NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the record cannot be journalled: %s", broken);
    }
    aster_status status = reserve(builder, size_bound(record), error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_writer writer = {builder->data, builder->capacity, builder->used, false};
    if (builder->records == 0) {
        aster_write_integer(&writer, ASTER_ENTRY_VERSION, 1);
    }
    aster_write_integer(&writer, (uint64_t)record->kind, 1);
    if (record->kind == ASTER_RECORD_ROW) {
        write_row(&writer, builder->names, record);
    } else if (record->kind == ASTER_RECORD_REMOVED) {
        aster_entry_name_write(&writer, builder->names, ASTER_SLOT_RESOURCE, record->resource);
        aster_write_varint(&writer, (uint64_t)record->floor);
    } else {
        write_event(&writer, builder->names, &record->event);
    }
    builder->used = writer.used;
    builder->records++;
    return ASTER_OK;
}

aster_status aster_entry_seal(struct aster_entry_builder *builder, struct aster_bytes *entry, struct aster_error *error)
{
    if (builder->records == 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a journal entry without records says nothing: add one");
    }
    /* The room for it was reserved by each record. */
    struct aster_writer writer = {builder->data, builder->capacity, builder->used, false};
    aster_write_integer(&writer, aster_encoding_check((struct aster_bytes){builder->data, builder->used}), CHECK_SIZE);
    *entry = (struct aster_bytes){builder->data, writer.used};
    return ASTER_OK;
}

aster_status aster_entry_open(struct aster_bytes entry, struct aster_entry_reader *reader, struct aster_error *error)
{
    if (entry.size < 2 + CHECK_SIZE) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the journal entry is cut off at %zu bytes", entry.size);
    }
    const unsigned char *data = entry.data;
    size_t size = entry.size - CHECK_SIZE;
    struct aster_reader tail = {data + size, CHECK_SIZE, 0, false};
    if (aster_read_integer(&tail, CHECK_SIZE) != aster_encoding_check((struct aster_bytes){data, size})) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the journal entry of %zu bytes fails its check", entry.size);
    }
    if (data[0] != ASTER_ENTRY_VERSION) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "the journal entry has version %u, this build reads version %d: use a newer Aster",
                               data[0], ASTER_ENTRY_VERSION);
    }
    *reader = (struct aster_entry_reader){.data = data, .size = size, .used = 1};
    return ASTER_OK;
}

aster_status aster_entry_next(struct aster_entry_reader *reader, struct aster_record *record, bool *found,
                              struct aster_error *error)
{
    if (reader->used == reader->size) {
        *found = false;
        return ASTER_OK;
    }
    struct aster_reader cursor = {reader->data, reader->size, reader->used, false};
    struct aster_record fresh = {.kind = (enum aster_record_kind)aster_read_integer(&cursor, 1)};
    if (fresh.kind == ASTER_RECORD_ROW) {
        read_row(&cursor, reader->names, &fresh);
    } else if (fresh.kind == ASTER_RECORD_REMOVED) {
        fresh.resource = aster_entry_name_read(&cursor, reader->names, ASTER_SLOT_RESOURCE);
        fresh.floor = (int64_t)aster_read_varint(&cursor);
    } else {
        read_event(&cursor, reader->names, &fresh.event);
    }
    const char *broken = cursor.failed ? "its lengths do not add up" : NULL;
    if (broken == NULL || fresh.kind < ASTER_RECORD_ROW || fresh.kind > ASTER_RECORD_EVENT) {
        broken = check_record(&fresh);
    }
    if (broken != NULL) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the journal entry is broken at byte %zu of %zu: %s",
                               reader->used, reader->size, broken);
    }
    reader->used = cursor.used;
    *record = fresh;
    *found = true;
    return ASTER_OK;
}
