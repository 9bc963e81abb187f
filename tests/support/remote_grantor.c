#include "support/remote_grantor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/sys/serializer.h"
#include "base/checked.h"
#include "support/quic_side.h"
#include "wire/frame.h"

#define ROWS_PER_REPLY 64

/* Lives until its link is closed and its last job is answered; the loop's thread only. */
struct session {
    struct remote_grantor *grantor;
    struct aster_link *link; /* NULL: gone */
    struct job *jobs;
    size_t references;
};

struct part {
    struct aster_request request;
    struct job *job;
    aster_status status;
    struct aster_reply reply;
    struct aster_error error;
    char bytes[ASTER_RESOURCE_MAX + 2 * ASTER_IDENTITY_MAX];
    char *value;
};

struct job {
    struct aster_task task;
    struct session *session;
    struct job *next;
    struct job **at;
    uint64_t id;
    size_t count;
    atomic_size_t left;
    bool many;
    struct part parts[];
};

static void session_unref(struct session *session)
{
    if (--session->references == 0) {
        free(session);
    }
}

static void send_answer(struct session *session, const struct aster_answer *answer)
{
    struct remote_grantor *grantor = session->grantor;
    struct aster_error error = ASTER_ERROR_INIT;
    size_t length = 0;
    if (session->link == NULL || atomic_load(&grantor->silent)) {
        return;
    }
    grantor->answers.used = 0;
    if (aster_answer_encode(answer, &grantor->answers, grantor->buffer, ASTER_FRAME_PAYLOAD_MAX, &length, &error) !=
            ASTER_OK ||
        aster_link_send(session->link, (struct aster_bytes){grantor->buffer, length}, &error) != ASTER_OK) {
        fprintf(stderr, "test grantor: %s\n", error.message);
        aster_link_close(session->link, "cannot answer");
    }
}

static void answer_job(struct aster_task *task)
{
    struct job *job = (struct job *)task;
    struct session *session = job->session;
    struct aster_renewed *results = calloc(job->count, sizeof *results);
    struct aster_answer answer = {.id = job->id};
    for (size_t i = 0; i < job->count; i++) {
        struct part *part = &job->parts[i];
        results[i] = (struct aster_renewed){part->status, part->reply.decision, aster_text(part->error.message)};
    }
    if (job->many) {
        answer.kind = ASTER_ANSWER_RENEWED_MANY;
        answer.renewed.results = results;
        answer.renewed.count = job->count;
    } else if (results[0].status == ASTER_OK) {
        answer.kind = ASTER_ANSWER_DECISION;
        answer.decision = results[0].decision;
    } else {
        answer.kind = ASTER_ANSWER_ERROR;
        answer.error = (struct aster_wire_error){results[0].status, results[0].message};
    }
    int kind = (int)job->parts[0].request.operation.kind;
    if (session->link != NULL && atomic_compare_exchange_strong(&session->grantor->lose_reply_to, &kind, 0)) {
        aster_link_close(session->link, "the reply is lost");
    } else {
        send_answer(session, &answer);
    }
    *job->at = job->next;
    if (job->next != NULL) {
        job->next->at = job->at;
    }
    for (size_t i = 0; i < job->count; i++) {
        aster_reply_fini(&job->parts[i].reply);
        free(job->parts[i].value);
    }
    free(results);
    free(job);
    session_unref(session);
}

static void decided(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                    const struct aster_error *error)
{
    struct part *part = request->user;
    struct job *job = part->job;
    part->status = status;
    if (status == ASTER_OK) {
        aster_reply_set(&part->reply, decision);
    } else if (error != NULL) {
        part->error = *error;
    }
    if (atomic_fetch_sub(&job->left, 1) == 1) {
        aster_loop_post(job->session->grantor->loop, &job->task);
    }
}

static char *keep(struct aster_bytes *bytes, char *to)
{
    if (bytes->size > 0) {
        memcpy(to, bytes->data, bytes->size);
    }
    bytes->data = to;
    return to + bytes->size;
}

