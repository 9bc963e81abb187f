#include "engine/codec.h"

#include "base/error.h"
#include "engine/cursor.h"
#include "engine/siphash.h"

#define CHECK_SIZE 8U
#define FLAG_HELD 1U
#define FLAG_APPLIED_TAKEOVER 2U

/* Fixed by the format. */
static const struct aster_hash_key check_key = {UINT64_C(0x61737465722d726f), UINT64_C(0x772d636865636b31)};

uint64_t aster_encoding_check(struct aster_bytes bytes)
{
    return aster_siphash(&check_key, bytes);
}

static void write_row(struct aster_writer *writer, struct aster_bytes resource, const struct aster_row *row)
{
    unsigned flags = (row->held ? FLAG_HELD : 0) | (row->applied.takeover ? FLAG_APPLIED_TAKEOVER : 0);
    aster_write_integer(writer, ASTER_ROW_ENCODING_VERSION, 1);
    aster_write_integer(writer, flags, 1);
    aster_write_integer(writer, (uint64_t)row->applied.kind, 1);
    aster_write_integer(writer, (uint64_t)row->epoch, 8);
    aster_write_integer(writer, (uint64_t)row->ttl_ms, 8);
    aster_write_integer(writer, (uint64_t)row->lease_revision, 8);
    aster_write_integer(writer, (uint64_t)row->value_revision, 8);
    aster_write_integer(writer, (uint64_t)row->last_epoch_held, 8);
    aster_write_integer(writer, (uint64_t)row->applied.epoch, 8);
    aster_write_raw(writer, row->applied.request_id, ASTER_REQUEST_ID_SIZE);
    aster_write_bytes(writer, resource);
    aster_write_bytes(writer, row->holder);
    aster_write_bytes(writer, row->last_holder);
    aster_write_bytes(writer, row->applied.caller);
    aster_write_bytes(writer, row->value);
}

size_t aster_row_encoded_size(struct aster_bytes resource, const struct aster_row *row)
{
    return 3 + 6 * 8 + ASTER_REQUEST_ID_SIZE + 5 * 4 + resource.size + row->holder.size + row->last_holder.size +
           row->applied.caller.size + row->value.size + CHECK_SIZE;
}

static void write_operation(struct aster_writer *writer, const struct aster_operation *operation)
{
    aster_write_integer(writer, ASTER_OPERATION_ENCODING_VERSION, 1);
    aster_write_integer(writer, (uint64_t)operation->kind, 1);
    aster_write_integer(writer, operation->flags, 4);
    aster_write_raw(writer, operation->request_id, ASTER_REQUEST_ID_SIZE);
    aster_write_integer(writer, (uint64_t)operation->ttl_ms, 8);
    aster_write_integer(writer, (uint64_t)operation->epoch, 8);
    aster_write_integer(writer, (uint64_t)operation->lease_revision, 8);
    aster_write_integer(writer, (uint64_t)operation->value_revision, 8);
    aster_write_bytes(writer, operation->resource);
    aster_write_bytes(writer, operation->caller);
    aster_write_bytes(writer, operation->holder);
    aster_write_bytes(writer, operation->value);
}

size_t aster_operation_encoded_size(const struct aster_operation *operation)
{
    return 6 + ASTER_REQUEST_ID_SIZE + 4 * 8 + 4 * 4 + operation->resource.size + operation->caller.size +
           operation->holder.size + operation->value.size + CHECK_SIZE;
}

/* Append the check and hand out the length. */
static aster_status seal(struct aster_writer *writer, size_t *length, struct aster_error *error)
{
    if (!writer->failed) {
        aster_write_integer(writer, aster_encoding_check((struct aster_bytes){writer->data, writer->used}), CHECK_SIZE);
    }
    if (writer->failed) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the encoding does not fit %zu bytes: give a buffer of the encoded size", writer->size);
    }
    *length = writer->used;
    return ASTER_OK;
}

aster_status aster_row_encode(struct aster_bytes resource, const struct aster_row *row, void *data, size_t size,
                              size_t *length, struct aster_error *error)
{
    const char *broken = aster_row_check(resource, row);
    if (broken != NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the row cannot be encoded: %s", broken);
    }
    struct aster_writer writer = {data, size, 0, false};
    write_row(&writer, resource, row);
    return seal(&writer, length, error);
}

/* An encoded operation has been accepted once: hold it to the widest limits, which never change. */
static aster_status check_operation(const struct aster_operation *operation, struct aster_error *error)
{
    static const struct aster_limits widest = {sizeof widest, 1, ASTER_TTL_HARD_MAX_MS, ASTER_VALUE_MAX, 0, 0, 0};
    return aster_operation_check(operation, &widest, error);
}

aster_status aster_operation_encode(const struct aster_operation *operation, void *data, size_t size, size_t *length,
                                    struct aster_error *error)
{
    aster_status status = check_operation(operation, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_writer writer = {data, size, 0, false};
    write_operation(&writer, operation);
    return seal(&writer, length, error);
}

/* Version and check first: nothing of a damaged or newer encoding is interpreted. */
static aster_status unseal(struct aster_bytes bytes, unsigned version, const char *what, struct aster_reader *reader,
                           struct aster_error *error)
{
    if (bytes.size < 1 + CHECK_SIZE) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the encoded %s is cut off at %zu bytes", what, bytes.size);
    }
    const unsigned char *data = bytes.data;
    struct aster_reader tail = {data + bytes.size - CHECK_SIZE, CHECK_SIZE, 0, false};
    uint64_t expected = aster_encoding_check((struct aster_bytes){data, bytes.size - CHECK_SIZE});
    if (aster_read_integer(&tail, CHECK_SIZE) != expected) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the encoded %s of %zu bytes fails its check", what,
                               bytes.size);
    }
    if (data[0] != version) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "the encoded %s has version %u, this build reads version %u: use a newer Aster", what,
                               data[0], version);
    }
    *reader = (struct aster_reader){data, bytes.size - CHECK_SIZE, 1, false};
    return ASTER_OK;
}

