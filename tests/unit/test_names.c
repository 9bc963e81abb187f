/* Names are compared byte by byte and refused when they are not printable UTF-8 of the right length. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/limits.h"

static aster_status check(const char *data, size_t size)
{
    struct aster_bytes name = {data, size};
    return aster_resource_check(name, NULL);
}

static void names_of_1_to_512_bytes_are_accepted_and_513_is_refused(void **state)
{
    (void)state;
    char name[ASTER_RESOURCE_MAX + 1];
    memset(name, 'a', sizeof name);
    const size_t good[] = {1, 64, 255, 512};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(check(name, good[i]), ASTER_OK);
    }
    assert_int_equal(check(name, 0), ASTER_ERR_INVALID);
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_resource_check((struct aster_bytes){name, 513}, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "513"));
    assert_non_null(strstr(error.message, "512"));
}

static void control_characters_are_refused(void **state)
{
    (void)state;
    assert_int_equal(check("a\0b", 3), ASTER_ERR_INVALID);
    assert_int_equal(check("a\nb", 3), ASTER_ERR_INVALID);
    assert_int_equal(check("a\x7f", 2), ASTER_ERR_INVALID);
    assert_int_equal(check("\xc2\x80", 2), ASTER_ERR_INVALID); /* U+0080, a C1 control */
    assert_int_equal(check("\xc2\x9f", 2), ASTER_ERR_INVALID);
    assert_int_equal(check("\xc2\xa0", 2), ASTER_OK); /* U+00A0 is no control character */
}

static void invalid_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xc0\xaf",
                                      "\xc1\x81",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf0\x80\x80\xaf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xc3",
                                      "\xe2\x82",
                                      "a\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(check(bad[i], strlen(bad[i])), ASTER_ERR_INVALID);
    }
    static const char *const good[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x94\x92", "\xf4\x8f\xbf\xbf", "a b "};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(check(good[i], strlen(good[i])), ASTER_OK);
    }
}

static void composed_and_decomposed_forms_are_different_names(void **state)
{
    (void)state;
    assert_false(aster_bytes_equal(aster_text("caf\xc3\xa9"), aster_text("cafe\xcc\x81")));
    assert_false(aster_bytes_equal(aster_text("a/b"), aster_text("A/b")));
    assert_false(aster_bytes_equal(aster_text("a"), aster_text("a ")));
}

static void identities_have_a_limit_of_256_bytes(void **state)
{
    (void)state;
    char name[ASTER_IDENTITY_MAX + 1];
    memset(name, 'x', sizeof name);
    assert_int_equal(aster_identity_check((struct aster_bytes){name, 256}, "holder", NULL), ASTER_OK);
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_identity_check((struct aster_bytes){name, 257}, "holder", &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "holder"));
}

static void ttl_bounds_are_named_in_the_error(void **state)
{
    (void)state;
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    assert_int_equal(aster_ttl_check(100, &limits, NULL), ASTER_OK);
    assert_int_equal(aster_ttl_check(86400000, &limits, NULL), ASTER_OK);
    const int64_t bad[] = {INT64_MIN, -1, 0, 99, 86400001, INT64_C(86400000000000), INT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_error error = ASTER_ERROR_INIT;
        assert_int_equal(aster_ttl_check(bad[i], &limits, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "86400000"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_1_to_512_bytes_are_accepted_and_513_is_refused),
        cmocka_unit_test(control_characters_are_refused),
        cmocka_unit_test(invalid_utf8_is_refused),
        cmocka_unit_test(composed_and_decomposed_forms_are_different_names),
        cmocka_unit_test(identities_have_a_limit_of_256_bytes),
        cmocka_unit_test(ttl_bounds_are_named_in_the_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
