/* Bytes stay where they are from append to release, and come out in order, however sending and release are cut. */
#include "support/unit.h"

#include <stdlib.h>

#include "quic/send_queue.h"

#define STREAM 200000

static unsigned char byte_at(size_t position)
{
    return (unsigned char)(position * 31 + position / 251);
}

static void append(struct aster_send_queue *queue, size_t position, size_t head, size_t body)
{
    unsigned char *bytes = malloc(head + body + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < head + body; i++) {
        bytes[i] = byte_at(position + i);
    }
    assert_int_equal(aster_send_queue_append(queue, (struct aster_bytes){bytes, head},
                                             (struct aster_bytes){bytes + head, body}, NULL),
                     ASTER_OK);
    free(bytes);
}

/* "Send" up to `size` bytes, checking each. Returns how many there were. */
static size_t send_some(struct aster_send_queue *queue, size_t position, size_t size, size_t max_pieces)
{
    struct iovec pieces[8];
    size_t count = aster_send_queue_unsent(queue, pieces, max_pieces);
    size_t sent = 0;
    for (size_t i = 0; i < count && sent < size; i++) {
        assert_true(pieces[i].iov_len > 0);
        const unsigned char *bytes = pieces[i].iov_base;
        for (size_t k = 0; k < pieces[i].iov_len && sent < size; k++, sent++) {
            assert_int_equal(bytes[k], byte_at(position + sent));
        }
    }
    aster_send_queue_mark_sent(queue, sent);
    return sent;
}

static void a_stream_cut_at_random_comes_out_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct aster_send_queue queue = {0};
        uint64_t random = seed * 88172645463325252u;
        size_t appended = 0;
        size_t sent = 0;
        size_t released = 0;
        while (released < STREAM) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size_t amount = random >> 40 & (random & 8 ? 0x3fff : 0x3f);
            switch (random % 3) {
            case 0:
                amount = amount < STREAM - appended ? amount : STREAM - appended;
                append(&queue, appended, amount / 3, amount - amount / 3);
                appended += amount;
                break;
            case 1:
                sent += send_some(&queue, sent, amount, 1 + random % 8);
                break;
            default:
                amount = amount < sent - released ? amount : sent - released;
                aster_send_queue_release(&queue, amount);
                released += amount;
            }
            assert_int_equal(queue.size, appended - released);
            assert_int_equal(queue.unsent, appended - sent);
        }
        aster_send_queue_fini(&queue);
        assert_null(queue.first);
    }
}

static void bytes_do_not_move_while_they_are_held(void **state)
{
    (void)state;
    struct aster_send_queue queue = {0};
    struct iovec first;
    append(&queue, 0, 4, 40);
    assert_int_equal(aster_send_queue_unsent(&queue, &first, 1), 1);
    const void *place = first.iov_base;
    assert_int_equal(send_some(&queue, 0, 44, 8), 44);
    for (size_t i = 0; i < 100; i++) {
        append(&queue, 44 + 1000 * i, 4, 996);
    }
    assert_int_equal(*(const unsigned char *)place, byte_at(0));
    assert_int_equal(queue.size, 44 + 100000);
    aster_send_queue_fini(&queue);
}

static void an_idle_queue_holds_one_small_piece_of_memory(void **state)
{
    (void)state;
    struct aster_send_queue queue = {0};
    append(&queue, 0, 0, 0);
    assert_null(queue.first);
    append(&queue, 0, 4, 40);
    const void *chunk = queue.first;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(send_some(&queue, 0, 44, 8), 44);
        aster_send_queue_release(&queue, 44);
        assert_ptr_equal(queue.first, chunk);
        append(&queue, 0, 4, 40);
    }
    assert_int_equal(send_some(&queue, 0, 44, 8), 44);
    aster_send_queue_release(&queue, 44);
    append(&queue, 0, 4, 100000);
    while (queue.unsent > 0) {
        send_some(&queue, 0, 0, 1);
        aster_send_queue_mark_sent(&queue, queue.unsent);
    }
    aster_send_queue_release(&queue, 100004);
    assert_null(queue.first); /* the large pieces are given back */
    aster_send_queue_fini(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_cut_at_random_comes_out_in_order),
        cmocka_unit_test(bytes_do_not_move_while_they_are_held),
        cmocka_unit_test(an_idle_queue_holds_one_small_piece_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
