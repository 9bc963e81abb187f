/* However a stream is cut, the same frames come out, and memory follows what arrived. The first byte of the input says
 * how large the pieces are. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    uint64_t digest;
    size_t frames;
    enum aster_frame_step last;
};

static void digest(struct outcome *outcome, struct aster_bytes payload)
{
    const uint8_t *bytes = payload.data;
    for (size_t i = 0; i < payload.size; i++) {
        outcome->digest = outcome->digest * 1099511628211u + bytes[i];
    }
    outcome->digest = outcome->digest * 1099511628211u + payload.size;
    outcome->frames++;
}

static struct outcome read_stream(const uint8_t *data, size_t size, size_t piece)
{
    struct outcome outcome = {1, 0, ASTER_FRAME_NONE};
    struct aster_frame_reader reader;
    aster_frame_reader_init(&reader, 0);
    for (size_t at = 0; at < size && outcome.last == ASTER_FRAME_NONE; at += piece) {
        struct aster_bytes input = {data + at, size - at < piece ? size - at : piece};
        do {
            struct aster_bytes payload;
            size_t needed = 0;
            outcome.last = aster_frame_reader_next(&reader, &input, &payload, &needed);
            if (outcome.last == ASTER_FRAME_GROW) {
                if (needed <= reader.capacity || needed > 2 * (at + piece) + 512) {
                    abort();
                }
                aster_frame_reader_supply(&reader, realloc(reader.buffer, needed), needed);
            } else if (outcome.last == ASTER_FRAME_READY) {
                digest(&outcome, payload);
            }
        } while (outcome.last == ASTER_FRAME_READY || outcome.last == ASTER_FRAME_GROW);
    }
    free(reader.buffer);
    return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    struct outcome whole = read_stream(data + 1, size - 1, size);
    struct outcome pieces = read_stream(data + 1, size - 1, 1 + data[0] % 97u);
    if (whole.digest != pieces.digest || whole.frames != pieces.frames || whole.last != pieces.last) {
        abort();
    }
    return 0;
}
