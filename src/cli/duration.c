#include "cli/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "aster/bytes.h"
#include "base/error.h"

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define UNIT_COUNT (sizeof units / sizeof units[0])

static size_t find_unit(const char *text, size_t length)
{
    size_t i = 0;
    while (i < UNIT_COUNT && !(strlen(units[i].name) == length && memcmp(units[i].name, text, length) == 0)) {
        i++;
    }
    return i;
}

static aster_status refuse(const char *text, const char *why, struct aster_error *error)
{
    char shown[ASTER_PRINTABLE_MAX];
    return aster_error_set(error, ASTER_ERR_INVALID, "duration \"%s\" %s", aster_printable(aster_text(text), shown),
                           why);
}

aster_status aster_duration_parse(const char *text, int64_t *ms, struct aster_error *error)
{
    static const char digits[] = "0123456789";
    int64_t total = 0;
    size_t next_unit = 0;
    const char *at = text;
    do {
        size_t digit_count = strspn(at, digits);
        if (digit_count == 0) {
            return refuse(text, "is not a number followed by a unit: write for example 500ms, 30s, 5m or 1h30m", error);
        }
        int64_t number = 0;
        for (size_t i = 0; i < digit_count; i++) {
            if (__builtin_mul_overflow(number, INT64_C(10), &number) ||
                __builtin_add_overflow(number, (int64_t)(at[i] - '0'), &number)) {
                return refuse(text, "is too long: 24h is the most a lease can last", error);
            }
        }
        at += digit_count;
        size_t length = strcspn(at, digits);
        if (length == 0) {
            return refuse(text,
                          "has no unit, and seconds or milliseconds is no guess to make: write for example 30s or "
                          "500ms",
                          error);
        }
        if (*at == '.' || *at == ',') {
            return refuse(text, "has a fraction: write whole numbers, for example 1500ms or 1s500ms", error);
        }
        size_t unit = find_unit(at, length);
        if (unit == UNIT_COUNT) {
            return refuse(text, "has a unit that is none of d, h, m, s, ms: write for example 500ms, 30s or 1h30m",
                          error);
        }
        if (unit < next_unit) {
            return refuse(text, "has its units in the wrong order: write the larger one first, each once", error);
        }
        next_unit = unit + 1;
        if (__builtin_mul_overflow(number, units[unit].ms, &number) || __builtin_add_overflow(total, number, &total)) {
            return refuse(text, "is too long: 24h is the most a lease can last", error);
        }
        at += length;
    } while (*at != '\0');
    *ms = total;
    return ASTER_OK;
}

const char *aster_duration_format(int64_t ms, char text[ASTER_DURATION_TEXT_SIZE])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        int64_t count = ms / units[i].ms;
        if (count > 0 || (used == 0 && i == UNIT_COUNT - 1)) {
            used +=
                (size_t)snprintf(text + used, ASTER_DURATION_TEXT_SIZE - used, "%" PRId64 "%s", count, units[i].name);
            ms -= count * units[i].ms;
        }
    }
    return text;
}
