#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void the_cause_comes_before_the_advice(void **state)
{
    (void)state;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_error_set_os(&error, ASTER_ERR_IO, ENOENT, "cannot open %s; a; name another", "x"),
                     ASTER_ERR_IO);
    assert_string_equal(error.message, "cannot open x; a: No such file or directory; name another");
    assert_int_equal(error.os_error, ENOENT);
    aster_error_set_os(&error, ASTER_ERR_IO, ENOENT, "cannot open x");
    assert_string_equal(error.message, "cannot open x: No such file or directory");
    aster_error_set_os(&error, ASTER_ERR_IO, 0, "cannot open x; name another");
    assert_string_equal(error.message, "cannot open x; name another");
}

static void a_message_is_cut_to_its_buffer(void **state)
{
    (void)state;
    char name[2 * ASTER_ERROR_MESSAGE_MAX];
    struct aster_error error = ASTER_ERROR_INIT;
    memset(name, 'n', sizeof name);
    for (int size = ASTER_ERROR_MESSAGE_MAX - 60; size < ASTER_ERROR_MESSAGE_MAX + 60; size++) {
        aster_error_set_os(&error, ASTER_ERR_IO, ENOENT, "%.*s; name another", size, name);
        assert_in_range(strlen(error.message), ASTER_ERROR_MESSAGE_MAX - 60, ASTER_ERROR_MESSAGE_MAX - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_cause_comes_before_the_advice),
                                       cmocka_unit_test(a_message_is_cut_to_its_buffer)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
