#include "support/quic_side.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>

#define ECHO_BYTES_MAX 16777216
#define PATIENCE_SECONDS 20

static void copy_text(char *to, size_t size, struct aster_bytes from)
{
    snprintf(to, size, "%.*s", (int)from.size, (const char *)from.data);
}

static bool admit(struct aster_bytes identity, void *user)
{
    (void)identity;
    const struct quic_side *side = user;
    return !side->admit_nobody;
}

static void refused(const struct aster_address *remote, struct aster_bytes identity, const struct aster_error *error,
                    void *user)
{
    (void)remote;
    struct quic_side *side = user;
    pthread_mutex_lock(&side->lock);
    side->refused++;
    copy_text(side->refused_identity, sizeof side->refused_identity, identity);
    side->error = *error;
    pthread_cond_broadcast(&side->changed);
    pthread_mutex_unlock(&side->lock);
}

static void opened(struct aster_link *link, void *user)
{
    struct quic_side *side = user;
    pthread_mutex_lock(&side->lock);
    side->opened++;
    side->link = link;
    copy_text(side->identity, sizeof side->identity, aster_link_identity(link));
    pthread_cond_broadcast(&side->changed);
    pthread_mutex_unlock(&side->lock);
}

static void frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    struct quic_side *side = user;
    pthread_mutex_lock(&side->lock);
    side->frames++;
    side->bytes += payload.size;
    side->last_size = payload.size;
    memcpy(side->last_frame, payload.data,
           payload.size < sizeof side->last_frame ? payload.size : sizeof side->last_frame);
    pthread_cond_broadcast(&side->changed);
    pthread_mutex_unlock(&side->lock);
    if (side->echo) {
        aster_link_send(link, payload, NULL);
    }
}

static void closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    struct quic_side *side = user;
    pthread_mutex_lock(&side->lock);
    side->closed++;
    side->end = end;
    side->error = *error;
    if (side->link == link) {
        side->link = NULL;
    }
    pthread_cond_broadcast(&side->changed);
    pthread_mutex_unlock(&side->lock);
}

static const struct aster_link_handler handler = {opened, frame, NULL, closed};

void quic_side_init(struct quic_side *side, const char *name)
{
    struct aster_error error;
    memset(side, 0, sizeof *side);
    pthread_mutex_init(&side->lock, NULL);
    pthread_cond_init(&side->changed, NULL);
    strcpy(side->directory, "/tmp/aster-quic-XXXXXX");
    assert_non_null(mkdtemp(side->directory));
    assert_int_equal(aster_node_create(side->directory, name, 1, side->id, &error), ASTER_OK);
    assert_int_equal(aster_loop_create(name, &side->loop, &error), ASTER_OK);
}

void quic_side_fini(struct quic_side *side)
{
    struct aster_node_paths paths;
    quic_side_close(side);
    aster_loop_destroy(side->loop);
    assert_int_equal(aster_node_paths(side->directory, &paths, NULL), ASTER_OK);
    unlink(paths.key);
    unlink(paths.certificate);
    unlink(paths.secret);
    rmdir(side->directory);
    pthread_cond_destroy(&side->changed);
    pthread_mutex_destroy(&side->lock);
}

struct aster_transport_options quic_side_options(struct quic_side *side)
{
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    options.loop = side->loop;
    options.admit = admit;
    options.refused = refused;
    options.handler = &handler;
    options.user = side;
    if (side->echo) {
        options.send_buffer_max = ECHO_BYTES_MAX; /* what it does not take is not sent again */
    }
    return options;
}

