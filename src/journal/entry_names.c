#include "journal/entry_names.h"

/* Codes: 0 none, 1..4 the name in slot code - 1, from 5 on a name of code - 4 bytes in full. */

static uint64_t code_of(const unsigned char *data, const struct aster_entry_name names[ASTER_ENTRY_NAMES],
                        struct aster_bytes name)
{
    if (name.size == 0) {
        return 0;
    }
    for (unsigned slot = 0; slot < ASTER_ENTRY_NAMES; slot++) {
        if (aster_bytes_equal(name, (struct aster_bytes){data + names[slot].at, names[slot].size})) {
            return slot + 1;
        }
    }
    return name.size + ASTER_ENTRY_NAMES;
}

void aster_entry_name_write(struct aster_writer *writer, struct aster_entry_name names[ASTER_ENTRY_NAMES],
                            enum aster_entry_slot slot, struct aster_bytes name)
{
    uint64_t code = code_of(writer->data, names, name);
    aster_write_varint(writer, code);
    if (code > ASTER_ENTRY_NAMES) {
        names[slot] = (struct aster_entry_name){writer->used, name.size};
        aster_write_raw(writer, name.data, name.size);
    } else if (code > 0) {
        names[slot] = names[code - 1];
    }
}

struct aster_bytes aster_entry_name_read(struct aster_reader *reader, struct aster_entry_name names[ASTER_ENTRY_NAMES],
                                         enum aster_entry_slot slot)
{
    struct aster_bytes name = {NULL, 0};
    uint64_t code = aster_read_varint(reader);
    struct aster_entry_name place = {0};
    if (code > ASTER_ENTRY_NAMES) {
        place = (struct aster_entry_name){reader->used, (size_t)(code - ASTER_ENTRY_NAMES)};
        name = aster_read_view(reader, code - ASTER_ENTRY_NAMES);
    } else if (code > 0) {
        place = names[code - 1];
        name = (struct aster_bytes){reader->data + place.at, place.size};
    }
    if (reader->failed || code_of(reader->data, names, name) != code) {
        reader->failed = true;
        return (struct aster_bytes){NULL, 0};
    }
    if (code > 0) {
        names[slot] = place;
    }
    return name;
}
