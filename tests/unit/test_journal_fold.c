#include <stdio.h>

#include "base/alloc.h"
#include "journal/entry_fold.h"
#include "support/operations.h"
#include "support/unit.h"

static const struct aster_hash_key key = {1, 2};

static struct aster_entry_fold *new_fold(void)
{
    struct aster_entry_fold *fold = NULL;
    assert_int_equal(aster_entry_fold_create(&key, &fold, NULL), ASTER_OK);
    return fold;
}

/* An image at `epoch`; NULL keeps the value of revision `revision`. */
static struct aster_record image(const char *resource, int64_t epoch, int64_t revision, const char *value)
{
    struct aster_record record = {.kind = ASTER_RECORD_ROW,
                                  .resource = aster_text(resource),
                                  .row = row_held("a", epoch),
                                  .keep_value = value == NULL};
    record.row.value = aster_text(value);
    record.row.value_revision = revision;
    return record;
}

static struct aster_record removal(const char *resource, int64_t floor)
{
    return (struct aster_record){.kind = ASTER_RECORD_REMOVED, .resource = aster_text(resource), .floor = floor};
}

static void add(struct aster_entry_fold *fold, struct aster_record record)
{
    assert_int_equal(aster_entry_fold_add(fold, &record, NULL), ASTER_OK);
}

static struct aster_row row_of(const struct aster_entry_fold *fold, const char *resource, const struct aster_row *base)
{
    struct aster_row row;
    const struct aster_folded *folded = aster_entry_fold_find(fold, aster_text(resource));
    assert_non_null(folded);
    assert_false(folded->removed);
    assert_int_equal(aster_folded_row(folded, base, &row, NULL), ASTER_OK);
    return row;
}

static void the_last_image_of_each_resource_remains(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    char name[32];
    for (int64_t epoch = 1; epoch <= 3; epoch++) {
        for (int i = 0; i < 500; i++) {
            snprintf(name, sizeof name, "r/%d", i);
            add(fold, image(name, epoch, 0, ""));
        }
    }
    assert_int_equal(aster_entry_fold_count(fold), 500);
    for (size_t i = 0; i < 500; i++) {
        const struct aster_folded *folded = aster_entry_fold_at(fold, i);
        assert_int_equal(folded->row.epoch, 3);
        assert_ptr_equal(aster_entry_fold_find(fold, folded->resource), folded);
    }
    assert_null(aster_entry_fold_find(fold, aster_text("r/500")));
    aster_entry_fold_destroy(fold);
}

static void a_kept_value_is_that_of_the_image_before(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    add(fold, image("r", 1, 1, "first"));
    add(fold, image("r", 2, 1, NULL));
    assert_true(aster_bytes_equal(row_of(fold, "r", NULL).value, aster_text("first")));
    add(fold, image("r", 2, 2, "second"));
    add(fold, image("r", 3, 2, NULL));
    struct aster_row row = row_of(fold, "r", NULL);
    assert_true(aster_bytes_equal(row.value, aster_text("second")));
    assert_int_equal(row.epoch, 3);
    aster_entry_fold_destroy(fold);
}

static void a_value_kept_from_before_the_first_entry_comes_from_the_stored_row(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    struct aster_row base = row_held("a", 1);
    struct aster_row row;
    base.value = aster_text("stored");
    base.value_revision = 4;
    add(fold, image("r", 2, 4, NULL));
    const struct aster_folded *folded = aster_entry_fold_find(fold, aster_text("r"));
    assert_true(aster_folded_needs_base(folded));
    assert_true(aster_bytes_equal(row_of(fold, "r", &base).value, aster_text("stored")));
    assert_int_equal(row_of(fold, "r", &base).epoch, 2);
    assert_int_equal(aster_folded_row(folded, NULL, &row, NULL), ASTER_ERR_CORRUPT);
    base.value_revision = 3;
    assert_int_equal(aster_folded_row(folded, &base, &row, NULL), ASTER_ERR_CORRUPT);
    aster_entry_fold_destroy(fold);
}

static void a_row_that_never_had_a_value_needs_no_stored_row(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    add(fold, image("r", 1, 0, NULL));
    assert_false(aster_folded_needs_base(aster_entry_fold_find(fold, aster_text("r"))));
    assert_int_equal(row_of(fold, "r", NULL).value.size, 0);
    aster_entry_fold_destroy(fold);
}

static void a_removed_row_comes_back_without_its_value_and_the_floor_only_rises(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    add(fold, image("r", 7, 1, "old"));
    add(fold, removal("r", 8));
    assert_true(aster_entry_fold_find(fold, aster_text("r"))->removed);
    assert_int_equal(aster_entry_fold_floor(fold), 8);
    add(fold, image("r", 9, 0, NULL));
    assert_int_equal(row_of(fold, "r", NULL).value.size, 0);
    assert_int_equal(row_of(fold, "r", NULL).epoch, 9);
    add(fold, removal("s", 3));
    assert_int_equal(aster_entry_fold_floor(fold), 8);
    aster_entry_fold_destroy(fold);
}

static void a_value_that_never_was_stored_is_an_error(void **state)
{
    (void)state;
    struct aster_entry_fold *fold = new_fold();
    add(fold, image("r", 7, 1, "old"));
    struct aster_record other = image("r", 8, 2, NULL);
    assert_int_equal(aster_entry_fold_add(fold, &other, NULL), ASTER_ERR_CORRUPT);
    add(fold, removal("r", 8));
    struct aster_record after = image("r", 9, 1, NULL);
    assert_int_equal(aster_entry_fold_add(fold, &after, NULL), ASTER_ERR_CORRUPT);
    aster_entry_fold_destroy(fold);
}

static void running_out_of_memory_is_an_error_at_every_step(void **state)
{
    (void)state;
    bool done = false;
    for (long calls = 0; !done; calls++) {
        assert_true(calls < 100);
        struct aster_entry_fold *fold = NULL;
        aster_alloc_fail_after(calls);
        aster_status status = aster_entry_fold_create(&key, &fold, NULL);
        for (int i = 0; i < 2 && status == ASTER_OK; i++) {
            struct aster_record record = image(i == 0 ? "r" : "a longer name", 1, 1, "value");
            status = aster_entry_fold_add(fold, &record, NULL);
        }
        aster_alloc_fail_after(-1);
        assert_true(status == ASTER_OK || status == ASTER_ERR_NOMEM);
        done = status == ASTER_OK;
        aster_entry_fold_destroy(fold);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_image_of_each_resource_remains),
        cmocka_unit_test(a_kept_value_is_that_of_the_image_before),
        cmocka_unit_test(a_value_kept_from_before_the_first_entry_comes_from_the_stored_row),
        cmocka_unit_test(a_row_that_never_had_a_value_needs_no_stored_row),
        cmocka_unit_test(a_removed_row_comes_back_without_its_value_and_the_floor_only_rises),
        cmocka_unit_test(a_value_that_never_was_stored_is_an_error),
        cmocka_unit_test(running_out_of_memory_is_an_error_at_every_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
