/* Addresses as users write them. */
#include "support/unit.h"

#include "platform/address.h"

static void becomes(const char *text, bool passive, const char *expected)
{
    struct aster_address addresses[4];
    size_t count = 0;
    char shown[ASTER_ADDRESS_TEXT_MAX];
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_address_resolve(text, passive, addresses, 4, &count, &error) != ASTER_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    assert_true(count >= 1);
    assert_string_equal(aster_address_text(&addresses[0], shown), expected);
}

static void numbers_are_read_and_written(void **state)
{
    (void)state;
    becomes("127.0.0.1:7400", false, "127.0.0.1:7400");
    becomes("[::1]:7400", true, "[::1]:7400");
    becomes("0.0.0.0:0", true, "0.0.0.0:0");
    becomes("[::]:65535", true, "[::]:65535");
}

static void what_is_no_address_is_refused_with_the_form(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "host", "host:", "host:x", "host:70000", "::1", "::1:7400", "host:1x", ":-1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct aster_address address;
        size_t count = 77;
        struct aster_error error;
        assert_int_equal(aster_address_resolve(bad[i], false, &address, 1, &count, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "host:port"));
        assert_int_equal(count, 77);
    }
}

static void only_a_listener_may_leave_the_host_out(void **state)
{
    (void)state;
    struct aster_address address;
    size_t count;
    assert_int_equal(aster_address_resolve(":7400", false, &address, 1, &count, NULL), ASTER_ERR_INVALID);
    assert_int_equal(aster_address_resolve(":7400", true, &address, 1, &count, NULL), ASTER_OK);
    assert_true(aster_address_is_wildcard(&address));
    assert_int_equal(aster_address_port(&address), 7400);
}

static void addresses_are_equal_when_host_and_port_are(void **state)
{
    (void)state;
    struct aster_address a;
    struct aster_address b;
    size_t count;
    assert_int_equal(aster_address_resolve("127.0.0.1:1", true, &a, 1, &count, NULL), ASTER_OK);
    assert_int_equal(aster_address_resolve("127.0.0.1:1", true, &b, 1, &count, NULL), ASTER_OK);
    assert_true(aster_address_equal(&a, &b));
    assert_int_equal(aster_address_resolve("127.0.0.1:2", true, &b, 1, &count, NULL), ASTER_OK);
    assert_false(aster_address_equal(&a, &b));
    assert_int_equal(aster_address_resolve("[::1]:1", true, &b, 1, &count, NULL), ASTER_OK);
    assert_false(aster_address_equal(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_and_written),
        cmocka_unit_test(what_is_no_address_is_refused_with_the_form),
        cmocka_unit_test(only_a_listener_may_leave_the_host_out),
        cmocka_unit_test(addresses_are_equal_when_host_and_port_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
