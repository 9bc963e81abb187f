#include "support/grantor_world.h"

#include <stdio.h>
#include <unistd.h>

#include "support/unit.h"

void grantor_world_init(struct grantor_world *world, const char *journal)
{
    grantor_process_init(&world->server, journal);
    grantor_client_init(&world->a, "a");
    grantor_client_init(&world->b, "b");
    grantor_client_init(&world->op, "op");
}

void grantor_world_fini(struct grantor_world *world)
{
    grantor_client_fini(&world->op);
    grantor_client_fini(&world->b);
    grantor_client_fini(&world->a);
    grantor_process_fini(&world->server);
}

void grantor_world_configure(struct grantor_world *world, const char *of_b, const char *rest)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "node \"%s\" { name = \"a\" }\nnode \"%s\" { name = \"b\" %s }\nnode \"%s\" { roles = {\"operator\"} }\n%s",
        world->a.id, world->b.id, of_b, world->op.id, rest);
    grantor_process_configure(&world->server, text);
}

void grantor_world_start(struct grantor_world *world)
{
    grantor_process_start(&world->server);
    grantor_client_connect(&world->a, world->server.quic, false);
    grantor_client_connect(&world->b, world->server.quic, false);
    grantor_client_connect(&world->op, world->server.tcp, true);
}

void grantor_world_await_connections(struct grantor_world *world, size_t count)
{
    static char text[65536];
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\naster_connections %zu\n", count);
    for (int rounds = 0; rounds < 2000; rounds++) {
        grantor_process_fetch(&world->server, "/metrics", text, sizeof text);
        if (strstr(text, wanted) != NULL) {
            return;
        }
        usleep(10000);
    }
    fail_msg("there are never %zu connections: %s", count, text);
}

int64_t grantor_world_take(struct grantor_client *client, const char *resource, int64_t ttl_ms)
{
    const struct aster_decision *decision =
        grantor_client_decision(client, grantor_client_acquire(client, resource, ttl_ms, 0));
    assert_granted(decision);
    return decision->epoch;
}
