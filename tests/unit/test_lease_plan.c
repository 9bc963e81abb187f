/* The arithmetic of a lease's times, and deriving them. Pure: no clock, no thread. */
#include "aster/lease.h"
#include "aster/plan.h"
#include "base/checked.h"
#include "support/unit.h"

static aster_status make(int64_t ttl_ms, int64_t interval_ms, int64_t margin_ms, int64_t drift_ppm,
                         struct aster_renew_plan *plan, struct aster_error *error)
{
    return aster_renew_plan_make(ttl_ms, interval_ms, margin_ms, drift_ppm, NULL, plan, error);
}

static void assert_refused(int64_t ttl_ms, int64_t interval_ms, int64_t margin_ms, int64_t drift_ppm,
                           const char *const *words)
{
    struct aster_renew_plan plan = {1, 2, 3, 4};
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(make(ttl_ms, interval_ms, margin_ms, drift_ppm, &plan, &error), ASTER_ERR_INVALID);
    for (; *words != NULL; words++) {
        if (strstr(error.message, *words) == NULL) {
            fail_msg("no \"%s\" in: %s", *words, error.message);
        }
    }
    assert_int_equal(plan.ttl_ms, 1); /* untouched */
    assert_int_equal(plan.drift_ppm, 4);
}

static void defaults_are_a_third_of_the_ttl_and_a_margin_of_a_tenth_up_to_one_second(void **state)
{
    (void)state;
    struct aster_renew_plan plan;
    assert_int_equal(make(30000, ASTER_LEASE_DEFAULT, ASTER_LEASE_DEFAULT, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(plan.renew_interval_ms, 10000);
    assert_int_equal(plan.margin_ms, 1000);
    assert_int_equal(make(3000, ASTER_LEASE_DEFAULT, ASTER_LEASE_DEFAULT, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(plan.renew_interval_ms, 1000);
    assert_int_equal(plan.margin_ms, 300);
    assert_int_equal(make(100, ASTER_LEASE_DEFAULT, ASTER_LEASE_DEFAULT, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(plan.margin_ms, 10);
}

static void the_limit_is_the_sending_plus_ttl_less_margin_less_drift(void **state)
{
    (void)state;
    struct aster_renew_plan plan;
    assert_int_equal(make(10000, 3000, 1000, 0, &plan, NULL), ASTER_OK);
    assert_int_equal(aster_renew_plan_limit_ns(&plan, 5), 9000 * ASTER_NS_PER_MS + 5);
    assert_int_equal(make(10000, 3000, 1000, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(aster_renew_plan_limit_ns(&plan, 0), 8995 * ASTER_NS_PER_MS); /* 10 s * 500 ppm = 5 ms */
    assert_int_equal(make(86400000, 3000, 1000, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(aster_renew_plan_limit_ns(&plan, 0), (86400000 - 1000 - 43200) * ASTER_NS_PER_MS);
    assert_int_equal(aster_renew_plan_limit_ns(&plan, INT64_MAX - 1), INT64_MAX);
}

static void the_limit_is_never_later_than_the_ttl_on_a_clock_that_drifts_by_the_bound(void **state)
{
    (void)state;
    for (int64_t drift_ppm = 0; drift_ppm <= 100000; drift_ppm += 997) {
        struct aster_renew_plan plan;
        assert_int_equal(make(10000, 1, 0, drift_ppm, &plan, NULL), ASTER_OK);
        int64_t usable_ns = aster_renew_plan_limit_ns(&plan, 0);
        /* while the holder counts usable_ns, the serializer's faster clock counts this much */
        int64_t passed_ns = usable_ns + usable_ns / 1000000 * drift_ppm;
        assert_true(passed_ns <= 10000 * ASTER_NS_PER_MS);
    }
}

static void row_61_a_renew_interval_that_leaves_no_time_is_refused_at_the_boundary(void **state)
{
    (void)state;
    struct aster_renew_plan plan;
    assert_int_equal(make(10000, 8999, 1000, 0, &plan, NULL), ASTER_OK);
    assert_refused(10000, 9000, 1000, 0, (const char *const[]){"renew interval 9000", "10000 - 1000", NULL});
    assert_int_equal(make(10000, 8994, 1000, 500, &plan, NULL), ASTER_OK);
    assert_refused(10000, 8995, 1000, 500, (const char *const[]){"8995.0 ms", NULL});
    assert_refused(10000, 10000, 0, 0, (const char *const[]){"renew interval 10000", NULL});
    assert_refused(10000, 0, 0, 0, (const char *const[]){"renew interval 0", NULL});
    assert_refused(10000, -2, 0, 0, (const char *const[]){"renew interval -2", NULL});
}

static void row_62_combinations_that_do_not_fit_name_the_inequality_and_the_numbers(void **state)
{
    (void)state;
    assert_refused(3000, 1000, 2000, 0,
                   (const char *const[]){"renew interval 1000", "ttl - margin", "3000", "2000", NULL});
    assert_refused(3000, 1000, 3000, 0, (const char *const[]){"margin 3000", "ttl 3000", NULL});
    assert_refused(3000, 1000, -5, 0, (const char *const[]){"margin -5", NULL});
    assert_refused(3000, 1000, 300, -1, (const char *const[]){"drift is -1", "100000", NULL});
    assert_refused(3000, 1000, 300, 100001, (const char *const[]){"drift is 100001", NULL});
    assert_refused(1000, ASTER_LEASE_DEFAULT, 999, 100000, (const char *const[]){"renew interval", NULL});
}

static void row_58_a_ttl_in_the_wrong_unit_is_refused_with_the_bound(void **state)
{
    (void)state;
    assert_refused(INT64_C(86400000000000), -1, -1, 500, (const char *const[]){"86400000000000", "86400000", NULL});
    assert_refused(INT64_MAX, -1, -1, 500, (const char *const[]){"86400000", NULL});
    assert_refused(0, -1, -1, 500, (const char *const[]){"100", NULL});
    assert_refused(-1, -1, -1, 500, (const char *const[]){"-1", NULL});
    assert_refused(99, -1, -1, 500, (const char *const[]){"99", "100", NULL});
    assert_refused(86400001, -1, -1, 500, (const char *const[]){"86400001", NULL});
    struct aster_renew_plan plan;
    assert_int_equal(make(100, -1, -1, 500, &plan, NULL), ASTER_OK);
    assert_int_equal(make(86400000, -1, -1, 500, &plan, NULL), ASTER_OK);
}

static void limits_of_a_serializer_replace_the_defaults(void **state)
{
    (void)state;
    struct aster_limits limits = ASTER_LIMITS_INIT;
    limits.ttl_min_ms = 5000;
    limits.ttl_max_ms = ASTER_TTL_HARD_MAX_MS;
    struct aster_renew_plan plan;
    assert_int_equal(aster_renew_plan_make(4999, -1, -1, 500, &limits, &plan, NULL), ASTER_ERR_INVALID);
    assert_int_equal(aster_renew_plan_make(ASTER_TTL_HARD_MAX_MS, -1, -1, 100000, &limits, &plan, NULL), ASTER_OK);
    assert_true(aster_renew_plan_limit_ns(&plan, 0) > 0);
}

/* Whatever is derived must keep its promises. */
static void assert_keeps(const struct aster_plan_inputs *inputs, const struct aster_plan *plan)
{
    struct aster_renew_plan again;
    assert_int_equal(make(plan->renew.ttl_ms, plan->renew.renew_interval_ms, plan->renew.margin_ms,
                          plan->renew.drift_ppm, &again, NULL),
                     ASTER_OK);
    int64_t usable_ms = aster_renew_plan_limit_ns(&plan->renew, 0) / ASTER_NS_PER_MS;
    assert_int_equal(plan->tolerated_pause_ms, usable_ms - plan->renew.renew_interval_ms);
    if (inputs->pause_ms >= 0) {
        assert_true(plan->tolerated_pause_ms >= inputs->pause_ms);
    }
    if (inputs->recover_ms >= 0) {
        assert_true(plan->takeover_ms <= inputs->recover_ms);
    }
    assert_true(plan->takeover_ms >= plan->renew.ttl_ms);
}

static void a_derived_plan_keeps_its_promises_or_names_the_conflict(void **state)
{
    (void)state;
    int derived = 0;
    int refused = 0;
    for (int64_t pause_ms = -1; pause_ms <= 200000; pause_ms = pause_ms * 3 + 50) {
        for (int64_t recover_ms = -1; recover_ms <= 400000; recover_ms = recover_ms * 2 + 300) {
            for (int64_t work_ms = 0; work_ms <= 100000; work_ms = work_ms * 5 + 77) {
                const struct aster_plan_inputs inputs = {work_ms, pause_ms, recover_ms};
                struct aster_plan plan;
                struct aster_error error = ASTER_ERROR_INIT;
                aster_status status = aster_plan_derive(&inputs, &plan, &error);
                if (status == ASTER_OK) {
                    derived++;
                    assert_keeps(&inputs, &plan);
                } else {
                    refused++;
                    assert_int_equal(status, ASTER_ERR_INVALID);
                    assert_non_null(strstr(error.message, "conflict"));
                }
            }
        }
    }
    assert_true(derived > 100);
    assert_true(refused > 20);
}

static void the_example_of_the_manual_is_derived(void **state)
{
    (void)state;
    const struct aster_plan_inputs inputs = {20000, 5000, 60000};
    struct aster_plan plan;
    assert_int_equal(aster_plan_derive(&inputs, &plan, NULL), ASTER_OK);
    assert_keeps(&inputs, &plan);
}

static void inputs_that_conflict_are_named_with_their_numbers(void **state)
{
    (void)state;
    struct aster_plan plan;
    struct aster_error error = ASTER_ERROR_INIT;
    const struct aster_plan_inputs inputs = {-1, 30000, 20000};
    assert_int_equal(aster_plan_derive(&inputs, &plan, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "pause 30000 ms"));
    assert_non_null(strstr(error.message, "recover 20000 ms"));
    const struct aster_plan_inputs none = {-1, -1, -1};
    assert_int_equal(aster_plan_derive(&none, &plan, &error), ASTER_ERR_INVALID);
    const struct aster_plan_inputs endless = {-1, INT64_MAX, -1};
    assert_int_equal(aster_plan_derive(&endless, &plan, &error), ASTER_ERR_INVALID);
    const struct aster_plan_inputs hasty = {-1, -1, 100};
    assert_int_equal(aster_plan_derive(&hasty, &plan, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "recover 100 ms"));
}

static void the_longest_inputs_do_not_overflow(void **state)
{
    (void)state;
    struct aster_plan plan;
    const struct aster_plan_inputs long_work = {INT64_MAX, 1000, 60000};
    assert_int_equal(aster_plan_derive(&long_work, &plan, NULL), ASTER_OK);
    assert_keeps(&long_work, &plan);
    const struct aster_plan_inputs long_recovery = {-1, -1, INT64_MAX};
    assert_int_equal(aster_plan_derive(&long_recovery, &plan, NULL), ASTER_OK);
    assert_keeps(&long_recovery, &plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_a_third_of_the_ttl_and_a_margin_of_a_tenth_up_to_one_second),
        cmocka_unit_test(the_limit_is_the_sending_plus_ttl_less_margin_less_drift),
        cmocka_unit_test(the_limit_is_never_later_than_the_ttl_on_a_clock_that_drifts_by_the_bound),
        cmocka_unit_test(row_61_a_renew_interval_that_leaves_no_time_is_refused_at_the_boundary),
        cmocka_unit_test(row_62_combinations_that_do_not_fit_name_the_inequality_and_the_numbers),
        cmocka_unit_test(row_58_a_ttl_in_the_wrong_unit_is_refused_with_the_bound),
        cmocka_unit_test(limits_of_a_serializer_replace_the_defaults),
        cmocka_unit_test(a_derived_plan_keeps_its_promises_or_names_the_conflict),
        cmocka_unit_test(the_example_of_the_manual_is_derived),
        cmocka_unit_test(inputs_that_conflict_are_named_with_their_numbers),
        cmocka_unit_test(the_longest_inputs_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
