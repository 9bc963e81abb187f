#include "support/grantor_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform/entropy.h"
#include "support/quic_side.h"

#define PATIENCE_SECONDS 20

static bool admit(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

static void opened(struct aster_link *link, void *user)
{
    struct grantor_client *client = user;
    pthread_mutex_lock(&client->lock);
    client->link = link;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)link;
    struct grantor_client *client = user;
    static _Thread_local unsigned char memory[ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
    struct aster_scratch scratch = {memory, sizeof memory, 0};
    struct aster_answer answer;
    struct grantor_received *one = malloc(sizeof *one + payload.size);
    if (one == NULL || aster_answer_decode(payload, &scratch, &answer, NULL) != ASTER_OK) {
        free(one);
        return; /* the test that waits for it will say so */
    }
    one->next = NULL;
    one->id = answer.id;
    one->size = payload.size;
    memcpy(one->payload, payload.data, payload.size);
    pthread_mutex_lock(&client->lock);
    struct grantor_received **end = &client->received;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = one;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static void closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)error;
    struct grantor_client *client = user;
    pthread_mutex_lock(&client->lock);
    client->link = NULL;
    client->closed = true;
    client->end = end;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

static const struct aster_link_handler handler = {opened, frame, NULL, closed};

void grantor_client_init(struct grantor_client *client, const char *name)
{
    struct aster_error error = ASTER_ERROR_INIT;
    memset(client, 0, sizeof *client);
    snprintf(client->directory, sizeof client->directory, "/tmp/aster-client-XXXXXX");
    assert_non_null(mkdtemp(client->directory));
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->changed, NULL);
    client->scratch = malloc(ASTER_SCRATCH_SIZE);
    assert_non_null(client->scratch);
    assert_int_equal(aster_node_create(client->directory, name, 1, client->id, &error), ASTER_OK);
    client->identity = aster_text(client->id);
    assert_int_equal(aster_loop_create(name, &client->loop, &error), ASTER_OK);
}

static void forget(struct grantor_client *client)
{
    while (client->received != NULL) {
        struct grantor_received *next = client->received->next;
        free(client->received);
        client->received = next;
    }
}

void grantor_client_fini(struct grantor_client *client)
{
    struct aster_node_paths paths;
    aster_transport_destroy(client->transport);
    aster_loop_destroy(client->loop);
    forget(client);
    assert_int_equal(aster_node_paths(client->directory, &paths, NULL), ASTER_OK);
    unlink(paths.key);
    unlink(paths.certificate);
    unlink(paths.secret);
    rmdir(client->directory);
    free(client->scratch);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->lock);
}

/* Under the lock. */
static bool wait_changed(struct grantor_client *client, const struct timespec *until)
{
    return pthread_cond_timedwait(&client->changed, &client->lock, until) == 0;
}

static struct timespec patience(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    return until;
}

struct order {
    struct grantor_client *client;
    struct aster_address remote;
    struct aster_bytes bytes;
    bool close;
    bool throttled;
    struct aster_error error;
};

static aster_status run_connect(void *argument)
{
    struct order *order = argument;
    struct aster_link *link;
    const struct aster_bytes anybody = {NULL, 0};
    return aster_transport_connect(order->client->transport, &order->remote, anybody, order->client, &link,
                                   &order->error);
}

