/* A mistyped word finds the one that was meant, and nothing finds a word that is far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/nearest.h"

static void the_distance_counts_each_slip_once_and_both_ways(void **state)
{
    (void)state;
    static const struct {
        const char *a;
        const char *b;
        size_t distance;
    } cases[] = {{"", "", 0},
                 {"", "run", 3},
                 {"run", "run", 0},
                 {"rum", "run", 1},
                 {"inpsect", "inspect", 1},
                 {"relase", "release", 1},
                 {"tll", "ttl", 1},
                 {"list", "history", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(aster_word_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(aster_word_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
    const char *longer = "a word that is longer than any option or command can be";
    assert_true(aster_word_distance(longer, longer) > 2);
}

static void the_nearest_word_is_found_only_if_it_is_near(void **state)
{
    (void)state;
    static const char *const words[] = {"run", "renew", "release", "revoke", "inspect"};
    static const struct {
        const char *wanted;
        const char *found;
    } cases[] = {{"rum", "run"}, {"inpsect", "inspect"}, {"relase", "release"}, {"get", NULL},
                 {"", NULL},     {"xyz", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct aster_nearest nearest = {cases[i].wanted, NULL, 0};
        for (size_t j = 0; j < sizeof words / sizeof words[0]; j++) {
            aster_nearest_offer(&nearest, words[j]);
        }
        if (cases[i].found == NULL) {
            assert_null(nearest.found);
        } else {
            assert_string_equal(nearest.found, cases[i].found);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_distance_counts_each_slip_once_and_both_ways),
        cmocka_unit_test(the_nearest_word_is_found_only_if_it_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
