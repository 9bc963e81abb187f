/* Durations on the command line carry a unit, or are refused with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/bytes.h"
#include "cli/duration.h"

static void durations_with_units_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"30s", 30000},
                {"500ms", 500},
                {"5m", 300000},
                {"1h", 3600000},
                {"1h30m", 5400000},
                {"0s", 0},
                {"1d", 86400000},
                {"1m1ms", 60001},
                {"1d2h3m4s5ms", 93784005},
                {"0030s", 30000},
                {"9223372036854775807ms", INT64_MAX}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t ms = -1;
        assert_int_equal(aster_duration_parse(good[i].text, &ms, NULL), ASTER_OK);
        assert_true(ms == good[i].ms);
    }
}

static void a_bare_number_is_refused_because_its_unit_is_unknown(void **state)
{
    (void)state;
    static const char *const bad[] = {"30", "0", "1h30"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_error error = ASTER_ERROR_INIT;
        int64_t ms = -1;
        assert_int_equal(aster_duration_parse(bad[i], &ms, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "no unit"));
        assert_non_null(strstr(error.message, "30s"));
        assert_true(ms == -1);
    }
}

static void what_is_no_duration_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "s",
                                      "-1s",
                                      "+1s",
                                      " 1s",
                                      "1s ",
                                      "1 s",
                                      "1.5s",
                                      "30sec",
                                      "1S",
                                      "1m1h",
                                      "1s1s",
                                      "1s,",
                                      "1ss",
                                      "ms",
                                      "0x1s",
                                      "1e3s",
                                      "\xff\x31s",
                                      "9223372036854775808ms",
                                      "9223372036854775807s",
                                      "106751991168d"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_error error = ASTER_ERROR_INIT;
        int64_t ms = -1;
        assert_int_equal(aster_duration_parse(bad[i], &ms, &error), ASTER_ERR_INVALID);
        assert_true(error.message[0] != '\0' && strchr(error.message, '\n') == NULL);
        assert_true(ms == -1);
    }
}

static void a_formatted_duration_reads_back_as_the_same(void **state)
{
    (void)state;
    const int64_t values[] = {0, 1, 999, 1000, 1500, 6666, 60000, 90000, 3600000, 86400000, 93784005, INT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[ASTER_DURATION_TEXT_SIZE];
        int64_t ms = -1;
        assert_int_equal(aster_duration_parse(aster_duration_format(values[i], text), &ms, NULL), ASTER_OK);
        assert_true(ms == values[i]);
    }
    char text[ASTER_DURATION_TEXT_SIZE];
    assert_string_equal(aster_duration_format(5400000, text), "1h30m");
    assert_string_equal(aster_duration_format(0, text), "0ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_with_units_are_read_exactly),
        cmocka_unit_test(a_bare_number_is_refused_because_its_unit_is_unknown),
        cmocka_unit_test(what_is_no_duration_is_refused),
        cmocka_unit_test(a_formatted_duration_reads_back_as_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