static bool read_to_the_end(const struct aster_reader *reader)
{
    return !reader->failed && reader->used == reader->size;
}

aster_status aster_row_decode(struct aster_bytes bytes, struct aster_bytes *resource, struct aster_row *row,
                              struct aster_error *error)
{
    struct aster_reader reader;
    aster_status status = unseal(bytes, ASTER_ROW_ENCODING_VERSION, "row", &reader, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_row fresh = {0};
    uint64_t flags = aster_read_integer(&reader, 1);
    fresh.held = (flags & FLAG_HELD) != 0;
    fresh.applied.takeover = (flags & FLAG_APPLIED_TAKEOVER) != 0;
    fresh.applied.kind = (enum aster_operation_kind)aster_read_integer(&reader, 1);
    fresh.epoch = (int64_t)aster_read_integer(&reader, 8);
    fresh.ttl_ms = (int64_t)aster_read_integer(&reader, 8);
    fresh.lease_revision = (int64_t)aster_read_integer(&reader, 8);
    fresh.value_revision = (int64_t)aster_read_integer(&reader, 8);
    fresh.last_epoch_held = (int64_t)aster_read_integer(&reader, 8);
    fresh.applied.epoch = (int64_t)aster_read_integer(&reader, 8);
    aster_read_raw(&reader, fresh.applied.request_id, ASTER_REQUEST_ID_SIZE);
    struct aster_bytes name = aster_read_bytes(&reader);
    fresh.holder = aster_read_bytes(&reader);
    fresh.last_holder = aster_read_bytes(&reader);
    fresh.applied.caller = aster_read_bytes(&reader);
    fresh.value = aster_read_bytes(&reader);
    const char *broken = (flags & ~(uint64_t)(FLAG_HELD | FLAG_APPLIED_TAKEOVER)) != 0 ? "unknown flags" : NULL;
    if (broken == NULL) {
        broken = read_to_the_end(&reader) ? aster_row_check(name, &fresh) : "its lengths do not add up";
    }
    if (broken != NULL) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the encoded row of %zu bytes breaks a rule: %s", bytes.size,
                               broken);
    }
    *resource = name;
    *row = fresh;
    return ASTER_OK;
}

aster_status aster_operation_decode(struct aster_bytes bytes, struct aster_operation *operation,
                                    struct aster_error *error)
{
    struct aster_reader reader;
    aster_status status = unseal(bytes, ASTER_OPERATION_ENCODING_VERSION, "operation", &reader, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct aster_operation fresh = ASTER_OPERATION_INIT;
    fresh.kind = (enum aster_operation_kind)aster_read_integer(&reader, 1);
    fresh.flags = (uint32_t)aster_read_integer(&reader, 4);
    aster_read_raw(&reader, fresh.request_id, ASTER_REQUEST_ID_SIZE);
    fresh.ttl_ms = (int64_t)aster_read_integer(&reader, 8);
    fresh.epoch = (int64_t)aster_read_integer(&reader, 8);
    fresh.lease_revision = (int64_t)aster_read_integer(&reader, 8);
    fresh.value_revision = (int64_t)aster_read_integer(&reader, 8);
    fresh.resource = aster_read_bytes(&reader);
    fresh.caller = aster_read_bytes(&reader);
    fresh.holder = aster_read_bytes(&reader);
    fresh.value = aster_read_bytes(&reader);
    struct aster_error detail = ASTER_ERROR_INIT;
    if (!read_to_the_end(&reader)) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the encoded operation's lengths do not add up to %zu bytes",
                               bytes.size);
    }
    if (check_operation(&fresh, &detail) != ASTER_OK) {
        return aster_error_set(error, ASTER_ERR_CORRUPT, "the encoded operation breaks a rule: %.300s", detail.message);
    }
    *operation = fresh;
    return ASTER_OK;
}

/* Hash the parts one after the other, each keyed by what came before: equal to no other split of the same bytes. */
uint64_t aster_row_checksum(struct aster_bytes resource, const struct aster_row *row)
{
    unsigned char fixed[3 + 6 * 8 + ASTER_REQUEST_ID_SIZE + 5 * 4];
    struct aster_row lengths = *row;
    struct aster_writer writer = {fixed, sizeof fixed, 0, false};
    lengths.holder.size = lengths.last_holder.size = lengths.applied.caller.size = lengths.value.size = 0;
    write_row(&writer, (struct aster_bytes){NULL, 0}, &lengths);
    const struct aster_bytes parts[] = {{fixed, sizeof fixed}, resource,  row->holder, row->last_holder,
                                        row->applied.caller,   row->value};
    struct aster_hash_key key = check_key;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        key.k0 ^= aster_siphash(&key, parts[i]);
        key.k1 += parts[i].size + 1;
    }
    return key.k0;
}
