#include "engine/codec.h"
#include "support/fuzz_seal.h"
#include "support/operations.h"
#include "support/unit.h"

static struct aster_row full_row(void)
{
    struct aster_row row = row_held("holder", 7);
    row.lease_revision = 3;
    row.value = aster_text("value");
    row.value_revision = 2;
    row.last_holder = aster_text("before");
    row.last_epoch_held = 5;
    row.applied = (struct aster_applied){{1, 2, 3}, aster_text("holder"), ASTER_OP_ACQUIRE, true, 7};
    return row;
}

static size_t encode_row(unsigned char *data, size_t size)
{
    struct aster_row row = full_row();
    size_t length = 0;
    assert_int_equal(aster_row_encode(aster_text("r"), &row, data, size, &length, NULL), ASTER_OK);
    assert_int_equal(length, aster_row_encoded_size(aster_text("r"), &row));
    return length;
}

static aster_status decode_row(const unsigned char *data, size_t size)
{
    struct aster_bytes resource;
    struct aster_row row;
    return aster_row_decode((struct aster_bytes){data, size}, &resource, &row, NULL);
}

static void a_row_comes_back_as_it_was(void **state)
{
    (void)state;
    unsigned char data[512];
    unsigned char again[512];
    size_t length = encode_row(data, sizeof data);
    size_t again_length = 0;
    struct aster_bytes resource;
    struct aster_row row;
    assert_int_equal(aster_row_decode((struct aster_bytes){data, length}, &resource, &row, NULL), ASTER_OK);
    assert_int_equal(row.epoch, 7);
    assert_true(row.applied.takeover);
    assert_true(aster_bytes_equal(row.last_holder, aster_text("before")));
    assert_int_equal(aster_row_encode(resource, &row, again, sizeof again, &again_length, NULL), ASTER_OK);
    assert_int_equal(again_length, length);
    assert_memory_equal(again, data, length);
}

static void every_truncation_and_every_damaged_byte_is_detected(void **state)
{
    (void)state;
    unsigned char data[512];
    size_t length = encode_row(data, sizeof data);
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_equal(decode_row(data, cut), ASTER_ERR_CORRUPT);
    }
    for (size_t at = 0; at < length; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            data[at] ^= (unsigned char)flip;
            assert_int_equal(decode_row(data, length), ASTER_ERR_CORRUPT);
            data[at] ^= (unsigned char)flip;
        }
    }
    assert_int_equal(decode_row(data, length), ASTER_OK);
}

static void a_buffer_that_is_too_small_is_refused(void **state)
{
    (void)state;
    unsigned char data[512];
    struct aster_row row = full_row();
    size_t length = aster_row_encoded_size(aster_text("r"), &row);
    size_t written = 0;
    assert_int_equal(aster_row_encode(aster_text("r"), &row, data, length - 1, &written, NULL), ASTER_ERR_INVALID);
    assert_int_equal(written, 0);
}

static void an_operation_comes_back_as_it_was(void **state)
{
    (void)state;
    struct aster_operation operation = with_id(operation_of(ASTER_OP_PUT, "a", 7), 99);
    unsigned char data[512];
    size_t length = 0;
    struct aster_operation back;
    operation.value = aster_text("v");
    operation.value_revision = 4;
    assert_int_equal(aster_operation_encode(&operation, data, sizeof data, &length, NULL), ASTER_OK);
    assert_int_equal(length, aster_operation_encoded_size(&operation));
    assert_int_equal(aster_operation_decode((struct aster_bytes){data, length}, &back, NULL), ASTER_OK);
    assert_int_equal(back.kind, ASTER_OP_PUT);
    assert_int_equal(back.value_revision, 4);
    assert_memory_equal(back.request_id, operation.request_id, sizeof back.request_id);
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_equal(aster_operation_decode((struct aster_bytes){data, cut}, &back, NULL), ASTER_ERR_CORRUPT);
    }
}

/* The format is stored on disks: these bytes never change within version 1. They are put together here field by field,
 * and only the check at the end is taken from the code (test_siphash.c holds it to the reference). */
