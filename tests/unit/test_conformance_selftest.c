/* A suite that nothing fails proves nothing: each of these serializers is broken in one way and must fail it. They are
 * the example serializer over rules that break one promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/sys/conformance.h"
#include "aster/transition.h"

enum fault {
    FAULT_NONE,
    FAULT_RELEASE_IGNORES_EPOCH,
    FAULT_STEALS_FROM_LIVE_HOLDER,
    FAULT_ACCEPTS_FUTURE_EPOCH,
    FAULT_RENEWS_FOR_NON_HOLDER,
    FAULT_RENEWS_EXPIRED,
    FAULT_FORGETS_FLOOR,
    FAULT_FORGETS_REQUEST_IDS,
    FAULT_RELEASE_KEEPS_EPOCH,
    FAULT_FENCE_IS_A_BEARER_TOKEN,
    FAULT_RESTART_ADVANCES_EPOCH,
    FAULT_RESTART_FORGETS_LEASES,
    FAULT_COUNT
};

static enum fault fault;

static aster_status faulty_transition(const struct aster_row *row, bool expired,
                                      const struct aster_operation *operation, struct aster_effect *effect,
                                      struct aster_error *error)
{
    struct aster_operation changed = *operation;
    if (fault == FAULT_RELEASE_IGNORES_EPOCH && operation->kind == ASTER_OP_RELEASE) {
        changed.epoch = row->epoch;
    } else if (fault == FAULT_RENEWS_FOR_NON_HOLDER && operation->kind == ASTER_OP_RENEW && row->held) {
        changed.caller = row->holder;
    } else if (fault == FAULT_ACCEPTS_FUTURE_EPOCH && operation->kind == ASTER_OP_PUT && changed.epoch > row->epoch) {
        changed.epoch = row->epoch;
    } else if (fault == FAULT_FENCE_IS_A_BEARER_TOKEN && operation->kind == ASTER_OP_PUT) {
        changed.caller = operation->holder;
    } else if (fault == FAULT_FORGETS_REQUEST_IDS) {
        memset(changed.request_id, 0, sizeof changed.request_id);
    }
    expired = expired && !(fault == FAULT_RENEWS_EXPIRED && operation->kind == ASTER_OP_RENEW);
    expired = expired || (fault == FAULT_STEALS_FROM_LIVE_HOLDER && operation->kind == ASTER_OP_ACQUIRE);
    aster_status status = aster_transition(row, expired, &changed, effect, error);
    if (status == ASTER_OK && fault == FAULT_RELEASE_KEEPS_EPOCH && operation->kind == ASTER_OP_RELEASE &&
        effect->changed) {
        effect->row.epoch = row->epoch;
        effect->decision.epoch = row->epoch;
    }
    return status;
}

static struct aster_row faulty_absent(int64_t floor)
{
    return aster_row_absent(fault == FAULT_FORGETS_FLOOR ? 0 : floor);
}

#define aster_transition faulty_transition
#define aster_row_absent faulty_absent
#define OWN_SERIALIZER_WITHOUT_MAIN
#include "../../examples/own_serializer.c"

/* The records behind the serializer under test, for its restart. */
static struct own *last_opened;

static aster_status restart(void *user, struct aster_serializer **serializer, struct aster_error *error)
{
    (void)user;
    (void)serializer;
    (void)error;
    pthread_mutex_lock(&last_opened->mutex);
    for (struct record *record = last_opened->records; record != NULL; record = record->next) {
        record->granted_ns = aster_clock_now_ns(&last_opened->clock);
        if (fault == FAULT_RESTART_ADVANCES_EPOCH) {
            record->row.epoch++;
        } else if (fault == FAULT_RESTART_FORGETS_LEASES && record->row.held) {
            record->row.held = false;
            record->row.holder.size = 0;
        }
    }
    pthread_mutex_unlock(&last_opened->mutex);
    return ASTER_OK;
}

static struct aster_conformance_result run_suite(bool loud)
{
    const struct aster_conformance_subject subject = {sizeof subject, "faulty", own_open, restart, false, &last_opened};
    struct aster_conformance_result result = {0, 0, 0};
    aster_status status = aster_conformance_run(&subject, loud ? stdout : NULL, &result);
    assert_int_equal(status, result.failed == 0 ? ASTER_OK : ASTER_ERR_INVALID);
    return result;
}

static void without_a_fault_the_suite_passes(void **state)
{
    (void)state;
    fault = FAULT_NONE;
    struct aster_conformance_result result = run_suite(true);
    assert_int_equal(result.failed, 0);
    assert_true(result.passed > 30);
}

/* Two winners of one race write the same memory of the suite, as they would write the user's: that is what
 * ThreadSanitizer would stop at. */
static bool is_data_race(enum fault which)
{
#ifdef __SANITIZE_THREAD__
    return which == FAULT_STEALS_FROM_LIVE_HOLDER;
#else
    (void)which;
    return false;
#endif
}

static void every_fault_makes_the_suite_fail(void **state)
{
    (void)state;
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
        fault = (enum fault)i;
        if (is_data_race(fault)) {
            continue;
        }
        struct aster_conformance_result result = run_suite(false);
        printf("fault %d: %d scenarios fail\n", i, result.failed);
        assert_true(result.failed > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_fault_the_suite_passes),
        cmocka_unit_test(every_fault_makes_the_suite_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
