/* Frames come out as they went in, however the stream is cut; hostile sizes cost nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/frame.h"

struct collected {
    unsigned char bytes[4096];
    size_t size;
    size_t frames;
    size_t largest_buffer;
};

/* Feed `data` in pieces of `piece` bytes, growing the buffer as asked. Returns the last step. */
static enum aster_frame_step feed(struct aster_frame_reader *reader, const unsigned char *data, size_t size,
                                  size_t piece, struct collected *out)
{
    enum aster_frame_step step = ASTER_FRAME_NONE;
    for (size_t at = 0; at < size; at += piece) {
        struct aster_bytes input = {data + at, size - at < piece ? size - at : piece};
        do {
            struct aster_bytes payload;
            size_t needed = 0;
            step = aster_frame_reader_next(reader, &input, &payload, &needed);
            if (step == ASTER_FRAME_GROW) {
                assert_true(needed > reader->capacity);
                unsigned char *grown = realloc(reader->buffer, needed);
                assert_non_null(grown);
                aster_frame_reader_supply(reader, grown, needed);
                out->largest_buffer = needed;
            } else if (step == ASTER_FRAME_READY) {
                assert_true(out->size + payload.size <= sizeof out->bytes);
                memcpy(out->bytes + out->size, payload.data, payload.size);
                out->size += payload.size;
                out->frames++;
            } else if (step != ASTER_FRAME_NONE) {
                return step;
            }
        } while (step != ASTER_FRAME_NONE);
        assert_int_equal(input.size, 0);
    }
    return step;
}

static void a_header_is_the_length_in_big_endian(void **state)
{
    (void)state;
    unsigned char header[ASTER_FRAME_HEADER_SIZE];
    aster_frame_header(header, 0x01020304);
    assert_memory_equal(header, "\x01\x02\x03\x04", 4);
}

static void frames_survive_every_way_of_cutting_the_stream(void **state)
{
    (void)state;
    unsigned char stream[3 * ASTER_FRAME_HEADER_SIZE + 1 + 1500 + 30];
    unsigned char expected[1 + 1500 + 30];
    const size_t sizes[] = {1, 1500, 30};
    size_t at = 0;
    size_t sum = 0;
    for (size_t i = 0; i < 3; i++) {
        aster_frame_header(stream + at, sizes[i]);
        at += ASTER_FRAME_HEADER_SIZE;
        for (size_t k = 0; k < sizes[i]; k++) {
            stream[at++] = expected[sum++] = (unsigned char)(k * 7 + i);
        }
    }
    for (size_t piece = 1; piece <= sizeof stream; piece++) {
        struct aster_frame_reader reader;
        aster_frame_reader_init(&reader, 0);
        struct collected out = {.size = 0};
        assert_int_equal(feed(&reader, stream, sizeof stream, piece, &out), ASTER_FRAME_NONE);
        assert_int_equal(out.frames, 3);
        assert_int_equal(out.size, sum);
        assert_memory_equal(out.bytes, expected, sum);
        free(reader.buffer);
    }
}

static void a_frame_beyond_the_limit_is_refused_from_its_header_alone(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 4; piece++) {
        struct aster_frame_reader reader;
        aster_frame_reader_init(&reader, 100);
        struct collected out = {.size = 0};
        unsigned char header[ASTER_FRAME_HEADER_SIZE];
        aster_frame_header(header, 101);
        assert_int_equal(feed(&reader, header, sizeof header, piece, &out), ASTER_FRAME_TOO_LARGE);
        assert_null(reader.buffer);
    }
    struct aster_frame_reader reader;
    aster_frame_reader_init(&reader, SIZE_MAX);
    assert_int_equal(reader.payload_max, ASTER_FRAME_PAYLOAD_MAX);
    struct collected out = {.size = 0};
    assert_int_equal(feed(&reader, (const unsigned char *)"\xff\xff\xff\xff", 4, 4, &out), ASTER_FRAME_TOO_LARGE);
}

static void a_frame_of_exactly_the_limit_is_accepted(void **state)
{
    (void)state;
    struct aster_frame_reader reader;
    aster_frame_reader_init(&reader, 100);
    struct collected out = {.size = 0};
    unsigned char frame[ASTER_FRAME_HEADER_SIZE + 100] = {0};
    aster_frame_header(frame, 100);
    assert_int_equal(feed(&reader, frame, sizeof frame, 33, &out), ASTER_FRAME_NONE);
    assert_int_equal(out.frames, 1);
    free(reader.buffer);
}

static void an_empty_frame_is_refused(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= 4; piece++) {
        struct aster_frame_reader reader;
        aster_frame_reader_init(&reader, 0);
        struct collected out = {.size = 0};
        assert_int_equal(feed(&reader, (const unsigned char *)"\0\0\0\0", 4, piece, &out), ASTER_FRAME_EMPTY);
    }
}

static void memory_follows_what_arrived_not_what_was_announced(void **state)
{
    (void)state;
    struct aster_frame_reader reader;
    aster_frame_reader_init(&reader, 0);
    struct collected out = {.size = 0};
    unsigned char start[ASTER_FRAME_HEADER_SIZE + 10] = {0};
    aster_frame_header(start, ASTER_FRAME_PAYLOAD_MAX);
    assert_int_equal(feed(&reader, start, sizeof start, sizeof start, &out), ASTER_FRAME_NONE);
    assert_true(out.largest_buffer <= 512);
    free(reader.buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_is_the_length_in_big_endian),
        cmocka_unit_test(frames_survive_every_way_of_cutting_the_stream),
        cmocka_unit_test(a_frame_beyond_the_limit_is_refused_from_its_header_alone),
        cmocka_unit_test(a_frame_of_exactly_the_limit_is_accepted),
        cmocka_unit_test(an_empty_frame_is_refused),
        cmocka_unit_test(memory_follows_what_arrived_not_what_was_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
