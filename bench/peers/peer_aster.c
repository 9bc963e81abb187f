/* asterd, spoken to on the wire over QUIC: one connection per client, one network thread for all of them. With more
 * than one lease a client renews all of its leases in one message, as the client library does. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "platform/entropy.h"
#include "quic/transport.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

#define WAIT_MS 60000
#define HANDSHAKE_PATIENCE_MS 10000

struct connection {
    struct client *client;
    struct aster_link *link;
    bool greeted;
    uint64_t last_id;
    size_t unanswered; /* acquires of several leases */
    char (*names)[32];
    struct aster_operation *leases;
};

static const char *node_directory;
static const char *server_identity;
static bool over_tcp;
static struct aster_loop *loop;
static struct aster_transport *transport;
static struct aster_scratch scratch;
static unsigned char *frame;
static uint64_t last_request; /* of all clients */
static uint64_t run;          /* told from other runs by it */

static void send_call(struct connection *connection, const struct aster_call *call)
{
    struct aster_error error;
    size_t length;
    scratch.used = 0;
    if (aster_call_encode(call, &scratch, frame, ASTER_FRAME_PAYLOAD_MAX, &length, &error) != ASTER_OK ||
        aster_link_send(connection->link, (struct aster_bytes){frame, length}, &error) != ASTER_OK) {
        die("client %d: %s", connection->client->id, error.message);
    }
}

static void on_opened(struct aster_link *link, void *user)
{
    struct connection *connection = user;
    connection->link = link;
    const struct aster_call hello = {.kind = ASTER_CALL_HELLO, .hello = {ASTER_WIRE_VERSION, aster_text("bench")}};
    send_call(connection, &hello);
}

static enum outcome decided(struct connection *connection, const struct aster_decision *decision)
{
    struct client *client = connection->client;
    if (decision->outcome != ASTER_GRANTED) {
        return OUTCOME_REFUSED;
    }
    client->epoch = decision->epoch;
    if (decision->kind == ASTER_OP_ACQUIRE) { /* in the order of sending: one connection, no waiting */
        connection->leases[(size_t)options.leases - connection->unanswered].epoch = decision->epoch;
        connection->unanswered--;
    }
    return connection->unanswered > 0 ? OUTCOME_PENDING : OUTCOME_OK;
}

static enum outcome renewed_all(const struct aster_answer *answer)
{
    for (size_t i = 0; i < answer->renewed.count; i++) {
        if (answer->renewed.results[i].status != ASTER_OK ||
            answer->renewed.results[i].decision.outcome != ASTER_GRANTED) {
            return OUTCOME_REFUSED;
        }
    }
    return OUTCOME_OK;
}

static enum outcome outcome_of(struct connection *connection, const struct aster_answer *answer)
{
    switch (answer->kind) {
    case ASTER_ANSWER_ACCEPTED:
        connection->greeted = true;
        return OUTCOME_OK;
    case ASTER_ANSWER_DECISION:
        return decided(connection, &answer->decision);
    case ASTER_ANSWER_RENEWED_MANY:
        return renewed_all(answer);
    case ASTER_ANSWER_ERROR:
        fprintf(stderr, "asterd: %.*s\n", (int)answer->error.message.size, (const char *)answer->error.message.data);
        return OUTCOME_ERROR;
    default:
        return OUTCOME_ERROR;
    }
}

static void on_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)link;
    struct connection *connection = user;
    struct aster_answer answer;
    struct aster_error error;
    scratch.used = 0;
    if (aster_answer_decode(payload, &scratch, &answer, &error) != ASTER_OK) {
        die("client %d: %s", connection->client->id, error.message);
    }
    enum outcome outcome = outcome_of(connection, &answer);
    if (outcome != OUTCOME_PENDING) {
        driver_report(connection->client, outcome);
    }
}

static void on_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    const struct connection *connection = user;
    die("client %d: connection lost: %s: %s", connection->client->id, aster_link_end_name(end), error->message);
}

