#include "wire/pack.h"

#include <stdbool.h>

#include "base/error.h"

struct unpacking {
    struct aster_scratch *scratch;
    bool full;
};

static void *take(void *user, size_t size)
{
    struct unpacking *unpacking = user;
    void *memory = aster_scratch_take(unpacking->scratch, size);
    unpacking->full |= memory == NULL;
    return memory;
}

static void keep(void *user, void *memory)
{
    (void)user;
    (void)memory;
}

aster_status aster_scratch_full(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_LIMIT,
                           "the message holds more than %d bytes once taken apart: send less in one message",
                           ASTER_SCRATCH_SIZE);
}

void *aster_message_unpack(const ProtobufCMessageDescriptor *descriptor, struct aster_bytes payload,
                           struct aster_scratch *scratch, struct aster_error *error)
{
    struct unpacking unpacking = {scratch, false};
    ProtobufCAllocator allocator = {take, keep, &unpacking};
    void *message = protobuf_c_message_unpack(descriptor, &allocator, payload.size, payload.data);
    if (message == NULL && unpacking.full) {
        aster_scratch_full(error);
    } else if (message == NULL) {
        aster_error_set(error, ASTER_ERR_INVALID, "%zu bytes are not a protobuf %s: use the schema of grantor.proto",
                        payload.size, descriptor->short_name);
    }
    return message;
}

aster_status aster_message_pack(const ProtobufCMessage *message, void *data, size_t size, size_t *length,
                                struct aster_error *error)
{
    size_t needed = protobuf_c_message_get_packed_size(message);
    if (needed > size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the message needs %zu bytes, the limit is %zu: send less in one message", needed, size);
    }
    *length = protobuf_c_message_pack(message, data);
    return ASTER_OK;
}
