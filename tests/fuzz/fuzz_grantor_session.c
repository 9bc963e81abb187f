/* A whole server session: hostile and honest peers send whatever they like, in any order with lost links, slow readers,
 * time, changed rules and shutdown. No crash, no leak, every answer well-formed, nobody told what is not his to see,
 * nothing left at the end. */
#include <stdint.h>
#include <stdlib.h>

#include "grantor_session/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

/* The next number of `bytes` bytes; 0 when the input has ended. */
static uint64_t number(struct input *input, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && input->size > 0; i++) {
        value = value << 8 | *input->data++;
        input->size--;
    }
    return value;
}

static struct aster_bytes rest(struct input *input, size_t most)
{
    struct aster_bytes bytes = {input->data, input->size < most ? input->size : most};
    input->data += bytes.size;
    input->size -= bytes.size;
    return bytes;
}

static struct aster_bytes name(struct input *input)
{
    static const char *const names[] = {"a", "b", "b/1", "b/2", "catalog", "bb", "a/1", ""};
    return aster_text(names[number(input, 1) % 8]);
}

static struct aster_operation operation(struct input *input)
{
    static const enum aster_operation_kind kinds[] = {ASTER_OP_ACQUIRE, ASTER_OP_ACQUIRE, ASTER_OP_RENEW,
                                                      ASTER_OP_RELEASE, ASTER_OP_REVOKE,  ASTER_OP_PUT,
                                                      ASTER_OP_FORGET,  ASTER_OP_INSPECT};
    struct aster_operation made = ASTER_OPERATION_INIT;
    made.kind = kinds[number(input, 1) % 8];
    made.resource = name(input);
    made.epoch = (int64_t)number(input, 1);
    made.value_revision = made.kind == ASTER_OP_PUT ? made.epoch % 4 : 0;
    made.ttl_ms = made.kind == ASTER_OP_ACQUIRE || made.kind == ASTER_OP_RENEW ? 100 + (int64_t)number(input, 2) : 0;
    made.request_id[0] = (unsigned char)(1 + number(input, 1) % 8);
    if (made.kind == ASTER_OP_PUT) {
        made.value = rest(input, (size_t)number(input, 1));
    }
    return made;
}

static void call(int peer, struct input *input)
{
    static struct aster_operation renewals[16];
    struct aster_call made = {.id = 1 + number(input, 1) % 16};
    made.kind = (enum aster_call_kind)(1 + number(input, 1) % 7);
    switch (made.kind) {
    case ASTER_CALL_HELLO:
        made.id = 0;
        made.hello.version = 1;
        break;
    case ASTER_CALL_OPERATION:
        made.one.operation = operation(input);
        made.one.wait_ms = made.one.operation.kind == ASTER_OP_ACQUIRE ? (uint32_t)number(input, 2) : 0;
        break;
    case ASTER_CALL_RENEW_MANY:
        made.many.operations = renewals;
        made.many.count = 1 + number(input, 1) % 16;
        for (size_t i = 0; i < made.many.count; i++) {
            renewals[i] = operation(input);
            renewals[i].kind = ASTER_OP_RENEW;
            renewals[i].ttl_ms = 1000;
            renewals[i].value = (struct aster_bytes){NULL, 0};
            renewals[i].value_revision = 0;
        }
        break;
    case ASTER_CALL_LIST:
        made.list.prefix = name(input);
        made.list.after = name(input);
        made.list.limit = (uint32_t)number(input, 1);
        break;
    case ASTER_CALL_HISTORY:
    case ASTER_CALL_WATCH:
        made.events.resource = name(input);
        made.events.after_revision = (int64_t)number(input, 1);
        made.events.limit = made.kind == ASTER_CALL_HISTORY ? (uint32_t)number(input, 1) : 0;
        break;
    default:
        made.cancel_id = 1 + number(input, 1) % 16;
    }
    made.deadline_ms = (uint32_t)number(input, 1) * 16;
    world_call(peer, &made);
}

static void nodes(int peer, struct input *input)
{
    static struct aster_bytes roles[2];
    struct aster_call made = {.id = 1 + number(input, 1) % 16};
    made.kind = (enum aster_call_kind)(ASTER_CALL_NODE_ADD + number(input, 1) % 5);
    if (made.kind == ASTER_CALL_REQUIRE) {
        made.require.verb = (int)(number(input, 1) % ASTER_VERBS);
        made.require.role = name(input);
    } else {
        uint64_t flags = number(input, 1);
        made.node.record.id = aster_text(world_identity((int)(flags % 8)));
        made.node.replace = made.kind == ASTER_CALL_NODE_ADD && (flags & 8) != 0;
        made.node.revoke = made.kind == ASTER_CALL_NODE_REMOVE && (flags & 8) != 0;
        roles[0] = (flags & 16) != 0 ? aster_text(ASTER_ROLE_OPERATOR) : name(input);
        roles[1] = name(input);
        made.node.record.roles = (struct aster_bytes_list){&roles[0], (flags >> 5) % 2};
        made.node.record.resources = (struct aster_bytes_list){&roles[1], (flags >> 6) % 2};
        made.node.dropped = (struct aster_bytes_list){&roles[1], made.kind == ASTER_CALL_NODE_ROLE};
    }
    world_call(peer, &made);
}

static void hello(int peer)
{
    const struct aster_call made = {.kind = ASTER_CALL_HELLO, .hello = {.version = 1}};
    world_call(peer, &made);
}

static void flood(int peer, struct input *input)
{
    struct aster_call made = {.kind = ASTER_CALL_OPERATION, .id = 20};
    made.one.operation = operation(input);
    for (uint64_t count = number(input, 1) * 8; count > 0; count--) {
        made.id++;
        made.one.operation.request_id[1]++;
        world_call(peer, &made);
    }
}

static void step(struct input *input)
{
    uint64_t action = number(input, 1);
    int peer = (int)(action >> 4) % WORLD_PEERS;
    switch (action % 16) {
    case 0:
        world_bytes(peer, rest(input, (size_t)number(input, 1)));
        break;
    case 1:
        world_payload(peer, rest(input, (size_t)number(input, 2) % 1024));
        break;
    case 2:
        world_cut(peer);
        break;
    case 3:
        world_take(peer, (size_t)number(input, 2) * 64);
        break;
    case 4:
        world_advance_ms((int64_t)number(input, 2));
        break;
    case 5:
        world_read();
        break;
    case 6:
        world_reload((unsigned)number(input, 1));
        break;
    case 7:
        flood(peer, input);
        break;
    case 8:
        hello(peer);
        break;
    case 9:
        if (number(input, 1) == 0xff) {
            world_drain();
        } else {
            nodes(peer, input);
        }
        break;
    default:
        call(peer, input);
    }
    if ((action & 0x80) == 0) {
        world_end_round();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    world_open((number(&input, 1) & 1) != 0);
    while (input.size > 0) {
        step(&input);
    }
    world_close();
    return 0;
}