static void the_bytes_of_version_1_are_fixed(void **state)
{
    (void)state;
    static const unsigned char golden[] = {
        1, 3, 1,   7, 0,   0,   0,   0,   0,   0,   0,   0x10, 0x27, 0, 0,   0,   0,   0,   0,   3,   0,   0,   0,
        0, 0, 0,   0, 2,   0,   0,   0,   0,   0,   0,   0,    5,    0, 0,   0,   0,   0,   0,   0,   7,   0,   0,
        0, 0, 0,   0, 0,   1,   2,   3,   0,   0,   0,   0,    0,    0, 0,   0,   0,   0,   0,   0,   0,   1,   0,
        0, 0, 'r', 6, 0,   0,   0,   'h', 'o', 'l', 'd', 'e',  'r',  6, 0,   0,   0,   'b', 'e', 'f', 'o', 'r', 'e',
        6, 0, 0,   0, 'h', 'o', 'l', 'd', 'e', 'r', 5,   0,    0,    0, 'v', 'a', 'l', 'u', 'e'};
    unsigned char data[512];
    size_t length = encode_row(data, sizeof data);
    assert_int_equal(length, sizeof golden + 8);
    assert_memory_equal(data, golden, sizeof golden);
}

static void the_bytes_of_an_operation_are_fixed_and_every_damaged_byte_is_detected(void **state)
{
    (void)state;
    static const unsigned char golden[] = {1,    1,    3, 0, 0,   0, /* version, acquire, both of its flags */
                                           9,    0,    0, 0, 0,   0, 0, 0, 0, 0,   0,   0, 0, 0, 0, 1, /* request id */
                                           0x10, 0x27, 0, 0, 0,   0, 0, 0,                             /* ttl */
                                           7,    0,    0, 0, 0,   0, 0, 0,                             /* epoch */
                                           3,    0,    0, 0, 0,   0, 0, 0, /* lease revision */
                                           0,    0,    0, 0, 0,   0, 0, 0, /* value revision */
                                           1,    0,    0, 0, 'r', 2, 0, 0, 0, 'm', 'e', 0, 0, 0, 0, 0, 0, 0, 0};
    struct aster_operation operation = ASTER_OPERATION_INIT;
    unsigned char data[256];
    size_t length = 0;
    struct aster_operation back;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.flags = ASTER_OP_TAKE_OVER_OWN | ASTER_OP_EXPIRED_VERDICT;
    operation.request_id[0] = 9;
    operation.request_id[15] = 1;
    operation.ttl_ms = 10000;
    operation.epoch = 7;
    operation.lease_revision = 3;
    operation.resource = aster_text("r");
    operation.caller = aster_text("me");
    assert_int_equal(aster_operation_encode(&operation, data, sizeof data, &length, NULL), ASTER_OK);
    assert_int_equal(length, sizeof golden + 8);
    assert_memory_equal(data, golden, sizeof golden);
    for (size_t at = 0; at < length; at++) {
        for (unsigned flip = 1; flip < 256; flip++) {
            data[at] ^= (unsigned char)flip;
            assert_int_equal(aster_operation_decode((struct aster_bytes){data, length}, &back, NULL),
                             ASTER_ERR_CORRUPT);
            data[at] ^= (unsigned char)flip;
        }
    }
    assert_int_equal(aster_operation_decode((struct aster_bytes){data, length}, &back, NULL), ASTER_OK);
}

static void a_newer_version_is_told_apart_from_damage(void **state)
{
    (void)state;
    unsigned char data[512];
    size_t length = encode_row(data, sizeof data);
    data[0] = 2;
    unsigned char *sealed = fuzz_seal(data, length - 8);
    assert_int_equal(decode_row(sealed, length), ASTER_ERR_VERSION);
    sealed[0] = 1;
    assert_int_equal(decode_row(sealed, length), ASTER_ERR_CORRUPT);
    free(sealed);
    data[0] = 1;
    sealed = fuzz_seal(data, length - 8);
    assert_memory_equal(sealed, data, length); /* the seal of this test is the format's */
    free(sealed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_comes_back_as_it_was),
        cmocka_unit_test(every_truncation_and_every_damaged_byte_is_detected),
        cmocka_unit_test(the_bytes_of_version_1_are_fixed),
        cmocka_unit_test(a_newer_version_is_told_apart_from_damage),
        cmocka_unit_test(a_buffer_that_is_too_small_is_refused),
        cmocka_unit_test(an_operation_comes_back_as_it_was),
        cmocka_unit_test(the_bytes_of_an_operation_are_fixed_and_every_damaged_byte_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
