/* Listing page by page from a store that walks over everything for each question. */
#include "support/unit.h"

#include <stdio.h>

#include "aster/sys/serializer.h"
#include "grantor/ahead.h"
#include "support/fake_clock.h"

#define ROWS 50000
#define PAGE 1025

static struct fake_clock *now;
static struct aster_serializer *store;
static struct grantor_ahead *ahead;
static struct aster_error error;
static size_t questions;
static int removed; /* a row that is no longer there; -1 = none */

static void submit(void *self, struct aster_request *request)
{
    (void)self;
    request->complete(request, ASTER_ERR_UNSUPPORTED, NULL, NULL);
}

static void nothing(void *self)
{
    (void)self;
}

static aster_status idle(void *self, int64_t timeout_ms)
{
    (void)self;
    (void)timeout_ms;
    return ASTER_OK;
}

static aster_status list_page(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                              struct aster_error *detail)
{
    (void)self;
    (void)detail;
    char name[16];
    size_t count = 0;
    questions++;
    for (int i = 0; i < ROWS; i++) {
        struct aster_snapshot row = {.held = true, .remaining_ns = INT64_C(5000000000)};
        snprintf(name, sizeof name, "row/%05d", i);
        row.resource = aster_text(name);
        if (i != removed && strncmp(name, query->prefix.data, query->prefix.size) == 0 &&
            aster_bytes_compare(row.resource, query->after) > 0 && (!visit(&row, user) || ++count == query->limit)) {
            break;
        }
    }
    return ASTER_OK;
}

static const struct aster_serializer_ops ops = {.struct_size = sizeof ops,
                                                .name = "walks",
                                                .submit = submit,
                                                .close = nothing,
                                                .wait = idle,
                                                .destroy = nothing,
                                                .list_page = list_page};

static int open_all(void **state)
{
    (void)state;
    questions = 0;
    removed = -1;
    now = fake_clock_create();
    ahead = grantor_ahead_create();
    return aster_serializer_create(&ops, NULL, fake_clock_clock(now), &store, &error) != ASTER_OK || ahead == NULL;
}

static int close_all(void **state)
{
    (void)state;
    grantor_ahead_destroy(ahead);
    aster_serializer_destroy(store);
    fake_clock_destroy(now);
    return 0;
}

/* What one page has shown. */
struct shown {
    size_t max;
    size_t count;
    char last[16];
    int64_t remaining_ns;
};

static bool look(const struct aster_snapshot *row, void *user)
{
    struct shown *shown = user;
    if (shown->count == shown->max) {
        return false;
    }
    shown->count++;
    snprintf(shown->last, sizeof shown->last, "%.*s", (int)row->resource.size, (const char *)row->resource.data);
    shown->remaining_ns = row->remaining_ns;
    return true;
}

static struct shown page(const char *prefix, const char *after, size_t max)
{
    struct shown shown = {.max = max};
    assert_int_equal(
        grantor_ahead_list(ahead, store, aster_text(prefix), aster_text(after), max + 1, look, &shown, &error),
        ASTER_OK);
    return shown;
}

static void many_pages_cost_few_questions_and_leave_no_row_out(void **state)
{
    (void)state;
    char name[16] = "";
    size_t total = 0;
    struct shown shown;
    do {
        shown = page("row/", name, PAGE - 1);
        total += shown.count;
        char expected[16];
        snprintf(expected, sizeof expected, "row/%05zu", total - 1);
        assert_string_equal(shown.last, expected);
        snprintf(name, sizeof name, "%s", shown.last);
    } while (shown.count == PAGE - 1);
    assert_int_equal(total, ROWS);
    assert_in_range(questions, 1, 8); /* of 49 pages */
}

static void a_single_page_reads_no_more_than_it_needs(void **state)
{
    (void)state;
    struct shown shown = page("row/0", "", 3);
    assert_int_equal(shown.count, 3);
    assert_string_equal(shown.last, "row/00002");
    assert_int_equal(questions, 1);
}

static void what_was_read_ahead_is_forgotten_after_a_second(void **state)
{
    (void)state;
    page("row/", "", 10);
    struct shown shown = page("row/", "row/00009", 10);
    assert_int_equal(questions, 2);
    fake_clock_advance_ms(now, 400);
    removed = 20;
    shown = page("row/", "row/00019", 1);
    assert_int_equal(questions, 2);
    assert_string_equal(shown.last, "row/00020"); /* a moment old, and it says how much time is left now */
    assert_true(shown.remaining_ns == INT64_C(4600000000));
    fake_clock_advance_ms(now, 600);
    shown = page("row/", "row/00019", 1);
    assert_int_equal(questions, 3);
    assert_string_equal(shown.last, "row/00021");
}

static void another_prefix_or_an_earlier_name_is_another_question(void **state)
{
    (void)state;
    page("row/", "row/00100", 10);
    assert_int_equal(questions, 1);
    struct shown shown = page("row/0", "row/00105", 1);
    assert_int_equal(questions, 2);
    assert_string_equal(shown.last, "row/00106");
    shown = page("row/0", "row/00050", 1);
    assert_int_equal(questions, 3);
    assert_string_equal(shown.last, "row/00051");
    assert_int_equal(page("none/", "", 5).count, 0);
    assert_int_equal(page("row/", "row/99999", 5).count, 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(many_pages_cost_few_questions_and_leave_no_row_out),
        EACH(a_single_page_reads_no_more_than_it_needs),
        EACH(what_was_read_ahead_is_forgotten_after_a_second),
        EACH(another_prefix_or_an_earlier_name_is_another_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
