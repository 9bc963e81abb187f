#include "aster/fence.h"
#include "aster/limits.h"
#include "support/unit.h"

static void a_fence_comes_back_as_it_was_at_every_limit(void **state)
{
    (void)state;
    static char resource[ASTER_RESOURCE_MAX];
    static char holder[ASTER_IDENTITY_MAX];
    char text[ASTER_FENCE_TEXT_MAX];
    char storage[ASTER_RESOURCE_MAX + ASTER_IDENTITY_MAX];
    memset(resource, ':', sizeof resource);
    memset(holder, '%', sizeof holder);
    const int64_t epochs[] = {0, 1, INT64_C(1) << 32, INT64_MAX};
    for (size_t i = 0; i < sizeof epochs / sizeof epochs[0]; i++) {
        struct aster_fence fence = {{resource, sizeof resource}, epochs[i], {holder, sizeof holder}};
        struct aster_fence back;
        assert_int_equal(aster_fence_format(&fence, text, sizeof text, NULL), ASTER_OK);
        assert_int_equal(aster_fence_parse(text, storage, sizeof storage, &back, NULL), ASTER_OK);
        assert_true(back.epoch == epochs[i]);
        assert_true(aster_bytes_equal(back.resource, fence.resource));
        assert_true(aster_bytes_equal(back.holder, fence.holder));
    }
}

static void what_is_not_exactly_a_fence_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "aster1:",
                                      "aster2:1:a:r",
                                      "aster1:1:a",
                                      "aster1::a:r",
                                      "aster1:-1:a:r",
                                      "aster1:01:a:r",
                                      "aster1:9223372036854775808:a:r",
                                      "aster1:1::r",
                                      "aster1:1:a:",
                                      "aster1:1:a:r:x",
                                      "aster1:1:a:%",
                                      "aster1:1:a:%4",
                                      "aster1:1:a:%zz",
                                      "aster1:1:a:%61",
                                      "aster1:1:a:%c3%a9",
                                      "aster1:1:a:%00",
                                      "aster1:1:a:%FF"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char storage[64];
        struct aster_fence fence;
        struct aster_error error = ASTER_ERROR_INIT;
        assert_int_equal(aster_fence_parse(bad[i], storage, sizeof storage, &fence, &error), ASTER_ERR_INVALID);
        assert_true(strlen(error.message) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fence_comes_back_as_it_was_at_every_limit),
        cmocka_unit_test(what_is_not_exactly_a_fence_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
