/* The log of asterd: one well-formed line per event in both formats, whatever the names are. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "grantor/audit_log.h"
#include "grantor/log.h"

static char written[2 * GRANTOR_LINE_MAX];

/* What `line` is when it ends. */
static const char *end_of(struct grantor_line *line)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    grantor_log_to(ends[1]);
    grantor_line_end(line);
    grantor_log_to(STDERR_FILENO);
    close(ends[1]);
    ssize_t got = read(ends[0], written, sizeof written - 1);
    close(ends[0]);
    assert_true(got > 0);
    written[got] = '\0';
    assert_ptr_equal(strchr(written, '\n'), written + got - 1); /* one line */
    return written;
}

static json_t *parsed(struct grantor_line *line)
{
    json_error_t error;
    json_t *json = json_loads(end_of(line), JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        fail_msg("%s: %s", error.text, written);
    }
    return json;
}

/* The value of one key of a logfmt line, unquoted as a parser of logfmt does it; the string is the caller's. */
static char *logfmt_value(const char *line, const char *key)
{
    char start[64];
    snprintf(start, sizeof start, " %s=", key);
    const char *at = strstr(line, start);
    assert_non_null(at);
    at += strlen(start);
    if (*at != '"') {
        return strndup(at, strcspn(at, " \n"));
    }
    json_t *text = json_loads(at, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(text);
    char *value = strdup(json_string_value(text));
    json_decref(text);
    return value;
}

/* Lines that are gathered come together, in order and whole, however many there are. */
static void gathered_lines_are_written_together(void **state)
{
    (void)state;
    enum { LINES = 1000 };
    static struct grantor_gathering lines;
    FILE *file = tmpfile();
    assert_non_null(file);
    grantor_log_to(fileno(file));
    grantor_log_gather(&lines);
    for (int i = 0; i < LINES; i++) {
        struct grantor_line line;
        grantor_line_init(&line, GRANTOR_INFO, "granted");
        grantor_line_number(&line, "number", i);
        grantor_line_end(&line);
        assert_true(i > 0 || lseek(fileno(file), 0, SEEK_END) == 0); /* nothing yet */
    }
    grantor_log_gather(NULL);
    grantor_log_to(STDERR_FILENO);
    rewind(file);
    char text[GRANTOR_LINE_MAX];
    for (int i = 0; i < LINES; i++) {
        char wanted[32];
        assert_non_null(fgets(text, sizeof text, file));
        snprintf(wanted, sizeof wanted, " number=%d\n", i);
        assert_non_null(strstr(text, wanted));
    }
    assert_null(fgets(text, sizeof text, file));
    fclose(file);
}

struct hostile {
    const char *name;
    const char *read;  /* NULL: the same comes back */
    const char *never; /* must not be in the line as it is */
};

static const struct hostile hostiles[] = {
    {"plain", NULL, "\\"},
    {"quote\" level=error event=\"forged", NULL, "quote\" level"},
    {"back\\slash\\", NULL, NULL},
    {"new\nts=2026 level=info event=granted", NULL, "\nts=2026"},
    {"tab\tcarriage\rbell\a", NULL, "\r"},
    {"terminal \x1b[2J\x1b]0;title\x07 escape", NULL, "\x1b"},
    {"delete\x7f", NULL, "\x7f"},
    {"c1 \xc2\x9b"
     "31m",
     NULL, "\xc2\x9b"},
    {"line \xe2\x80\xa8 separator", NULL, "\xe2\x80\xa8"},
    {"order \xe2\x80\xae txt.exe", NULL, "\xe2\x80\xae"},
    {"invisible \xe2\x80\x8b", NULL, "\xe2\x80\x8b"},
    {"not utf-8 \xff\xc3(\xed\xa0\x80", "not utf-8 \xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
     "\xff"},
    {"cut short \xe2\x82", "cut short \xef\xbf\xbd\xef\xbf\xbd", NULL},
    {"M\xc3\xbcnchen \xf0\x9f\x94\x92 \xe6\x9d\xb1\xe4\xba\xac", NULL, "\\u"},
    {"", NULL, NULL},
};

static void begin(struct grantor_line *line, enum grantor_log_format format)
{
    grantor_log_use(format);
    grantor_line_init(line, GRANTOR_WARNING, "peer-refused");
}

static void hostile_names_stay_inside_their_field_of_a_json_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostiles / sizeof hostiles[0]; i++) {
        struct grantor_line line;
        begin(&line, GRANTOR_LOG_JSON);
        grantor_line_bytes(&line, "peer", aster_text(hostiles[i].name));
        grantor_line_text(&line, "error", hostiles[i].name);
        grantor_line_number(&line, "count", INT64_MIN);
        json_t *json = parsed(&line);
        const char *read = hostiles[i].read != NULL ? hostiles[i].read : hostiles[i].name;
        assert_int_equal(json_object_size(json), 6);
        assert_string_equal(json_string_value(json_object_get(json, "level")), "warning");
        assert_string_equal(json_string_value(json_object_get(json, "event")), "peer-refused");
        assert_string_equal(json_string_value(json_object_get(json, "peer")), read);
        assert_string_equal(json_string_value(json_object_get(json, "error")), read);
        assert_true(json_integer_value(json_object_get(json, "count")) == INT64_MIN);
        assert_true(hostiles[i].never == NULL || strstr(written, hostiles[i].never) == NULL);
        json_decref(json);
    }
}

