/* What decodes encodes to the same bytes again; what does not is refused without harm. */
#include "engine/codec.h"
#include "support/fuzz_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char again[2 * ASTER_VALUE_MAX];

static void check(const uint8_t *data, size_t size)
{
    struct aster_operation operation;
    aster_status status = aster_operation_decode((struct aster_bytes){data, size}, &operation, NULL);
    if (status == ASTER_OK) {
        size_t length = 0;
        if (aster_operation_encode(&operation, again, sizeof again, &length, NULL) != ASTER_OK || length != size ||
            memcmp(again, data, size) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = fuzz_seal(data, size);
    check(data, size);
    check(sealed, size + 8);
    free(sealed);
    return 0;
}
