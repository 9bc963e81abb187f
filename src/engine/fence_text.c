#include <inttypes.h>
#include <stdio.h>

#include "aster/fence.h"
#include "aster/limits.h"
#include "base/error.h"
#include "engine/cursor.h"

#define PREFIX "aster1:"

static bool is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("._~/@-", byte) != NULL);
}

static void write_escaped(struct aster_writer *writer, struct aster_bytes bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    const unsigned char *data = bytes.data;
    for (size_t i = 0; i < bytes.size; i++) {
        if (is_plain(data[i])) {
            aster_write_raw(writer, &data[i], 1);
        } else {
            const char escape[] = {'%', digits[data[i] >> 4], digits[data[i] & 15]};
            aster_write_raw(writer, escape, sizeof escape);
        }
    }
}

static aster_status check_fence(const struct aster_fence *fence, struct aster_error *error)
{
    aster_status status = aster_resource_check(fence->resource, error);
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK && fence->epoch < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "epoch is %" PRId64 ": it must be 0 or more", fence->epoch);
    }
    return status;
}

aster_status aster_fence_format(const struct aster_fence *fence, char *text, size_t size, struct aster_error *error)
{
    aster_status status = check_fence(fence, error);
    if (status != ASTER_OK) {
        return status;
    }
    char epoch[24];
    int length = snprintf(epoch, sizeof epoch, "%" PRId64, fence->epoch);
    char line[ASTER_FENCE_TEXT_MAX];
    struct aster_writer writer = {(unsigned char *)line, sizeof line, 0, false};
    aster_write_raw(&writer, PREFIX, strlen(PREFIX));
    aster_write_raw(&writer, epoch, (size_t)length);
    aster_write_raw(&writer, ":", 1);
    write_escaped(&writer, fence->holder);
    aster_write_raw(&writer, ":", 1);
    write_escaped(&writer, fence->resource);
    aster_write_raw(&writer, "", 1);
    if (writer.failed || writer.used > size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "the fence's text needs %zu bytes, the buffer has %zu: give %d", writer.used, size,
                               ASTER_FENCE_TEXT_MAX);
    }
    memcpy(text, line, writer.used);
    return ASTER_OK;
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Undo write_escaped() for [text, end). Only what it writes is accepted, so every fence has one text. */
static bool read_escaped(const char *text, const char *end, struct aster_writer *writer)
{
    while (text < end) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '%') {
            int high = end - text >= 3 ? digit_value(text[1]) : -1;
            int low = high >= 0 ? digit_value(text[2]) : -1;
            if (low < 0 || is_plain((unsigned char)(high << 4 | low))) {
                return false;
            }
            byte = (unsigned char)(high << 4 | low);
            text += 3;
        } else if (is_plain(byte)) {
            text++;
        } else {
            return false;
        }
        aster_write_raw(writer, &byte, 1);
    }
    return !writer->failed;
}

static bool read_epoch(const char *text, const char *end, int64_t *epoch)
{
    int64_t value = 0;
    if (text == end || (*text == '0' && end - text > 1)) {
        return false;
    }
    for (; text < end; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *text - '0', &value)) {
            return false;
        }
    }
    *epoch = value;
    return true;
}

aster_status aster_fence_parse(const char *text, char *storage, size_t storage_size, struct aster_fence *fence,
                               struct aster_error *error)
{
    const char *epoch_at = strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? text + strlen(PREFIX) : NULL;
    const char *holder_at = epoch_at != NULL ? strchr(epoch_at, ':') : NULL;
    const char *resource_at = holder_at != NULL ? strchr(holder_at + 1, ':') : NULL;
    char shown[ASTER_PRINTABLE_MAX];
    struct aster_fence fresh;
    struct aster_writer writer = {(unsigned char *)storage, storage_size, 0, false};
    if (resource_at == NULL || !read_epoch(epoch_at, holder_at, &fresh.epoch) ||
        !read_escaped(holder_at + 1, resource_at, &writer)) {
        goto malformed;
    }
    fresh.holder = (struct aster_bytes){storage, writer.used};
    if (!read_escaped(resource_at + 1, resource_at + 1 + strlen(resource_at + 1), &writer)) {
        goto malformed;
    }
    fresh.resource = (struct aster_bytes){storage + fresh.holder.size, writer.used - fresh.holder.size};
    aster_status status = check_fence(&fresh, error);
    if (status == ASTER_OK) {
        *fence = fresh;
    }
    return status;

malformed:
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "\"%s\" is not a fence: expected aster1:EPOCH:HOLDER:RESOURCE as in ASTER_FENCE",
                           aster_printable(aster_text(text), shown));
}