static void fill_part(struct job *job, size_t i, const struct aster_operation *operation)
{
    struct part *part = &job->parts[i];
    part->job = job;
    part->request = (struct aster_request)ASTER_REQUEST_INIT;
    part->request.operation = *operation;
    part->request.complete = decided;
    part->request.user = part;
    char *at = keep(&part->request.operation.resource, part->bytes);
    at = keep(&part->request.operation.caller, at);
    keep(&part->request.operation.holder, at);
    part->value = malloc(operation->value.size + 1);
    keep(&part->request.operation.value, part->value);
}

static void run_job(struct session *session, const struct aster_call *call, const struct aster_operation *operations,
                    size_t count)
{
    struct remote_grantor *grantor = session->grantor;
    int64_t now_ns = aster_clock_now_ns(aster_serializer_clock(grantor->serializer));
    struct job *job = calloc(1, sizeof *job + count * sizeof job->parts[0]);
    *job = (struct job){{NULL, answer_job}, session, session->jobs, &session->jobs, call->id, count, 0, false};
    job->many = call->kind == ASTER_CALL_RENEW_MANY;
    atomic_init(&job->left, count);
    if (session->jobs != NULL) {
        session->jobs->at = &job->next;
    }
    session->jobs = job;
    session->references++;
    struct aster_request *requests[ASTER_WIRE_RENEW_MANY_MAX];
    for (size_t i = 0; i < count; i++) {
        fill_part(job, i, &operations[i]);
        if (!job->many && call->one.wait_ms > 0) {
            job->parts[i].request.wait_until_ns = now_ns + aster_ms_to_ns(call->one.wait_ms);
        }
        requests[i] = &job->parts[i].request;
    }
    aster_serializer_submit_many(grantor->serializer, requests, count);
}

static void cancel_job(struct session *session, uint64_t id)
{
    for (struct job *job = session->jobs; job != NULL; job = job->next) {
        if (job->id == id && !job->many) {
            aster_serializer_cancel(session->grantor->serializer, &job->parts[0].request);
        }
    }
}

struct collecting {
    const struct aster_call *call;
    struct aster_snapshot rows[ROWS_PER_REPLY];
    struct aster_event events[ROWS_PER_REPLY];
    char bytes[ROWS_PER_REPLY][ASTER_RESOURCE_MAX + 3 * ASTER_IDENTITY_MAX];
    struct aster_answer answer;
    struct session *session;
};

static bool collect_row(const struct aster_snapshot *snapshot, void *user)
{
    struct collecting *collecting = user;
    struct aster_bytes after = collecting->call->list.after;
    size_t shorter = after.size < snapshot->resource.size ? after.size : snapshot->resource.size;
    int order = shorter == 0 ? 0 : memcmp(snapshot->resource.data, after.data, shorter);
    if (order < 0 || (order == 0 && snapshot->resource.size <= after.size)) {
        return true;
    }
    size_t i = collecting->answer.rows.count;
    if (i == ROWS_PER_REPLY) {
        collecting->answer.rows.more = true;
        return false;
    }
    struct aster_snapshot *row = &collecting->rows[i];
    *row = *snapshot;
    row->value = aster_text(NULL);
    char *at = keep(&row->resource, collecting->bytes[i]);
    at = keep(&row->holder, at);
    keep(&row->last_holder, at);
    collecting->answer.rows.count++;
    return true;
}

static bool collect_event(const struct aster_event *event, void *user)
{
    struct collecting *collecting = user;
    if (collecting->answer.events.count == ROWS_PER_REPLY) {
        collecting->answer.events.more = true;
        send_answer(collecting->session, &collecting->answer);
        collecting->answer.events.more = false;
        collecting->answer.events.count = 0;
    }
    size_t i = collecting->answer.events.count++;
    collecting->events[i] = *event;
    char *at = keep(&collecting->events[i].resource, collecting->bytes[i]);
    at = keep(&collecting->events[i].actor, at);
    keep(&collecting->events[i].previous, at);
    collecting->answer.events.revision = event->revision;
    return true;
}