static void hostile_names_stay_inside_their_field_of_a_logfmt_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostiles / sizeof hostiles[0]; i++) {
        struct grantor_line line;
        begin(&line, GRANTOR_LOGFMT);
        grantor_line_text(&line, "error", hostiles[i].name);
        grantor_line_bytes(&line, "peer", aster_text(hostiles[i].name));
        const char *text = end_of(&line);
        const char *read = hostiles[i].read != NULL ? hostiles[i].read : hostiles[i].name;
        char *error = logfmt_value(text, "error");
        char *level = logfmt_value(text, "level");
        assert_int_equal(strncmp(text, "ts=20", 5), 0);
        assert_string_equal(level, "warning");
        assert_string_equal(error, read);
        assert_true(hostiles[i].never == NULL || strstr(text, hostiles[i].never) == NULL);
        free(level);
        free(error);
    }
}

/* However long the fields are and wherever the cut falls. */
static void a_line_that_is_too_long_is_cut_and_still_well_formed(void **state)
{
    (void)state;
    static char text[2 * GRANTOR_LINE_MAX];
    for (size_t size = GRANTOR_LINE_MAX - 160; size < GRANTOR_LINE_MAX + 16; size++) {
        for (int kind = 0; kind < 3; kind++) {
            struct grantor_line line;
            begin(&line, GRANTOR_LOG_JSON);
            for (size_t i = 0; i < size; i++) {
                text[i] = kind == 0 ? 'x' : kind == 1 ? '\n' : "\xc3\xbc"[i % 2];
            }
            text[size] = '\0';
            grantor_line_text(&line, "first", text);
            grantor_line_text(&line, "second", "abc def");
            grantor_line_number(&line, "third", -123456);
            grantor_line_bytes(&line, "fourth", aster_text(text));
            json_t *json = parsed(&line);
            assert_true(strlen(written) <= GRANTOR_LINE_MAX);
            assert_non_null(json_object_get(json, "first"));
            json_decref(json);
        }
    }
}

static const char *audit(struct aster_event event)
{
    int ends[2];
    event.resource = aster_text("catalog");
    assert_int_equal(pipe(ends), 0);
    grantor_log_to(ends[1]);
    grantor_audit_log(&event);
    grantor_log_to(STDERR_FILENO);
    close(ends[1]);
    ssize_t got = read(ends[0], written, sizeof written - 1);
    close(ends[0]);
    assert_true(got > 0);
    written[got] = '\0';
    return written;
}

static void refused_writes_are_warnings_and_epochs_from_the_future_are_errors(void **state)
{
    (void)state;
    grantor_log_use(GRANTOR_LOGFMT);
    const char *line = audit((struct aster_event){
        .kind = ASTER_EVENT_FENCE_REJECTED, .reason = ASTER_REASON_STALE_EPOCH, .epoch = 5, .carried_epoch = 4});
    assert_non_null(strstr(line, "level=warning event=fence-rejected"));
    assert_non_null(strstr(line, "reason=STALE_EPOCH carried=4"));
    line = audit((struct aster_event){
        .kind = ASTER_EVENT_FENCE_REJECTED, .reason = ASTER_REASON_FUTURE_EPOCH, .epoch = 5, .carried_epoch = 9});
    assert_non_null(strstr(line, "level=error event=fence-rejected"));
    line = audit((struct aster_event){.kind = ASTER_EVENT_UNAUTHORIZED, .reason = ASTER_REASON_UNAUTHORIZED});
    assert_non_null(strstr(line, "level=warning event=unauthorized"));
    line = audit((struct aster_event){.kind = ASTER_EVENT_TAKEOVER, .epoch = 6});
    assert_non_null(strstr(line, "level=info event=takeover resource=\"catalog\" epoch=6"));
}

static void only_the_two_formats_have_names(void **state)
{
    (void)state;
    enum grantor_log_format format = GRANTOR_LOGFMT;
    assert_true(grantor_log_format_named("json", &format));
    assert_int_equal(format, GRANTOR_LOG_JSON);
    assert_false(grantor_log_format_named("JSON", &format));
    assert_false(grantor_log_format_named("", &format));
    assert_int_equal(format, GRANTOR_LOG_JSON);
    assert_true(grantor_log_format_named("logfmt", &format));
    assert_int_equal(format, GRANTOR_LOGFMT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathered_lines_are_written_together),
        cmocka_unit_test(hostile_names_stay_inside_their_field_of_a_json_line),
        cmocka_unit_test(hostile_names_stay_inside_their_field_of_a_logfmt_line),
        cmocka_unit_test(a_line_that_is_too_long_is_cut_and_still_well_formed),
        cmocka_unit_test(refused_writes_are_warnings_and_epochs_from_the_future_are_errors),
        cmocka_unit_test(only_the_two_formats_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
