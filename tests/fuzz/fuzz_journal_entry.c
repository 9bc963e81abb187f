/* An entry that is read to its end is written to the same bytes again; any other is refused without harm. */
#include "journal/entry.h"
#include "support/fuzz_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size)
{
    struct aster_entry_builder again = {0};
    struct aster_entry_reader reader;
    struct aster_record record;
    bool found = true;
    aster_status status = aster_entry_open((struct aster_bytes){data, size}, &reader, NULL);
    while (status == ASTER_OK) {
        status = aster_entry_next(&reader, &record, &found, NULL);
        if (status != ASTER_OK || !found) {
            break;
        }
        aster_status added = aster_entry_add(&again, &record, NULL);
        if (added == ASTER_ERR_LIMIT) {
            status = added; /* the bound of a record is wider than the record */
        } else if (added != ASTER_OK) {
            abort();
        }
    }
    struct aster_bytes entry;
    if (status == ASTER_OK && (aster_entry_seal(&again, &entry, NULL) != ASTER_OK || entry.size != size ||
                               memcmp(entry.data, data, size) != 0)) {
        abort();
    }
    aster_entry_builder_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *sealed = fuzz_seal(data, size);
    check(data, size);
    check(sealed, size + 8);
    free(sealed);
    return 0;
}