static void read_rows(struct session *session, const struct aster_call *call)
{
    struct collecting *collecting = calloc(1, sizeof *collecting);
    collecting->call = call;
    collecting->session = session;
    collecting->answer.id = call->id;
    struct aster_serializer *serializer = session->grantor->serializer;
    if (call->kind == ASTER_CALL_LIST) {
        collecting->answer.kind = ASTER_ANSWER_ROWS;
        collecting->answer.rows.rows = collecting->rows;
        aster_list(serializer, call->list.prefix, collect_row, collecting, NULL);
    } else {
        struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
        query.resource = call->events.resource;
        query.after_revision = call->events.after_revision;
        query.limit = call->events.limit;
        collecting->answer.kind = ASTER_ANSWER_EVENTS;
        collecting->answer.events.events = collecting->events;
        aster_history(serializer, &query, collect_event, collecting, NULL);
    }
    send_answer(session, &collecting->answer);
    free(collecting);
}

static void greet(struct session *session, const struct aster_call *call)
{
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_answer answer = {.id = call->id, .kind = ASTER_ANSWER_ACCEPTED};
    answer.accepted.version = ASTER_WIRE_VERSION;
    answer.accepted.identity = aster_link_identity(session->link);
    answer.accepted.ttl_min_ms = limits.ttl_min_ms;
    answer.accepted.ttl_max_ms = limits.ttl_max_ms;
    answer.accepted.value_max_bytes = (uint32_t)limits.value_max_bytes;
    answer.accepted.in_flight_max = atomic_load(&session->grantor->in_flight_max);
    send_answer(session, &answer);
}

static bool refuse(struct session *session, const struct aster_call *call)
{
    if (atomic_load(&session->grantor->lose_reply_to) != 0) {
        return false;
    }
    int status = atomic_exchange(&session->grantor->refuse_with, 0);
    if (status == 0) {
        return false;
    }
    struct aster_answer answer = {.id = call->id, .kind = ASTER_ANSWER_ERROR};
    answer.error = (struct aster_wire_error){(aster_status)status, aster_text("refused by the test")};
    send_answer(session, &answer);
    return true;
}

static void handle(struct session *session, const struct aster_call *call)
{
    struct remote_grantor *grantor = session->grantor;
    switch (call->kind) {
    case ASTER_CALL_HELLO:
        greet(session, call);
        break;
    case ASTER_CALL_OPERATION:
        atomic_fetch_add(&grantor->requests, 1);
        atomic_fetch_add(&grantor->renewals, call->one.operation.kind == ASTER_OP_RENEW);
        if (!refuse(session, call)) {
            run_job(session, call, &call->one.operation, 1);
        }
        break;
    case ASTER_CALL_RENEW_MANY:
        atomic_fetch_add(&grantor->batches, 1);
        atomic_fetch_add(&grantor->renewals, (unsigned)call->many.count);
        run_job(session, call, call->many.operations, call->many.count);
        break;
    case ASTER_CALL_CANCEL:
        atomic_fetch_add(&grantor->cancels, 1);
        cancel_job(session, call->cancel_id);
        break;
    default:
        read_rows(session, call);
        break;
    }
}

static void on_opened(struct aster_link *link, void *user)
{
    struct session *session = calloc(1, sizeof *session);
    session->grantor = user;
    session->link = link;
    session->references = 1;
    atomic_fetch_add(&session->grantor->links, 1);
    aster_link_set_user(link, session);
}

static void on_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    struct session *session = user;
    struct remote_grantor *grantor = session->grantor;
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    struct aster_call call;
    struct aster_error error = ASTER_ERROR_INIT;
    uint64_t id = 0;
    grantor->scratch.used = 0;
    aster_status status =
        aster_call_decode(payload, aster_link_identity(link), &limits, &grantor->scratch, &call, &id, &error);
    if (status == ASTER_OK) {
        handle(session, &call);
    } else {
        struct aster_answer answer = {.id = id, .kind = ASTER_ANSWER_ERROR};
        answer.error = (struct aster_wire_error){status, aster_text(error.message)};
        send_answer(session, &answer);
    }
}

