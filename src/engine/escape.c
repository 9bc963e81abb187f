#include "engine/escape.h"

#include <string.h>

static bool is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("._~/@-", byte) != NULL);
}

void aster_escape_write(struct aster_writer *writer, struct aster_bytes bytes)
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

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Undo write_escaped() for [text, end). Only what it writes is accepted, so every fence has one text. */
bool aster_escape_read(const char *text, const char *end, struct aster_writer *writer)
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

bool aster_epoch_read(const char *text, const char *end, int64_t *epoch)
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
