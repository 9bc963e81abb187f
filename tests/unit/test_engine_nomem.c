/* Memory that runs out at any call leaves the table as it was. */
#include <stdio.h>

#include "base/alloc.h"
#include "engine/table.h"
#include "support/operations.h"
#include "support/unit.h"

static struct aster_operation step_of(int number, char name[16])
{
    static const char *const holders[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"};
    const char *holder = holders[number / 2 % 11];
    snprintf(name, 16, "r%d", number / 2);
    struct aster_operation operation = operation_of(number % 2 == 0 ? ASTER_OP_ACQUIRE : ASTER_OP_PUT, holder, 0);
    if (operation.kind == ASTER_OP_PUT) {
        operation.epoch = 1;
        operation.value = aster_text("value");
    }
    operation.resource = (struct aster_bytes){name, strlen(name)};
    return operation;
}

static void a_failed_allocation_leaves_the_table_unchanged(void **state)
{
    (void)state;
    struct aster_table_options options = {{1, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    int refusals = 0;
    assert_int_equal(aster_table_create(&options, &table, NULL), ASTER_OK);
    for (int number = 0; number < 200; number++) {
        char name[16];
        struct aster_operation operation = step_of(number, name);
        struct aster_table_result result;
        uint64_t before = aster_table_state_hash(table);
        aster_status status = ASTER_ERR_NOMEM;
        for (long allowed = 0; status == ASTER_ERR_NOMEM; allowed++) {
            assert_true(allowed < 20);
            aster_alloc_fail_after(allowed);
            status = aster_table_apply(table, &operation, 0, &result, NULL);
            aster_alloc_fail_after(-1);
            assert_null(aster_table_check(table));
            if (status == ASTER_ERR_NOMEM) {
                assert_true(aster_table_state_hash(table) == before);
                refusals++;
            }
        }
        assert_int_equal(status, ASTER_OK);
        assert_int_equal(result.effect.decision.outcome, ASTER_GRANTED);
    }
    assert_true(refusals >= 200);
    aster_table_destroy(table);
}

static void a_table_that_cannot_be_created_is_an_error(void **state)
{
    (void)state;
    struct aster_table_options options = {{1, 2}, ASTER_LIMITS_INIT, false};
    struct aster_table *table = NULL;
    aster_alloc_fail_after(0);
    aster_status status = aster_table_create(&options, &table, NULL);
    aster_alloc_fail_after(-1);
    assert_int_equal(status, ASTER_ERR_NOMEM);
    assert_null(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_leaves_the_table_unchanged),
        cmocka_unit_test(a_table_that_cannot_be_created_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
