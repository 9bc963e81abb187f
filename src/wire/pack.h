/* Between protobuf-c and the caller's memory. */
#ifndef WIRE_PACK_H
#define WIRE_PACK_H

#include <protobuf-c/protobuf-c.h>

#include "aster/bytes.h"
#include "aster/status.h"
#include "wire/scratch.h"

/* Unpack into the scratch; nothing needs to be freed. NULL with detail: ASTER_ERR_LIMIT when the scratch is full,
 * ASTER_ERR_INVALID otherwise. */
void *aster_message_unpack(const ProtobufCMessageDescriptor *descriptor, struct aster_bytes payload,
                           struct aster_scratch *scratch, struct aster_error *error);

/* Errors: ASTER_ERR_INVALID when `size` is too small. */
aster_status aster_message_pack(const ProtobufCMessage *message, void *data, size_t size, size_t *length,
                                struct aster_error *error);

/* "the scratch is full" as an error. */
aster_status aster_scratch_full(struct aster_error *error);

static inline struct aster_bytes aster_from_binary(ProtobufCBinaryData data)
{
    return (struct aster_bytes){data.data, data.len};
}

/* protobuf-c's view is not const, but packing only reads. */
static inline ProtobufCBinaryData aster_to_binary(struct aster_bytes bytes)
{
    return (ProtobufCBinaryData){bytes.size, (uint8_t *)(uintptr_t)bytes.data};
}

#endif