bool grantor_client_link(struct grantor_client *client, uint16_t port, bool tcp)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    aster_transport_destroy(client->transport);
    client->transport = NULL;
    forget(client);
    client->closed = false;
    const char *directory = client->as != NULL ? client->as->directory : client->directory;
    aster_status status = client->files != NULL ? aster_credentials_load(client->files, &options.credentials, &error)
                                                : aster_credentials_load_node(directory, &options.credentials, &error);
    assert_int_equal(status, ASTER_OK);
    options.loop = client->loop;
    options.admit = admit;
    options.handler = &handler;
    if (client->idle_timeout_ms > 0) {
        options.idle_timeout_ms = client->idle_timeout_ms;
        options.keep_alive_ms = client->idle_timeout_ms / 3;
    }
    options.user = client;
    status = tcp ? aster_tcp_transport_create(&options, &client->transport, &error)
                 : aster_quic_transport_create(&options, &client->transport, &error);
    aster_credentials_unref(options.credentials);
    if (status != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    struct order order = {.client = client, .remote = loopback_address(port)};
    if (aster_loop_call(client->loop, run_connect, &order) != ASTER_OK) {
        fail_msg("%s", order.error.message);
    }
    const struct timespec until = patience();
    pthread_mutex_lock(&client->lock);
    while (client->link == NULL && !client->closed && wait_changed(client, &until)) {
    }
    bool open = client->link != NULL;
    bool answered = open || client->closed;
    pthread_mutex_unlock(&client->lock);
    assert_true(answered);
    return open;
}

void grantor_client_greet(struct grantor_client *client)
{
    struct aster_call hello = {.kind = ASTER_CALL_HELLO};
    hello.hello.version = ASTER_WIRE_VERSION;
    hello.hello.agent = aster_text("test");
    grantor_client_send(client, &hello);
    const struct aster_answer *answer = grantor_client_await(client, 0);
    assert_int_equal(answer->kind, ASTER_ANSWER_ACCEPTED);
    assert_true(aster_bytes_equal(answer->accepted.identity, client->identity));
}

void grantor_client_connect(struct grantor_client *client, uint16_t port, bool tcp)
{
    if (!grantor_client_link(client, port, tcp)) {
        fail_msg("not connected: %s", aster_link_end_name(client->end));
    }
    grantor_client_greet(client);
}

static aster_status run_send(void *argument)
{
    struct order *order = argument;
    aster_status status = ASTER_OK;
    pthread_mutex_lock(&order->client->lock);
    struct aster_link *link = order->client->link;
    pthread_mutex_unlock(&order->client->lock);
    if (link == NULL) {
        return ASTER_ERR_CLOSED;
    }
    if (order->bytes.size > 0) {
        status = aster_link_send(link, order->bytes, &order->error);
    }
    if (order->close) {
        aster_link_close(link, "done");
    }
    return status;
}

static aster_status run_throttle(void *argument)
{
    struct order *order = argument;
    aster_link_throttle(order->client->link, order->throttled);
    return ASTER_OK;
}

void grantor_client_throttle(struct grantor_client *client, bool throttled)
{
    struct order order = {.client = client, .throttled = throttled};
    aster_loop_call(client->loop, run_throttle, &order);
}

void grantor_client_send_bytes(struct grantor_client *client, const void *data, size_t size)
{
    struct order order = {.client = client, .bytes = {data, size}};
    aster_loop_call(client->loop, run_send, &order); /* the server may have closed: the test will see */
}

