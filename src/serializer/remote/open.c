/* Opening and ending a remote serializer. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "platform/entropy.h"
#include "serializer/remote/remote.h"
#include "wire/frame.h"

#define SEND_BUFFER_BYTES 4194304
#define RECEIVE_WINDOW_BYTES 1048576
#define IDLE_LEAST_MS 300

static aster_status create_transports(struct remote *remote, struct aster_error *error)
{
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    options.loop = remote->loop;
    options.credentials = remote->credentials;
    options.admit = remote_admit;
    options.handler = &remote_link_handler;
    options.send_buffer_max = SEND_BUFFER_BYTES;
    options.receive_window = RECEIVE_WINDOW_BYTES;
    options.handshake_timeout_ms = remote->options.connect_timeout_ms;
    options.idle_timeout_ms = remote->options.idle_timeout_ms;
    options.keep_alive_ms = remote->options.idle_timeout_ms / 3;
    aster_status status = aster_quic_transport_create(&options, &remote->quic, error);
    if (status == ASTER_OK && !remote->options.without_tcp) {
        status = aster_tcp_transport_create(&options, &remote->tcp, error);
    }
    return status;
}

struct preparation {
    struct remote *remote;
    struct aster_error *error;
    unsigned reserved;
};

#define LOOP_TIMERS 3

static aster_status reserve_timers(void *argument)
{
    struct preparation *preparation = argument;
    struct aster_timers *timers = aster_loop_timers(preparation->remote->loop);
    aster_status status = ASTER_OK;
    while (status == ASTER_OK && preparation->reserved < LOOP_TIMERS) {
        status = aster_timers_reserve(timers, preparation->error);
        preparation->reserved += status == ASTER_OK;
    }
    while (status != ASTER_OK && preparation->reserved > 0) {
        aster_timers_unreserve(timers);
        preparation->reserved--;
    }
    return status;
}

static aster_status stop(void *argument)
{
    struct remote *remote = argument;
    struct remote_entry *ended = NULL;
    struct remote_node *node;
    struct aster_timers *timers = aster_loop_timers(remote->loop);
    remote->stopped = true;
    remote_disconnect(remote, "closed");
    pthread_mutex_lock(&remote->lock);
    while ((node = remote_index_next(&remote->entries, NULL)) != NULL) {
        remote_end_locked((struct remote_entry *)node, REMOTE_END_CLOSED, &ended);
    }
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
    aster_timers_unset(timers, &remote->tick);
    for (unsigned i = 0; i < LOOP_TIMERS; i++) {
        aster_timers_unreserve(timers);
    }
    return ASTER_OK;
}

static void remote_free(struct remote *remote)
{
    aster_transport_destroy(remote->tcp);
    aster_transport_destroy(remote->quic);
    aster_loop_destroy(remote->loop);
    remote_credentials_fini(remote);
    aster_timers_fini(&remote->deadlines);
    remote_index_fini(&remote->entries);
    remote_index_fini(&remote->exchanges);
    pthread_cond_destroy(&remote->idle);
    pthread_mutex_destroy(&remote->lock);
    free(remote->scratch.data);
    free(remote->buffer);
    free(remote);
}

static void remote_destroy(void *self)
{
    struct remote *remote = self;
    aster_loop_call(remote->loop, stop, remote);
    remote_free(remote);
}

static aster_status remote_wait(void *self, int64_t timeout_ms)
{
    struct remote *remote = self;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t until_ns =
        aster_add_saturated((int64_t)until.tv_sec * 1000000000 + until.tv_nsec, aster_ms_to_ns(timeout_ms));
    until = (struct timespec){until_ns / 1000000000, until_ns % 1000000000};
    int code = 0;
    pthread_mutex_lock(&remote->lock);
    while (remote->unanswered > 0 && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&remote->idle, &remote->lock, &until);
    }
    bool idle = remote->unanswered == 0;
    pthread_mutex_unlock(&remote->lock);
    return idle ? ASTER_OK : ASTER_ERR_TIMEOUT;
}

static aster_status remote_mutate_fenced(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                         aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                         struct aster_error *error)
{
    (void)self;
    (void)fence;
    (void)writer;
    (void)mutation;
    (void)user;
    (void)verdict;
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                           "a grantor cannot run a write of yours: store the fenced value with aster_put(), or let the "
                           "resource check the fence itself");
}

static const struct aster_serializer_ops remote_ops = {
    sizeof remote_ops,
    "grantor",
    ASTER_SERIALIZER_QUEUES_WAITERS,
    remote_submit,
    remote_submit_many,
    remote_cancel,
    remote_close,
    remote_wait,
    remote_destroy,
    remote_mutate_fenced,
    NULL,
    remote_history,
    remote_list,
};

static aster_status check_options(const struct aster_grantor_options *options, struct aster_error *error)
{
    if (options->queue_max < 1 || options->fallback_delay_ms < 1 || options->connect_timeout_ms < 100 ||
        options->idle_timeout_ms < IDLE_LEAST_MS) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "grantor options: queue_max at least 1, fallback_delay_ms 1, connect_timeout_ms 100, "
                               "idle_timeout_ms %d",
                               IDLE_LEAST_MS);
    }
    return ASTER_OK;
}

static aster_status prepare(struct remote *remote, struct aster_error *error)
{
    struct preparation preparation = {remote, error, 0};
    const struct aster_grantor_options *options = &remote->options;
    aster_status status = remote_credentials_init(remote, options, error);
    if (status != ASTER_OK) {
        return status;
    }
    bool must_name = aster_credentials_trust(remote->credentials) == ASTER_TRUST_KEY;
    status = remote_addresses_resolve(options->addresses, options->server, must_name, &remote->addresses, error);
    if (status == ASTER_OK) {
        status = aster_entropy_fill(&remote->random, sizeof remote->random, error);
        remote->random |= 1;
    }
    if (status == ASTER_OK) {
        status = remote_index_init(&remote->entries, options->queue_max, error);
    }
    if (status == ASTER_OK) {
        status = remote_index_init(&remote->exchanges, options->queue_max, error);
    }
    if (status == ASTER_OK) {
        status = aster_loop_create("aster-grantor", &remote->loop, error);
    }
    if (status == ASTER_OK) {
        status = create_transports(remote, error);
    }
    if (status == ASTER_OK) {
        remote_timers_init(remote);
        status = aster_loop_call(remote->loop, reserve_timers, &preparation);
    }
    return status;
}

static struct remote *allocate(const struct aster_grantor_options *options)
{
    struct remote *remote = calloc(1, sizeof *remote);
    if (remote == NULL) {
        return NULL;
    }
    remote->options = *options;
    remote->clock = options->clock != NULL ? *options->clock : *aster_clock_system();
    remote->wake.run = remote_wake_run;
    remote->scratch = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    remote->buffer = malloc(ASTER_FRAME_PAYLOAD_MAX);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&remote->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&remote->lock, NULL);
    return remote;
}

aster_status aster_grantor_open(const struct aster_grantor_options *options, struct aster_serializer **serializer,
                                struct aster_error *error)
{
    struct aster_grantor_options known = ASTER_GRANTOR_OPTIONS_INIT;
    memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    known.struct_size = sizeof known;
    aster_status status = check_options(&known, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct remote *remote = allocate(&known);
    if (remote == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a serializer");
    }
    status = remote->scratch.data != NULL && remote->buffer != NULL
                 ? prepare(remote, error)
                 : aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a serializer");
    if (status != ASTER_OK) {
        remote_free(remote);
        return status;
    }
    status = aster_serializer_create(&remote_ops, remote, &remote->clock, serializer, error);
    if (status != ASTER_OK) {
        remote_destroy(remote);
    }
    return status;
}

struct remote *remote_of(struct aster_serializer *serializer)
{
    return aster_serializer_self(serializer, &remote_ops);
}

struct aster_bytes aster_grantor_identity(struct aster_serializer *serializer)
{
    const struct remote *remote = remote_of(serializer);
    return remote != NULL ? remote->identity : aster_text(NULL);
}
