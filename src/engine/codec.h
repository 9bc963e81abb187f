/* The versioned byte encoding of a row and of an operation: what journals store. Little-endian, length-prefixed, with a
 * version byte in front and a 64-bit check of all that precedes at the end. Equal content encodes to equal bytes.
 * Pure: nothing is allocated; encoders write to the caller's buffer, decoders return views into the input. */
#ifndef ENGINE_CODEC_H
#define ENGINE_CODEC_H

#include "aster/transition.h"

#define ASTER_ROW_ENCODING_VERSION 1
#define ASTER_OPERATION_ENCODING_VERSION 1

/* Upper bounds of an encoding, for buffers. */
#define ASTER_ROW_ENCODED_MAX (ASTER_VALUE_MAX + ASTER_RESOURCE_MAX + 3 * ASTER_IDENTITY_MAX + 256)
#define ASTER_OPERATION_ENCODED_MAX (ASTER_VALUE_MAX + ASTER_RESOURCE_MAX + 2 * ASTER_IDENTITY_MAX + 256)

/* Exact size of the encoding. */
size_t aster_row_encoded_size(struct aster_bytes resource, const struct aster_row *row);
size_t aster_operation_encoded_size(const struct aster_operation *operation);

/* Encode into `data` (capacity `size`), give the length. Errors: ASTER_ERR_INVALID (too small, or content that no
 * valid row or operation has). */
aster_status aster_row_encode(struct aster_bytes resource, const struct aster_row *row, void *data, size_t size,
                              size_t *length, struct aster_error *error);
aster_status aster_operation_encode(const struct aster_operation *operation, void *data, size_t size, size_t *length,
                                    struct aster_error *error);

/* Decode exactly all of `bytes`. Views borrow from it. Errors: ASTER_ERR_VERSION (newer than this build),
 * ASTER_ERR_CORRUPT (truncated, trailing bytes, failed check, or content that breaks a rule). */
aster_status aster_row_decode(struct aster_bytes bytes, struct aster_bytes *resource, struct aster_row *row,
                              struct aster_error *error);
aster_status aster_operation_decode(struct aster_bytes bytes, struct aster_operation *operation,
                                    struct aster_error *error);

/* The 64-bit check that ends every encoding, over all bytes before it. Against damage, not against an adversary. */
uint64_t aster_encoding_check(struct aster_bytes bytes);

/* A 64-bit check of the row's durable content, for stores that keep rows in columns. */
uint64_t aster_row_checksum(struct aster_bytes resource, const struct aster_row *row);

/* Does the row obey the invariants of a durable row? NULL, or a static text naming what is broken. */
const char *aster_row_check(struct aster_bytes resource, const struct aster_row *row);

#endif
