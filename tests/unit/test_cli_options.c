/* The option table fills its struct, or refuses in one line that says what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cli/options.h"

struct arguments {
    bool flag;
    const char *text;
    int64_t duration_ms;
    int64_t count;
    int choice;
};

static const char *const words[] = {"terminate", "kill", NULL};

static const struct aster_option options[] = {
    {"flag", 'f', ASTER_OPTION_FLAG, NULL, "a flag", offsetof(struct arguments, flag), NULL},
    {"text", 't', ASTER_OPTION_TEXT, "TEXT", "a text", offsetof(struct arguments, text), NULL},
    {"duration", 0, ASTER_OPTION_DURATION, "D", "a duration", offsetof(struct arguments, duration_ms), NULL},
    {"count", 'n', ASTER_OPTION_COUNT, "N", "a count", offsetof(struct arguments, count), NULL},
    {"choice", 0, ASTER_OPTION_CHOICE, "WORD", "a choice", offsetof(struct arguments, choice), words},
    ASTER_OPTION_END,
};

static aster_status parse(char **argv, struct arguments *arguments, int *operands, struct aster_error *error)
{
    int argc = 0;
    const struct aster_option_group groups[] = {{options, arguments}};
    while (argv[argc] != NULL) {
        argc++;
    }
    *arguments = (struct arguments){false, NULL, -1, -1, -1};
    return aster_options_parse(groups, 1, argc, argv, operands, error);
}

static void every_kind_of_option_reaches_its_member(void **state)
{
    (void)state;
    struct arguments arguments;
    int operands;
    char *argv[] = {"x",   "one",      "--flag", "--text=a b", "--duration", "1h30m", "-n", "9223372036854775807",
                    "two", "--choice", "kill",   "--",         "--three",    NULL};
    assert_int_equal(parse(argv, &arguments, &operands, NULL), ASTER_OK);
    assert_true(arguments.flag);
    assert_string_equal(arguments.text, "a b");
    assert_true(arguments.duration_ms == 5400000);
    assert_true(arguments.count == INT64_MAX);
    assert_int_equal(arguments.choice, 1);
    assert_string_equal(argv[operands], "one");
    assert_string_equal(argv[operands + 1], "two");
    assert_string_equal(argv[operands + 2], "--three");
}

static void what_is_not_given_keeps_its_default(void **state)
{
    (void)state;
    struct arguments arguments;
    int operands;
    char *argv[] = {"x", NULL};
    assert_int_equal(parse(argv, &arguments, &operands, NULL), ASTER_OK);
    assert_false(arguments.flag);
    assert_null(arguments.text);
    assert_true(arguments.duration_ms == -1 && arguments.count == -1 && arguments.choice == -1);
    assert_int_equal(operands, 1);
}

static void wrong_options_are_refused_and_named(void **state)
{
    (void)state;
    static const struct {
        char *first;
        char *second;
        const char *said;
    } bad[] = {
        {"--bogus", NULL, "--bogus"},
        {"-z", NULL, "-z"},
        {"--text", NULL, "--text needs"},
        {"-t", NULL, "--text needs"},
        {"--flag=1", NULL, "--flag takes no"},
        {"--duration", "30", "--duration"},
        {"--count", "-1", "--count"},
        {"--count", "1x", "--count"},
        {"--count", "", "--count"},
        {"--count", "9223372036854775808", "--count"},
        {"--choice", "stop", "terminate, kill"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct arguments arguments;
        struct aster_error error = ASTER_ERROR_INIT;
        int operands = 0;
        char *argv[] = {"x", bad[i].first, bad[i].second, NULL};
        assert_int_equal(parse(argv, &arguments, &operands, &error), ASTER_ERR_INVALID);
        if (strstr(error.message, bad[i].said) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", error.message, bad[i].said);
        }
        assert_null(strchr(error.message, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_option_reaches_its_member),
        cmocka_unit_test(what_is_not_given_keeps_its_default),
        cmocka_unit_test(wrong_options_are_refused_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
