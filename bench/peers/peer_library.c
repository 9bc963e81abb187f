/* asterd through the public client library: one serializer, and so one network thread and one connection, per client.
 * All leases of a client are submitted together; the library packs what it can into one message. With --shared yes the
 * clients share one serializer, as the workers of one process do. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "aster/aster.h"
#include "aster/grantor.h"
#include "aster/sys/serializer.h"
#include "driver.h"

#define DEADLINE_NS INT64_C(30000000000)

struct lease {
    struct aster_request request; /* first */
    struct holder *holder;
    char name[32];
};

struct holder {
    struct client *client;
    struct aster_serializer *serializer;
    struct lease *leases;
    struct aster_request **requests;
    atomic_int unanswered;
    atomic_bool refused;
};

static const char *node_directory;
static const char *server_identity;
static bool shares;
static struct aster_serializer *shared;

static void answered(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct holder *holder = ((struct lease *)request)->holder;
    if (status != ASTER_OK) {
        die("client %d: %s", holder->client->id, error != NULL ? error->message : aster_status_name(status));
    }
    if (decision->outcome == ASTER_GRANTED) {
        request->operation.epoch = decision->epoch;
    } else {
        atomic_store(&holder->refused, true);
    }
    if (atomic_fetch_sub(&holder->unanswered, 1) == 1) {
        driver_report(holder->client, atomic_load(&holder->refused) ? OUTCOME_REFUSED : OUTCOME_OK);
    }
}

/* Random to begin with, so that no other run has it. */
static void next_id(unsigned char request_id[ASTER_REQUEST_ID_SIZE])
{
    for (int i = 0; i < ASTER_REQUEST_ID_SIZE && ++request_id[i] == 0; i++) {
    }
}

static enum outcome submit(struct client *client, enum aster_operation_kind kind)
{
    struct holder *holder = client->own;
    int64_t now = aster_clock_now_ns(aster_clock_system());
    atomic_store(&holder->refused, false);
    atomic_store(&holder->unanswered, options.leases);
    for (int i = 0; i < options.leases; i++) {
        struct aster_request *request = &holder->leases[i].request;
        request->operation.kind = kind;
        request->operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? options.ttl_ms : 0;
        request->deadline_ns = now + DEADLINE_NS;
        request->wait_until_ns = kind == ASTER_OP_ACQUIRE ? now + DEADLINE_NS : 0;
        next_id(request->operation.request_id);
    }
    aster_serializer_submit_many(holder->serializer, holder->requests, (size_t)options.leases);
    return OUTCOME_PENDING;
}

static void prepare_leases(struct holder *holder)
{
    for (int i = 0; i < options.leases; i++) {
        struct lease *lease = &holder->leases[i];
        lease->holder = holder;
        lease->request = (struct aster_request)ASTER_REQUEST_INIT;
        snprintf(lease->name, sizeof lease->name, "%.20s-%d", holder->client->resource, i);
        lease->request.operation.resource = aster_text(lease->name);
        lease->request.operation.caller = aster_grantor_identity(holder->serializer);
        lease->request.complete = answered;
        if (getrandom(lease->request.operation.request_id, ASTER_REQUEST_ID_SIZE, 0) != ASTER_REQUEST_ID_SIZE) {
            die("no random bytes");
        }
        holder->requests[i] = &lease->request;
    }
}

static struct aster_serializer *open_serializer(void)
{
    struct aster_grantor_options settings = ASTER_GRANTOR_OPTIONS_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_serializer *made = NULL;
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", options.port);
    settings.addresses = address;
    settings.server = server_identity;
    settings.node = node_directory;
    settings.without_tcp = true;
    if (aster_grantor_open(&settings, &made, &error) != ASTER_OK) {
        die("%s", error.message);
    }
    return made;
}

static enum outcome open_client(struct client *client)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL || node_directory == NULL || server_identity == NULL) {
        die("--node DIRECTORY and --server IDENTITY are needed");
    }
    holder->client = client;
    holder->leases = calloc((size_t)options.leases, sizeof *holder->leases);
    holder->requests = calloc((size_t)options.leases, sizeof(struct aster_request *));
    if (holder->leases == NULL || holder->requests == NULL) {
        die("out of memory");
    }
    if (!shares || shared == NULL) {
        shared = open_serializer();
    }
    holder->serializer = shared;
    prepare_leases(holder);
    client->own = holder;
    return OUTCOME_OK;
}

static enum outcome acquire(struct client *client)
{
    return submit(client, ASTER_OP_ACQUIRE);
}

static enum outcome renew(struct client *client)
{
    return submit(client, ASTER_OP_RENEW);
}

static enum outcome release_all(struct client *client)
{
    return submit(client, ASTER_OP_RELEASE);
}

static void call_here(void (*function)(void *argument), void *argument)
{
    function(argument);
}

static bool set_option(const char *key, const char *value)
{
    if (strcmp(key, "--node") == 0) {
        node_directory = value;
    } else if (strcmp(key, "--server") == 0) {
        server_identity = value;
    } else if (strcmp(key, "--shared") == 0) {
        shares = strcmp(value, "yes") == 0;
    } else {
        return false;
    }
    return true;
}

const struct peer peer = {.name = "library",
                          .option = set_option,
                          .open = open_client,
                          .acquire = acquire,
                          .renew = renew,
                          .release = release_all,
                          .call = call_here};