void quic_side_open(struct quic_side *side, quic_create create, const struct aster_transport_options *options)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_transport_options used = options != NULL ? *options : quic_side_options(side);
    struct aster_credentials *own = NULL;
    if (used.credentials == NULL) {
        assert_int_equal(aster_credentials_load_node(side->directory, &own, &error), ASTER_OK);
        used.credentials = own;
    }
    if (create(&used, &side->transport, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    aster_credentials_unref(own);
}

struct aster_address loopback_address(uint16_t port)
{
    struct aster_address address;
    memset(&address, 0, sizeof address);
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address.storage;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.size = sizeof *v4;
    return address;
}

void quic_side_listen(struct quic_side *side, uint16_t port)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_address local = loopback_address(port);
    if (aster_transport_listen(side->transport, &local, &side->bound, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
}

void quic_side_close(struct quic_side *side)
{
    aster_transport_destroy(side->transport);
    side->transport = NULL;
}

/* What a test asks of the loop's thread. */
struct order {
    struct quic_side *side;
    const struct aster_address *remote;
    struct aster_bytes bytes;
    struct aster_error error;
    struct aster_transport_counts counts;
    bool throttled;
    size_t count;
};

static aster_status run_connect(void *argument)
{
    struct order *order = argument;
    struct aster_link *link;
    return aster_transport_connect(order->side->transport, order->remote, order->bytes, order->side, &link,
                                   &order->error);
}

void quic_side_connect(struct quic_side *side, const struct aster_address *remote, const char *expected)
{
    struct order order = {.side = side, .remote = remote, .bytes = aster_text(expected)};
    if (aster_loop_call(side->loop, run_connect, &order) != ASTER_OK) {
        fail_msg("%s", order.error.message);
    }
}

static struct aster_link *link_of(struct quic_side *side)
{
    pthread_mutex_lock(&side->lock);
    struct aster_link *link = side->link;
    pthread_mutex_unlock(&side->lock);
    return link;
}

static aster_status run_send(void *argument)
{
    struct order *order = argument;
    struct aster_link *link = link_of(order->side);
    return link != NULL ? aster_link_send(link, order->bytes, &order->error) : ASTER_ERR_CLOSED;
}

aster_status quic_side_send(struct quic_side *side, const void *data, size_t size)
{
    struct order order = {.side = side, .bytes = {data, size}};
    return aster_loop_call(side->loop, run_send, &order);
}

static aster_status run_shut(void *argument)
{
    struct order *order = argument;
    struct aster_link *link = link_of(order->side);
    if (link != NULL) {
        aster_link_close(link, "done");
    }
    return ASTER_OK;
}

void quic_side_shut(struct quic_side *side)
{
    struct order order = {.side = side};
    aster_loop_call(side->loop, run_shut, &order);
}

static aster_status run_throttle(void *argument)
{
    struct order *order = argument;
    struct aster_link *link = link_of(order->side);
    if (link != NULL) {
        aster_link_throttle(link, order->throttled);
    }
    return ASTER_OK;
}

void quic_side_throttle(struct quic_side *side, bool throttled)
{
    struct order order = {.side = side, .throttled = throttled};
    aster_loop_call(side->loop, run_throttle, &order);
}

static aster_status run_expel(void *argument)
{
    struct order *order = argument;
    order->count = aster_transport_expel(order->side->transport, order->bytes);
    return ASTER_OK;
}

size_t quic_side_expel(struct quic_side *side, const char *identity)
{
    struct order order = {.side = side, .bytes = aster_text(identity)};
    aster_loop_call(side->loop, run_expel, &order);
    return order.count;
}

static aster_status run_counts(void *argument)
{
    struct order *order = argument;
    order->counts = aster_transport_counts(order->side->transport);
    return ASTER_OK;
}

struct aster_transport_counts quic_side_counts(struct quic_side *side)
{
    struct order order = {.side = side};
    aster_loop_call(side->loop, run_counts, &order);
    return order.counts;
}

void quic_side_wait(struct quic_side *side, const unsigned *counter, unsigned value)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    int code = 0;
    pthread_mutex_lock(&side->lock);
    while (*counter < value && code == 0) {
        code = pthread_cond_timedwait(&side->changed, &side->lock, &until);
    }
    unsigned reached = *counter;
    pthread_mutex_unlock(&side->lock);
    if (reached < value) {
        fail_msg("waited %d s for %u, reached %u (opened %u, closed %u: %s, refused %u, frames %u; %s)",
                 PATIENCE_SECONDS, value, reached, side->opened, side->closed, aster_link_end_name(side->end),
                 side->refused, side->frames, side->error.message);
    }
}
