#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "aster/http.h"
#include "aster/transition.h"

struct parsed {
    char storage[ASTER_HTTP_RESOURCE_MAX];
    struct aster_fence fence;
    struct aster_error error;
};

static aster_status parse(struct parsed *parsed, const char *resource, const char *epoch)
{
    return aster_http_fence_parse(resource, epoch, aster_text("w1"), parsed->storage, &parsed->fence, &parsed->error);
}

static void what_is_formatted_is_parsed_again(void **state)
{
    static const char *const names[] = {"catalog/current", "a b", "100%", "r\xc3\xa9sum\xc3\xa9", "x: y\"z"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct aster_fence fence = {aster_text(names[i]), INT64_MAX - (int64_t)i, aster_text("w1")};
        char resource[ASTER_HTTP_RESOURCE_MAX];
        char epoch[ASTER_HTTP_EPOCH_MAX];
        struct parsed parsed;
        assert_int_equal(aster_http_fence_format(&fence, resource, epoch, NULL), ASTER_OK);
        assert_null(strpbrk(resource, " \"\r\n:"));
        assert_int_equal(parse(&parsed, resource, epoch), ASTER_OK);
        assert_true(aster_bytes_equal(parsed.fence.resource, fence.resource));
        assert_int_equal(parsed.fence.epoch, fence.epoch);
        assert_true(aster_bytes_equal(parsed.fence.holder, aster_text("w1")));
    }
}

static void the_longest_name_fits(void **state)
{
    char name[ASTER_RESOURCE_MAX + 1];
    struct parsed parsed;
    char resource[ASTER_HTTP_RESOURCE_MAX];
    char epoch[ASTER_HTTP_EPOCH_MAX];
    (void)state;
    memset(name, ' ', sizeof name);
    struct aster_fence fence = {{name, ASTER_RESOURCE_MAX}, 1, aster_text("w1")};
    assert_int_equal(aster_http_fence_format(&fence, resource, epoch, NULL), ASTER_OK);
    assert_int_equal(parse(&parsed, resource, epoch), ASTER_OK);
    fence.resource.size++;
    assert_int_equal(aster_http_fence_format(&fence, resource, epoch, NULL), ASTER_ERR_INVALID);
}

static void what_is_malformed_is_refused_with_the_header_named(void **state)
{
    static const struct {
        const char *resource;
        const char *epoch;
        const char *names;
    } wrong[] = {
        {NULL, "1", "Aster-Resource"},
        {"r", NULL, "Aster-Epoch"},
        {"", "1", "Aster-Resource"},
        {"r", "", "Aster-Epoch"},
        {"r", "-1", "Aster-Epoch"},
        {"r", "1.0", "Aster-Epoch"},
        {"r", "01", "Aster-Epoch"},
        {"r", " 1", "Aster-Epoch"},
        {"r", "9223372036854775808", "Aster-Epoch"},
        {"r%", "1", "Aster-Resource"},
        {"r%2", "1", "Aster-Resource"},
        {"r%zz", "1", "Aster-Resource"},
        {"a\nb", "1", "Aster-Resource"},
        {"%00", "1", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct parsed parsed = {.error = ASTER_ERROR_INIT};
        assert_int_equal(parse(&parsed, wrong[i].resource, wrong[i].epoch), ASTER_ERR_INVALID);
        assert_non_null(strstr(parsed.error.message, wrong[i].names));
        assert_null(parsed.fence.resource.data);
    }
}

static void a_write_follows_only_a_fence_that_is_not_newer(void **state)
{
    const struct aster_fence last = {aster_text("r"), 5, aster_text("b")};
    const struct aster_fence none = {{NULL, 0}, 0, {NULL, 0}};
    const struct {
        struct aster_fence fence;
        const char *writer;
        enum aster_reason reason;
    } cases[] = {
        {{aster_text("r"), 5, aster_text("b")}, "b", ASTER_REASON_NONE},
        {{aster_text("r"), 6, aster_text("c")}, "c", ASTER_REASON_NONE},
        {{aster_text("r"), 4, aster_text("a")}, "a", ASTER_REASON_STALE_EPOCH},
        {{aster_text("r"), 5, aster_text("a")}, "a", ASTER_REASON_NOT_HOLDER},
        {{aster_text("r"), 6, aster_text("b")}, "c", ASTER_REASON_NOT_HOLDER},
        {{aster_text("s"), 6, aster_text("b")}, "b", ASTER_REASON_WRONG_RESOURCE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct aster_verdict verdict = aster_fence_follow(&last, &cases[i].fence, aster_text(cases[i].writer));
        assert_int_equal(verdict.reason, cases[i].reason);
        assert_int_equal(verdict.current_epoch, 5);
    }
    assert_int_equal(aster_fence_follow(&none, &cases[5].fence, aster_text("b")).reason, ASTER_REASON_NONE);
}

static void every_refusal_has_a_status_of_its_kind(void **state)
{
    (void)state;
    assert_int_equal(aster_http_status(ASTER_REASON_NONE), 200);
    assert_int_equal(aster_http_status(ASTER_REASON_STALE_EPOCH), 412);
    assert_int_equal(aster_http_status(ASTER_REASON_NOT_HOLDER), 403);
    assert_int_equal(aster_http_status(ASTER_REASON_NO_FENCE), 428);
    assert_int_equal(aster_http_status(ASTER_REASON_WRONG_RESOURCE), 422);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_formatted_is_parsed_again),
        cmocka_unit_test(the_longest_name_fits),
        cmocka_unit_test(what_is_malformed_is_refused_with_the_header_named),
        cmocka_unit_test(a_write_follows_only_a_fence_that_is_not_newer),
        cmocka_unit_test(every_refusal_has_a_status_of_its_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
