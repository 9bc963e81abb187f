/* Reads of the store for the HTTP port. What is asked for is checked strictly: a mistyped parameter would look like an
 * answer to another question. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "aster/sys/clock.h"
#include "grantor/http_page.h"
#include "json/json.h"

#define LIMIT_MAX 1000
#define LIMIT_DEFAULT 100
#define PARAMETERS_MAX 4

/* What one request asks for. Views borrow from the connection. */
struct question {
    const char *const *names; /* the parameters that it may have, then NULL */
    const char *wrong;
    struct aster_bytes values[PARAMETERS_MAX];
};

static enum MHD_Result take(void *user, enum MHD_ValueKind kind, const char *key, size_t key_size, const char *value,
                            size_t value_size)
{
    (void)kind;
    struct question *question = user;
    for (int i = 0; question->names[i] != NULL; i++) {
        if (strlen(question->names[i]) == key_size && memcmp(question->names[i], key, key_size) == 0) {
            question->values[i] = (struct aster_bytes){value, value != NULL ? value_size : 0};
            return MHD_YES;
        }
    }
    question->wrong = key;
    return MHD_NO;
}

/* A whole decimal number, and nothing else. */
static bool read_number(struct aster_bytes text, int64_t least, int64_t most, int64_t *number)
{
    int64_t value = 0;
    const char *digits = text.data;
    for (size_t i = 0; i < text.size; i++) {
        if (digits[i] < '0' || digits[i] > '9' || value > (INT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (digits[i] - '0');
    }
    if (text.size == 0 || value < least || value > most) {
        return false;
    }
    *number = value;
    return true;
}

/* Also reads the parameter `limit`, which both questions have at `limit_at`. */
static bool understand(struct MHD_Connection *connection, struct question *question, int limit_at, int64_t *limit,
                       struct grantor_http_page *page)
{
    MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take, question);
    if (question->wrong != NULL) {
        grantor_http_fail(page, MHD_HTTP_BAD_REQUEST, "\"%.40s\" is no parameter here", question->wrong);
        return false;
    }
    *limit = LIMIT_DEFAULT;
    if (question->values[limit_at].data != NULL && !read_number(question->values[limit_at], 1, LIMIT_MAX, limit)) {
        grantor_http_fail(page, MHD_HTTP_BAD_REQUEST, "limit is a number from 1 to %d", LIMIT_MAX);
        return false;
    }
    return true;
}

static void finish(struct grantor_http_page *page, json_t *json, aster_status status, const struct aster_error *error)
{
    if (status != ASTER_OK) {
        unsigned code = status == ASTER_ERR_UNSUPPORTED ? MHD_HTTP_NOT_IMPLEMENTED : MHD_HTTP_SERVICE_UNAVAILABLE;
        grantor_http_fail(page, code, "%s: %s", aster_status_name(status), error->message);
    } else {
        page->text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
        page->size = page->text != NULL ? strlen(page->text) : 0;
    }
    json_decref(json);
}

struct rows {
    json_t *array;
    int64_t now_ms;
    size_t left;
    bool more;
    bool failed;
};

static bool add_row(const struct aster_snapshot *row, void *user)
{
    struct rows *rows = user;
    char expires[ASTER_INSTANT_MAX];
    if (rows->left == 0) {
        rows->more = true;
        return false;
    }
    rows->left--;
    json_t *json = aster_json_snapshot(row);
    aster_text_instant(rows->now_ms + row->remaining_ns / 1000000, expires);
    rows->failed = json_object_set_new(json, "expires", row->held ? json_string(expires) : json_null()) != 0 ||
                   json_array_append_new(rows->array, json) != 0;
    return !rows->failed;
}

void grantor_http_leases(struct MHD_Connection *connection, struct aster_serializer *serializer,
                         struct grantor_http_page *page)
{
    static const char *const names[] = {"prefix", "after", "limit", NULL};
    struct question question = {.names = names};
    struct aster_list_query query = ASTER_LIST_QUERY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t limit;
    if (!understand(connection, &question, 2, &limit, page)) {
        return;
    }
    query.prefix = question.values[0];
    query.after = question.values[1];
    query.limit = (size_t)limit + 1;
    struct rows rows = {json_array(), aster_clock_unix_ms(aster_clock_system()), (size_t)limit, false, false};
    aster_status status = aster_list_page(serializer, &query, add_row, &rows, &error);
    const json_t *last = json_array_get(rows.array, json_array_size(rows.array) - 1);
    json_t *next = rows.more ? json_object_get(last, "resource") : NULL;
    json_t *json =
        !rows.failed ? json_pack("{s:O, s:b, s:O?}", "leases", rows.array, "more", rows.more, "next", next) : NULL;
    json_decref(rows.array);
    finish(page, json, status, &error);
}

struct events {
    json_t *array;
    int64_t revision; /* of the last one */
    size_t left;
    bool more;
    bool failed;
};

static bool add_event(const struct aster_event *event, void *user)
{
    struct events *events = user;
    if (events->left == 0) {
        events->more = true;
        return false;
    }
    events->left--;
    events->revision = event->revision;
    events->failed = json_array_append_new(events->array, aster_json_event(event)) != 0;
    return !events->failed;
}

static void write_lines(struct grantor_http_page *page, const json_t *array)
{
    FILE *out = open_memstream(&page->text, &page->size);
    if (out == NULL) {
        return;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        json_dumpf(json_array_get(array, i), out, JSON_COMPACT);
        fputc('\n', out);
    }
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(page->text);
        page->text = NULL;
    }
    page->type = GRANTOR_TYPE_LINES;
}

/* format=lines or Accept: application/x-ndjson; false when the format is none. */
static bool wants_lines(struct MHD_Connection *connection, struct aster_bytes format, bool *lines)
{
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    *lines = format.data != NULL ? aster_bytes_equal(format, aster_text("lines"))
                                 : accept != NULL && strstr(accept, GRANTOR_TYPE_LINES) != NULL;
    return format.data == NULL || *lines || aster_bytes_equal(format, aster_text("json"));
}

void grantor_http_history(struct MHD_Connection *connection, struct aster_serializer *serializer,
                          struct grantor_http_page *page)
{
    static const char *const names[] = {"resource", "after", "limit", "format", NULL};
    struct question question = {.names = names};
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t limit;
    bool lines;
    if (!understand(connection, &question, 2, &limit, page)) {
        return;
    }
    bool from = question.values[1].data != NULL;
    if (from && !read_number(question.values[1], 0, INT64_MAX, &query.after_revision)) {
        grantor_http_fail(page, MHD_HTTP_BAD_REQUEST, "after is the revision of an event, a number from 0");
        return;
    }
    if (!wants_lines(connection, question.values[3], &lines)) {
        grantor_http_fail(page, MHD_HTTP_BAD_REQUEST, "format is json or lines");
        return;
    }
    query.resource = question.values[0];
    query.limit = from ? 0 : (size_t)limit; /* from a revision on the oldest, else the newest */
    struct events events = {json_array(), query.after_revision, (size_t)limit, false, false};
    aster_status status = aster_history(serializer, &query, add_event, &events, &error);
    if (status == ASTER_OK && !events.failed && lines) {
        write_lines(page, events.array);
        json_decref(events.array);
        return;
    }
    json_t *json = !events.failed ? json_pack("{s:O, s:I, s:b}", "events", events.array, "revision",
                                              (json_int_t)events.revision, "more", events.more)
                                  : NULL;
    json_decref(events.array);
    finish(page, json, status, &error);
}
