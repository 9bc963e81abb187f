#include "json/json.h"

#include <stdlib.h>
#include <time.h>

const char *aster_text_instant(int64_t unix_ms, char text[ASTER_INSTANT_MAX])
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    text[0] = '\0';
    if (unix_ms > 0 && gmtime_r(&seconds, &utc) != NULL) {
        strftime(text, ASTER_INSTANT_MAX, "%Y-%m-%dT%H:%M:%SZ", &utc);
    }
    return text;
}

static json_t *base64(struct aster_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *data = bytes.data;
    char *text = malloc(4 * (bytes.size / 3 + 1) + 1);
    if (text == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t i = 0; i < bytes.size; i += 3) {
        size_t left = bytes.size - i;
        unsigned group = (unsigned)data[i] << 16 | (left > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                         (left > 2 ? (unsigned)data[i + 2] : 0);
        text[used++] = digits[group >> 18];
        text[used++] = digits[group >> 12 & 63];
        text[used++] = left > 1 ? digits[group >> 6 & 63] : '=';
        text[used++] = left > 2 ? digits[group & 63] : '=';
    }
    json_t *json = json_pack("{s:s#}", "base64", text, used);
    free(text);
    return json;
}

json_t *aster_json_bytes(struct aster_bytes bytes)
{
    json_t *json = json_stringn(bytes.size > 0 ? bytes.data : "", bytes.size);
    return json != NULL ? json : base64(bytes);
}

/* NULL is written as null. */
static json_t *name_or_null(struct aster_bytes name)
{
    return name.size > 0 ? aster_json_bytes(name) : json_null();
}

json_t *aster_json_snapshot(const struct aster_snapshot *snapshot)
{
    char since[ASTER_INSTANT_MAX];
    aster_text_instant(snapshot->since_unix_ms, since);
    return json_pack(
        "{s:o, s:I, s:b, s:o, s:s?, s:I, s:I, s:I, s:I, s:o, s:I}", "resource", aster_json_bytes(snapshot->resource),
        "epoch", (json_int_t)snapshot->epoch, "held", snapshot->held, "holder", name_or_null(snapshot->holder), "since",
        snapshot->held && since[0] != '\0' ? since : NULL, "remaining_ms",
        (json_int_t)(snapshot->remaining_ns / 1000000), "ttl_ms", (json_int_t)snapshot->ttl_ms, "lease_revision",
        (json_int_t)snapshot->lease_revision, "value_revision", (json_int_t)snapshot->value_revision, "last_holder",
        name_or_null(snapshot->last_holder), "last_epoch_held", (json_int_t)snapshot->last_epoch_held);
}

json_t *aster_json_decision(const struct aster_decision *decision)
{
    bool granted = decision->outcome == ASTER_GRANTED;
    return json_pack("{s:s, s:s?, s:I, s:b, s:o}", "outcome", granted ? "granted" : "denied", "reason",
                     granted ? NULL : aster_reason_name(decision->reason), "epoch", (json_int_t)decision->epoch,
                     "takeover", decision->takeover, "row", aster_json_snapshot(&decision->snapshot));
}

json_t *aster_json_event(const struct aster_event *event)
{
    char at[ASTER_INSTANT_MAX];
    return json_pack("{s:I, s:s, s:s, s:s?, s:o, s:o, s:o, s:I, s:I}", "revision", (json_int_t)event->revision, "at",
                     aster_text_instant(event->unix_ms, at), "event", aster_event_name(event->kind), "reason",
                     event->reason != ASTER_REASON_NONE ? aster_reason_name(event->reason) : NULL, "resource",
                     aster_json_bytes(event->resource), "actor", name_or_null(event->actor), "previous",
                     name_or_null(event->previous), "epoch", (json_int_t)event->epoch, "carried_epoch",
                     (json_int_t)event->carried_epoch);
}