static void on_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)end;
    (void)error;
    struct session *session = user;
    session->link = NULL;
    for (struct job *job = session->jobs; job != NULL; job = job->next) {
        for (size_t i = 0; i < job->count; i++) {
            aster_serializer_cancel(session->grantor->serializer, &job->parts[i].request);
        }
    }
    session_unref(session);
}

static const struct aster_link_handler handler = {on_opened, on_frame, NULL, on_closed};

static bool admit(struct aster_bytes identity, void *user)
{
    (void)identity;
    struct remote_grantor *grantor = user;
    return !atomic_load(&grantor->admit_nobody);
}

void remote_grantor_init(struct remote_grantor *grantor, const struct aster_clock *clock)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    memset(grantor, 0, sizeof *grantor);
    options.clock = clock;
    remote_make_node(grantor->directory, "grantor", grantor->id);
    assert_int_equal(aster_loop_create("grantor", &grantor->loop, &error), ASTER_OK);
    assert_int_equal(aster_memory_open(&options, &grantor->serializer, &error), ASTER_OK);
    grantor->scratch = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    grantor->answers = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    grantor->buffer = malloc(ASTER_FRAME_PAYLOAD_MAX);
}

void remote_grantor_fini(struct remote_grantor *grantor)
{
    remote_grantor_stop(grantor);
    aster_serializer_destroy(grantor->serializer);
    aster_loop_destroy(grantor->loop);
    free(grantor->scratch.data);
    free(grantor->answers.data);
    free(grantor->buffer);
    remote_remove_node(grantor->directory);
}

static bool serve(struct aster_transport *transport, struct aster_address *address, struct aster_error *error)
{
    struct aster_address bound;
    if (aster_transport_listen(transport, address, &bound, error) != ASTER_OK) {
        return false;
    }
    *address = bound;
    return true;
}

static bool try_start(struct remote_grantor *grantor, unsigned carriers, uint16_t port, struct aster_error *failure)
{
    struct aster_error error = ASTER_ERROR_INIT;
    bool serves = true;
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    assert_int_equal(aster_credentials_load_node(grantor->directory, &options.credentials, &error), ASTER_OK);
    assert_int_equal(aster_node_secret(grantor->directory, options.secret, &error), ASTER_OK);
    options.loop = grantor->loop;
    options.admit = admit;
    options.handler = &handler;
    options.user = grantor;
    options.send_buffer_max = 16777216;
    grantor->bound = loopback_address(port);
    if ((carriers & REMOTE_QUIC) != 0) {
        assert_int_equal(aster_quic_transport_create(&options, &grantor->quic, &error), ASTER_OK);
        serves = serve(grantor->quic, &grantor->bound, failure);
    }
    if ((carriers & REMOTE_TCP) != 0) {
        assert_int_equal(aster_tcp_transport_create(&options, &grantor->tcp, &error), ASTER_OK);
        serves = serves && serve(grantor->tcp, &grantor->bound, failure);
    }
    aster_credentials_unref(options.credentials);
    return serves;
}

void remote_grantor_start(struct remote_grantor *grantor, unsigned carriers, uint16_t port)
{
    struct aster_error error = ASTER_ERROR_INIT;
    /* The number that is free for one transport may be taken for the other. */
    unsigned tries = port == 0 ? 50 : 1;
    while (!try_start(grantor, carriers, port, &error)) {
        remote_grantor_stop(grantor);
        if (--tries == 0) {
            fail_msg("%s", error.message);
        }
    }
}

void remote_grantor_stop(struct remote_grantor *grantor)
{
    aster_transport_destroy(grantor->quic);
    aster_transport_destroy(grantor->tcp);
    grantor->quic = grantor->tcp = NULL;
}
