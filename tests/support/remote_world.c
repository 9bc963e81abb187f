#include "support/remote_world.h"

#include "aster/sys/serializer.h"
#include "support/unit.h"

#define IDLE_TIMEOUT_MS 600
#define PATIENCE_MS 10000

void remote_world_init(struct remote_world *world)
{
    memset(world, 0, sizeof *world);
    remote_grantor_init(&world->grantor, NULL);
    remote_grantor_start(&world->grantor, REMOTE_QUIC, 0);
    remote_client_init(&world->client);
}

void remote_world_fini(struct remote_world *world)
{
    aster_reply_fini(&world->reply);
    remote_client_fini(&world->client);
    aster_relay_stop(&world->relay);
    remote_grantor_fini(&world->grantor);
}

void remote_world_open(struct remote_world *world)
{
    struct aster_grantor_options options = remote_client_options(&world->client, &world->grantor);
    options.idle_timeout_ms = IDLE_TIMEOUT_MS;
    remote_client_open(&world->client, &options);
}

void remote_world_open_through_relay(struct remote_world *world)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    quic_relay_start(&world->relay, &world->grantor.bound);
    struct aster_grantor_options options = remote_client_options(&world->client, &world->grantor);
    options.addresses = aster_address_text(&world->relay.address, text);
    options.idle_timeout_ms = IDLE_TIMEOUT_MS;
    options.without_tcp = true;
    remote_client_open(&world->client, &options);
}

struct aster_operation remote_world_operation(struct remote_world *world, enum aster_operation_kind kind, int64_t epoch)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text("catalog");
    operation.caller = aster_text(world->client.id);
    operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 30000 : 0;
    operation.epoch = epoch;
    return operation;
}

aster_status remote_world_call(struct remote_world *world, const struct aster_operation *operation, int64_t timeout_ms)
{
    world->error = (struct aster_error)ASTER_ERROR_INIT;
    return aster_serializer_call(world->client.serializer, operation, timeout_ms, &world->reply, &world->error);
}

void remote_world_expect(struct remote_world *world, const struct aster_operation *operation, int64_t epoch)
{
    if (remote_world_call(world, operation, PATIENCE_MS) != ASTER_OK) {
        fail_msg("%s", world->error.message);
    }
    assert_int_equal(world->reply.decision.reason, ASTER_REASON_NONE);
    assert_int_equal(world->reply.decision.epoch, epoch);
}