static uint64_t send_call(struct grantor_client *client, struct aster_call *call, bool close)
{
    static unsigned char payload[ASTER_FRAME_PAYLOAD_MAX];
    struct aster_scratch scratch = {client->scratch, ASTER_SCRATCH_SIZE, 0};
    struct aster_error error = ASTER_ERROR_INIT;
    struct order order = {.client = client, .close = close};
    call->id = call->kind == ASTER_CALL_HELLO ? 0 : ++client->last_id;
    if (aster_call_encode(call, &scratch, payload, sizeof payload, &order.bytes.size, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    order.bytes.data = payload;
    if (aster_loop_call(client->loop, run_send, &order) != ASTER_OK) {
        fail_msg("not sent: %s", order.error.message);
    }
    return call->id;
}

uint64_t grantor_client_send(struct grantor_client *client, struct aster_call *call)
{
    return send_call(client, call, false);
}

void grantor_client_send_and_close(struct grantor_client *client, struct aster_call *call)
{
    send_call(client, call, true);
    grantor_client_await_close(client);
}

void grantor_client_await_close(struct grantor_client *client)
{
    const struct timespec until = patience();
    pthread_mutex_lock(&client->lock);
    while (!client->closed && wait_changed(client, &until)) {
    }
    bool done = client->closed;
    pthread_mutex_unlock(&client->lock);
    assert_true(done);
}

void grantor_client_close(struct grantor_client *client)
{
    struct order order = {.client = client, .close = true};
    aster_loop_call(client->loop, run_send, &order);
    grantor_client_await_close(client);
}

struct aster_call grantor_call_acquire(const char *resource, int64_t ttl_ms, uint32_t wait_ms)
{
    struct aster_call call = {.kind = ASTER_CALL_OPERATION};
    call.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    call.one.operation.kind = ASTER_OP_ACQUIRE;
    call.one.operation.resource = aster_text(resource);
    call.one.operation.ttl_ms = ttl_ms;
    call.one.wait_ms = wait_ms;
    assert_int_equal(aster_entropy_fill(call.one.operation.request_id, ASTER_REQUEST_ID_SIZE, NULL), ASTER_OK);
    return call;
}

uint64_t grantor_client_acquire(struct grantor_client *client, const char *resource, int64_t ttl_ms, uint32_t wait_ms)
{
    struct aster_call call = grantor_call_acquire(resource, ttl_ms, wait_ms);
    return grantor_client_send(client, &call);
}

uint64_t grantor_client_operate(struct grantor_client *client, enum aster_operation_kind kind, const char *resource,
                                int64_t epoch)
{
    struct aster_call call = {.kind = ASTER_CALL_OPERATION};
    call.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    call.one.operation.kind = kind;
    call.one.operation.resource = aster_text(resource);
    call.one.operation.epoch = epoch;
    return grantor_client_send(client, &call);
}

/* Under the lock. */
static struct grantor_received **find(struct grantor_client *client, uint64_t id)
{
    struct grantor_received **at = &client->received;
    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    return at;
}

bool grantor_client_has(struct grantor_client *client, uint64_t id)
{
    pthread_mutex_lock(&client->lock);
    bool has = *find(client, id) != NULL;
    pthread_mutex_unlock(&client->lock);
    return has;
}

const struct aster_answer *grantor_client_await(struct grantor_client *client, uint64_t id)
{
    static struct aster_answer answer;
    struct aster_scratch scratch = {client->scratch, ASTER_SCRATCH_SIZE, 0};
    const struct timespec until = patience();
    pthread_mutex_lock(&client->lock);
    struct grantor_received **at;
    while (*(at = find(client, id)) == NULL && !client->closed && wait_changed(client, &until)) {
    }
    struct grantor_received *one = *at;
    if (one != NULL) {
        *at = one->next;
    }
    pthread_mutex_unlock(&client->lock);
    if (one == NULL) {
        fail_msg("no answer to request %llu%s", (unsigned long long)id, client->closed ? ": closed" : "");
        return NULL;
    }
    unsigned char *kept = aster_scratch_take(&scratch, one->size); /* views may borrow from the payload */
    memcpy(kept, one->payload, one->size);
    struct aster_bytes payload = {kept, one->size};
    free(one);
    assert_int_equal(aster_answer_decode(payload, &scratch, &answer, NULL), ASTER_OK);
    return &answer;
}

const struct aster_decision *grantor_client_decision(struct grantor_client *client, uint64_t id)
{
    const struct aster_answer *answer = grantor_client_await(client, id);
    if (answer->kind == ASTER_ANSWER_ERROR) {
        fail_msg("an error instead of a decision: %s %.*s", aster_status_name(answer->error.status),
                 (int)answer->error.message.size, (const char *)answer->error.message.data);
    }
    assert_int_equal(answer->kind, ASTER_ANSWER_DECISION);
    return &answer->decision;
}
