#include "engine/siphash.h"
#include "support/unit.h"

/* SipHash-2-4 of the bytes 0, 1, 2, ... under the key 00 01 .. 0f: the vectors of the reference implementation. */
static void hashes_are_those_of_the_reference(void **state)
{
    (void)state;
    static const uint64_t expected[] = {
        UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd), UINT64_C(0x0d6c8009d9a94f5a),
        UINT64_C(0x85676696d7fb7e2d), UINT64_C(0xcf2794e0277187b7), UINT64_C(0x18765564cd99a68d),
        UINT64_C(0xcbc9466e58fee3ce), UINT64_C(0xab0200f58b01d137), UINT64_C(0x93f5f5799a932462)};
    const struct aster_hash_key key = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char input[16];
    for (size_t i = 0; i < sizeof input; i++) {
        input[i] = (unsigned char)i;
    }
    for (size_t size = 0; size < sizeof expected / sizeof expected[0]; size++) {
        assert_true(aster_siphash(&key, (struct aster_bytes){input, size}) == expected[size]);
    }
    assert_true(aster_siphash(&key, (struct aster_bytes){input, 15}) == UINT64_C(0xa129ca6149be45e5));
}

static void another_key_gives_another_hash(void **state)
{
    (void)state;
    const struct aster_hash_key a = {1, 2};
    const struct aster_hash_key b = {1, 3};
    assert_true(aster_siphash(&a, aster_text("name")) != aster_siphash(&b, aster_text("name")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_the_reference),
        cmocka_unit_test(another_key_gives_another_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
