/* The parts of `aster demo` that its own expectations do not hold to account: the messages between its processes, the
 * order of the timeline, the PDF's steps, the store's comparison, the picture's escaping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/demo/expectation.h"
#include "cli/demo/invoice_store.h"
#include "cli/demo/message.h"
#include "cli/demo/output_directory.h"
#include "cli/demo/timeline.h"
#include "cli/demo/timeline_json.h"
#include "cli/demo/timeline_svg.h"

static void a_message_survives_the_pipe(void **state)
{
    (void)state;
    for (int kind = 0; kind < DEMO_SAYS_KINDS; kind++) {
        struct demo_message sent = {.kind = (enum demo_message_kind)kind, .at_ns = INT64_MAX, .epoch = 7, .count = -3};
        strcpy(sent.word, "STALE_EPOCH");
        strcpy(sent.text, "two words");
        char line[DEMO_MESSAGE_LINE_MAX];
        int length = aster_demo_message_format(&sent, line);
        assert_int_equal(line[length - 1], '\n');
        line[length - 1] = '\0';
        struct demo_message got;
        assert_true(aster_demo_message_parse(line, &got));
        assert_int_equal(got.kind, sent.kind);
        assert_int_equal(got.at_ns, sent.at_ns);
        assert_int_equal(got.epoch, 7);
        assert_int_equal(got.count, -3);
        assert_string_equal(got.word, "STALE_EPOCH");
        assert_string_equal(got.text, "two words");
    }
}

static void a_line_break_in_a_text_does_not_end_the_message(void **state)
{
    (void)state;
    struct demo_message sent = {.kind = DEMO_SAYS_FAILED};
    memset(sent.text, 'x', sizeof sent.text - 1);
    sent.text[3] = '\n';
    char line[DEMO_MESSAGE_LINE_MAX];
    int length = aster_demo_message_format(&sent, line);
    assert_int_equal(strlen(line), length);
    assert_ptr_equal(strchr(line, '\n'), line + length - 1);
}

static void a_line_that_is_no_message_is_refused(void **state)
{
    (void)state;
    struct demo_message message;
    assert_false(aster_demo_message_parse("", &message));
    assert_false(aster_demo_message_parse("granted 1 2", &message));
    assert_false(aster_demo_message_parse("unheard-of 1 2 3 - text", &message));
    assert_false(aster_demo_message_parse("granted one 2 3 - text", &message));
}

static void a_late_report_is_put_in_order_and_equal_times_keep_theirs(void **state)
{
    (void)state;
    static struct demo_act act;
    aster_demo_act_init(&act, "t", "s", true);
    aster_demo_act_add(&act, 30, DEMO_LANE_A, DEMO_MARK_NOTE, 0, "third");
    aster_demo_act_add(&act, 10, DEMO_LANE_B, DEMO_MARK_NOTE, 0, "first");
    aster_demo_act_add(&act, 10, DEMO_LANE_A, DEMO_MARK_NOTE, 0, "second");
    assert_int_equal(aster_demo_act_settle(&act, 20), 2);
    assert_string_equal(act.events[0].text, "first");
    assert_string_equal(act.events[1].text, "second");
    aster_demo_act_add(&act, 25, DEMO_LANE_A, DEMO_MARK_NOTE, 0, "between");
    assert_int_equal(aster_demo_act_settle(&act, INT64_MAX), 4);
    assert_string_equal(act.events[2].text, "between");
    assert_string_equal(act.events[3].text, "third");
}

static void more_events_than_there_is_room_for_are_counted(void **state)
{
    (void)state;
    static struct demo_act act;
    aster_demo_act_init(&act, "t", "s", true);
    for (int i = 0; i < DEMO_EVENTS_MAX + 2; i++) {
        aster_demo_act_add(&act, i, DEMO_LANE_A, DEMO_MARK_NOTE, 0, "%d", i);
    }
    assert_int_equal(act.event_count, DEMO_EVENTS_MAX);
    assert_int_equal(act.dropped, 2);
}

static const struct demo_invoice order = {{{"Paper", 3, 33333}, {"Ink", 1, 5}}, 2};

static void an_invoice_adds_up(void **state)
{
    (void)state;
    char text[DEMO_MONEY_MAX];
    assert_int_equal(aster_demo_invoice_net_cents(&order), 100004);
    assert_int_equal(aster_demo_invoice_vat_cents(&order), 19001);
    assert_string_equal(aster_demo_money(aster_demo_invoice_total_cents(&order), text), "1,190.05");
    assert_string_equal(aster_demo_money(5, text), "0.05");
    assert_string_equal(aster_demo_money(123456789, text), "1,234,567.89");
}

static void render(int64_t epoch, unsigned char **bytes, size_t *size)
{
    struct demo_pdf *pdf = NULL;
    assert_int_equal(aster_demo_pdf_create(&order, "worker-X", epoch, &pdf, NULL), ASTER_OK);
    for (unsigned step = 0; step < aster_demo_pdf_steps(pdf); step++) {
        assert_int_equal(aster_demo_pdf_step(pdf, step, NULL), ASTER_OK);
    }
    assert_int_equal(aster_demo_pdf_finish(pdf, bytes, size, NULL), ASTER_OK);
    aster_demo_pdf_destroy(pdf);
}

static void the_store_returns_what_was_published_and_tells_it_from_another(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(aster_demo_store_connect(":memory:", &db, NULL), ASTER_OK);
    assert_int_equal(aster_demo_store_create(db, NULL, NULL), ASTER_OK);
    struct demo_stored empty = {0};
    assert_int_equal(aster_demo_store_read(db, &empty, NULL), ASTER_OK);
    assert_false(empty.found);
    struct demo_stored stored[2];
    for (int i = 0; i < 2; i++) {
        struct demo_publication publication = {.published_by = "worker-X", .epoch = i + 1, .total_cents = 5};
        unsigned char *pdf = NULL;
        render(i + 1, &pdf, &publication.pdf_size);
        publication.pdf = pdf;
        assert_int_equal(aster_demo_store_publish(db, &publication, NULL), ASTER_OK);
        assert_int_equal(aster_demo_store_read(db, &stored[i], NULL), ASTER_OK);
        assert_true(stored[i].found);
        assert_true(aster_demo_stored_is_pdf(&stored[i]));
        assert_int_equal(stored[i].pdf_size, publication.pdf_size);
        free(pdf);
    }
    assert_true(aster_demo_stored_equal(&stored[0], &stored[0]));
    assert_false(aster_demo_stored_equal(&stored[0], &stored[1]));
    assert_false(aster_demo_stored_equal(&empty, &empty));
    stored[0].pdf_size -= 8;
    assert_false(aster_demo_stored_is_pdf(&stored[0]));
    aster_demo_stored_fini(&stored[0]);
    aster_demo_stored_fini(&stored[1]);
    sqlite3_close(db);
}

static void correcting_the_order_changes_its_total(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    struct demo_invoice before;
    struct demo_invoice after;
    assert_int_equal(aster_demo_store_connect(":memory:", &db, NULL), ASTER_OK);
    assert_int_equal(aster_demo_store_create(db, NULL, NULL), ASTER_OK);
    assert_int_equal(aster_demo_store_read_order(db, &before, NULL), ASTER_OK);
    assert_int_equal(aster_demo_store_correct_order(db, NULL), ASTER_OK);
    assert_int_equal(aster_demo_store_read_order(db, &after, NULL), ASTER_OK);
    assert_int_not_equal(aster_demo_invoice_total_cents(&before), aster_demo_invoice_total_cents(&after));
    sqlite3_close(db);
}

static void a_failed_expectation_is_counted_shown_and_reported(void **state)
{
    (void)state;
    struct demo_expectations list = {.count = 0};
    aster_demo_expect(&list, true, "a", "first", "seen");
    assert_int_equal(aster_demo_expectations_failed(&list), 0);
    aster_demo_expect(&list, false, "b", "second", "saw <%d>", 1);
    assert_int_equal(aster_demo_expectations_failed(&list), 1);
    json_t *json = aster_demo_json(NULL, 0, &list);
    assert_non_null(json);
    assert_true(json_is_false(json_object_get(json, "met")));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(json_object_get(json, "expectations"), 1), "observed")),
        "saw <1>");
    json_decref(json);
}

static void markup_in_a_text_is_escaped_in_the_picture(void **state)
{
    (void)state;
    static struct demo_act act;
    struct demo_expectations list = {.count = 0};
    aster_demo_act_init(&act, "<title> & \"more\"", "s", true);
    aster_demo_act_add(&act, act.start_ns + 5, DEMO_LANE_A, DEMO_MARK_REJECTED, 1, "<script>");
    char path[] = "/tmp/aster-demo-svg-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    const struct demo_caption caption = {"<caption>", "s", "stopped", "nothing"};
    assert_int_equal(aster_demo_svg_write(path, &caption, &act, 1, &list, NULL), ASTER_OK);
    char content[16384] = "";
    assert_true(read(fd, content, sizeof content - 1) > 0);
    close(fd);
    unlink(path);
    assert_null(strstr(content, "<script>"));
    assert_non_null(strstr(content, "&lt;script&gt;"));
    assert_non_null(strstr(content, "&lt;caption&gt;"));
    assert_non_null(strstr(content, "&lt;title&gt; &amp; &quot;more&quot;"));
}

static void write_file(const char *directory, const char *name)
{
    char path[DEMO_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
}

static bool file_exists(const char *directory, const char *name)
{
    char path[DEMO_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void only_a_demos_own_files_are_removed(void **state)
{
    (void)state;
    char theirs[] = "/tmp/aster-demo-test-XXXXXX";
    char directory[DEMO_PATH_MAX];
    struct aster_error error = ASTER_ERROR_INIT;
    assert_non_null(mkdtemp(theirs));
    write_file(theirs, "invoices.db");
    assert_int_equal(aster_demo_directory_open(theirs, directory, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "invoices.db"));
    assert_true(file_exists(theirs, "invoices.db"));
    aster_demo_directory_remove(theirs);

    assert_int_equal(aster_demo_directory_open(theirs, directory, NULL), ASTER_OK);
    write_file(directory, "invoices.db");
    write_file(directory, "notes");
    assert_int_equal(aster_demo_directory_open(theirs, directory, NULL), ASTER_OK); /* again: it is the demo's */
    assert_false(file_exists(directory, "invoices.db"));
    assert_true(file_exists(directory, "notes"));
    char notes[DEMO_PATH_MAX + 32];
    snprintf(notes, sizeof notes, "%s/notes", directory);
    unlink(notes);
    aster_demo_directory_remove(directory);
    assert_int_not_equal(access(theirs, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_survives_the_pipe),
        cmocka_unit_test(a_line_break_in_a_text_does_not_end_the_message),
        cmocka_unit_test(a_line_that_is_no_message_is_refused),
        cmocka_unit_test(a_late_report_is_put_in_order_and_equal_times_keep_theirs),
        cmocka_unit_test(more_events_than_there_is_room_for_are_counted),
        cmocka_unit_test(an_invoice_adds_up),
        cmocka_unit_test(the_store_returns_what_was_published_and_tells_it_from_another),
        cmocka_unit_test(correcting_the_order_changes_its_total),
        cmocka_unit_test(a_failed_expectation_is_counted_shown_and_reported),
        cmocka_unit_test(only_a_demos_own_files_are_removed),
        cmocka_unit_test(markup_in_a_text_is_escaped_in_the_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