static bool admit_all(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

static const struct aster_link_handler handler = {on_opened, on_frame, NULL, on_closed};

static void start(void)
{
    struct aster_transport_options settings = ASTER_TRANSPORT_OPTIONS_INIT;
    struct aster_error error;
    if (node_directory == NULL || server_identity == NULL) {
        die("--node DIRECTORY and --server IDENTITY are needed");
    }
    if (aster_entropy_fill(&run, sizeof run, &error) != ASTER_OK) {
        die("%s", error.message);
    }
    scratch = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    frame = malloc(ASTER_FRAME_PAYLOAD_MAX);
    settings.admit = admit_all;
    settings.handler = &handler;
    if (scratch.data == NULL || frame == NULL || aster_loop_create("bench", &settings.loop, &error) != ASTER_OK ||
        aster_credentials_load_node(node_directory, &settings.credentials, &error) != ASTER_OK ||
        (over_tcp ? aster_tcp_transport_create : aster_quic_transport_create)(&settings, &transport, &error) !=
            ASTER_OK) {
        die("%s", error.message);
    }
    loop = settings.loop;
}

static aster_status run_connect(void *argument)
{
    struct connection *connection = argument;
    struct aster_address remote;
    struct aster_error error;
    char text[32];
    size_t count;
    snprintf(text, sizeof text, "127.0.0.1:%d", options.port);
    aster_status status = aster_address_resolve(text, false, &remote, 1, &count, &error);
    if (status == ASTER_OK) {
        status = aster_transport_connect(transport, &remote, aster_text(server_identity), connection, &connection->link,
                                         &error);
    }
    if (status != ASTER_OK) {
        die("%s", error.message);
    }
    return ASTER_OK;
}

/* With one lease it has the client's name, which may change; several have names of their own. */
static void name_leases(struct connection *connection)
{
    for (int i = 0; i < options.leases; i++) {
        connection->leases[i] = (struct aster_operation)ASTER_OPERATION_INIT;
        snprintf(connection->names[i], sizeof connection->names[i], "%.20s-%d", connection->client->resource, i);
        connection->leases[i].resource = aster_text(connection->names[i]);
    }
}

static enum outcome open_client(struct client *client)
{
    if (loop == NULL) {
        start();
    }
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        return OUTCOME_ERROR;
    }
    connection->client = client;
    connection->names = calloc((size_t)options.leases, sizeof *connection->names);
    connection->leases = calloc((size_t)options.leases, sizeof *connection->leases);
    if (connection->names == NULL || connection->leases == NULL) {
        return OUTCOME_ERROR;
    }
    name_leases(connection);
    client->own = connection;
    client->awaited = true;
    aster_loop_call(loop, run_connect, connection);
    return driver_await(client, HANDSHAKE_PATIENCE_MS);
}

static struct aster_operation *prepare(struct connection *connection, int lease, enum aster_operation_kind kind)
{
    struct aster_operation *operation = &connection->leases[lease];
    operation->kind = kind;
    operation->ttl_ms = kind == ASTER_OP_ACQUIRE ? options.ttl_ms : 0;
    if (options.leases == 1) {
        operation->resource = aster_text(connection->client->resource);
    }
    uint64_t parts[2] = {++last_request, run};
    memcpy(operation->request_id, parts, sizeof parts);
    return operation;
}

static void send_one(struct connection *connection, int lease, enum aster_operation_kind kind)
{
    struct aster_call call = {.id = ++connection->last_id, .kind = ASTER_CALL_OPERATION};
    call.one.operation = *prepare(connection, lease, kind);
    call.one.wait_ms = kind == ASTER_OP_ACQUIRE ? WAIT_MS : 0;
    send_call(connection, &call);
}

static enum outcome aster_acquire(struct client *client)
{
    struct connection *connection = client->own;
    connection->unanswered = (size_t)options.leases;
    for (int i = 0; i < options.leases; i++) {
        send_one(connection, i, ASTER_OP_ACQUIRE);
    }
    return OUTCOME_PENDING;
}

static enum outcome aster_renew(struct client *client)
{
    struct connection *connection = client->own;
    if (options.leases == 1) {
        send_one(connection, 0, ASTER_OP_RENEW);
        return OUTCOME_PENDING;
    }
    struct aster_call call = {.id = ++connection->last_id, .kind = ASTER_CALL_RENEW_MANY};
    for (int i = 0; i < options.leases; i++) {
        prepare(connection, i, ASTER_OP_RENEW);
    }
    call.many.operations = connection->leases;
    call.many.count = (size_t)options.leases;
    send_call(connection, &call);
    return OUTCOME_PENDING;
}

static enum outcome aster_release_one(struct client *client)
{
    send_one(client->own, 0, ASTER_OP_RELEASE);
    return OUTCOME_PENDING;
}

struct calling {
    void (*function)(void *argument);
    void *argument;
};

static aster_status run_calling(void *argument)
{
    const struct calling *calling = argument;
    calling->function(calling->argument);
    return ASTER_OK;
}

static void call_there(void (*function)(void *argument), void *argument)
{
    struct calling calling = {function, argument};
    aster_loop_call(loop, run_calling, &calling);
}

static bool set_option(const char *key, const char *value)
{
    if (strcmp(key, "--node") == 0) {
        node_directory = value;
    } else if (strcmp(key, "--server") == 0) {
        server_identity = value;
    } else if (strcmp(key, "--transport") == 0) {
        over_tcp = strcmp(value, "tcp") == 0;
    } else {
        return false;
    }
    return true;
}

const struct peer peer = {.name = "aster",
                          .option = set_option,
                          .open = open_client,
                          .acquire = aster_acquire,
                          .renew = aster_renew,
                          .release = aster_release_one,
                          .call = call_there};
