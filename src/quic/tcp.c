#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/tcp.h"
#include "quic/tcp_link.h"

#define ACCEPTS_PER_ROUND 64
#define PAUSE_NS INT64_C(20000000)

static void pause_fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    struct aster_tcp_listener *listener = (void *)((char *)timer - offsetof(struct aster_tcp_listener, pause));
    aster_loop_change(listener->tcp->transport.options.loop, &listener->watch, EPOLLIN);
}

/* No descriptor, or no memory, for one more: what waits would be reported again and again. The older handshakes
 * give theirs up, at the end of the round, and who waits is accepted after the pause. */
static void pause_accepting(struct aster_tcp_listener *listener)
{
    struct aster_loop *loop = listener->tcp->transport.options.loop;
    struct aster_transport *transport = &listener->tcp->transport;
    for (size_t left = transport->counts.handshakes / 2; left > 0; left--) {
        aster_link_evict_oldest(transport, "the process is out of descriptors");
    }
    aster_loop_change(loop, &listener->watch, 0);
    aster_timers_set(aster_loop_timers(loop), &listener->pause, aster_loop_now_ns(loop) + PAUSE_NS);
}

static void listener_ready(struct aster_watch *watch, uint32_t events)
{
    (void)events;
    struct aster_tcp_listener *listener = (struct aster_tcp_listener *)watch;
    struct aster_tcp *tcp = listener->tcp;
    for (unsigned i = 0; i < ACCEPTS_PER_ROUND; i++) {
        struct aster_address remote;
        int fd = aster_tcp_accept(watch->fd, &remote);
        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
            pause_accepting(listener);
            return;
        }
        if (fd == -EAGAIN) {
            return;
        }
        if (fd >= 0) { /* else that connection failed while it waited */
            aster_link_make_room(&tcp->transport);
            aster_tcp_link_accept(tcp, fd, &remote, NULL); /* out of memory: the peer sees its connection end */
        }
    }
}

static void end_round(struct aster_round *round, int64_t now_ns)
{
    (void)now_ns;
    struct aster_tcp *tcp = (struct aster_tcp *)((char *)round - offsetof(struct aster_tcp, round));
    while (tcp->dirty != NULL) {
        struct aster_tcp_link *link = tcp->dirty;
        tcp->dirty = link->next_dirty;
        link->dirty = false;
        aster_tcp_link_write(link);
        if (link->phase == ASTER_TCP_DEAD && !link->dirty) {
            aster_tcp_link_free(link);
        }
    }
}

static aster_status open_listener(struct aster_loop *loop, const struct aster_address *local,
                                  struct aster_tcp_listener *listener, struct aster_address *bound,
                                  struct aster_error *error)
{
    struct aster_timers *timers = aster_loop_timers(loop);
    aster_status status = aster_timers_reserve(timers, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_tcp_listen(local, &listener->watch.fd, bound, error);
    if (status == ASTER_OK) {
        status = aster_loop_add(loop, &listener->watch, EPOLLIN, error);
        if (status == ASTER_OK) {
            return ASTER_OK;
        }
        close(listener->watch.fd);
    }
    aster_timers_unreserve(timers);
    return status;
}

static aster_status tcp_listen(struct aster_transport *transport, const struct aster_address *local,
                               struct aster_address *bound, struct aster_error *error)
{
    struct aster_tcp *tcp = (struct aster_tcp *)transport;
    struct aster_address found;
    struct aster_tcp_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a listener");
    }
    listener->tcp = tcp;
    listener->watch.ready = listener_ready;
    listener->pause.fire = pause_fire;
    aster_status status = open_listener(transport->options.loop, local, listener, &found, error);
    if (status != ASTER_OK) {
        free(listener);
        return status;
    }
    listener->next = tcp->listeners;
    tcp->listeners = listener;
    if (bound != NULL) {
        *bound = found;
    }
    return ASTER_OK;
}

static aster_status tcp_connect(struct aster_transport *transport, const struct aster_address *remote,
                                struct aster_bytes expected, void *user, struct aster_link **link,
                                struct aster_error *error)
{
    struct aster_tcp_link *made;
    aster_status status = aster_tcp_link_connect((struct aster_tcp *)transport, remote, expected, user, &made, error);
    if (status == ASTER_OK) {
        *link = &made->link;
    }
    return status;
}

static void tcp_destroy(struct aster_transport *transport)
{
    struct aster_tcp *tcp = (struct aster_tcp *)transport;
    struct aster_loop *loop = transport->options.loop;
    struct aster_error error;
    aster_error_set(&error, ASTER_ERR_CLOSED, "the endpoint is being closed");
    for (struct aster_link *link = transport->links; link != NULL; link = link->next) {
        aster_link_stop(link, ASTER_LINK_END_LOCAL, "shutting down", &error);
    }
    end_round(&tcp->round, 0);
    while (transport->links != NULL) {
        aster_tcp_link_free((struct aster_tcp_link *)transport->links);
    }
    while (tcp->listeners != NULL) {
        struct aster_tcp_listener *listener = tcp->listeners;
        tcp->listeners = listener->next;
        aster_timers_unset(aster_loop_timers(loop), &listener->pause);
        aster_timers_unreserve(aster_loop_timers(loop));
        aster_loop_remove(loop, &listener->watch);
        close(listener->watch.fd);
        free(listener);
    }
    aster_loop_round_remove(loop, &tcp->round);
    aster_transport_fini(transport);
    free(tcp);
}

static const struct aster_transport_ops tcp_ops = {"tcp", tcp_listen, tcp_connect, tcp_destroy, NULL};

static aster_status add_round(void *argument)
{
    struct aster_tcp *tcp = argument;
    aster_loop_round_add(tcp->transport.options.loop, &tcp->round);
    return ASTER_OK;
}

aster_status aster_tcp_transport_create(const struct aster_transport_options *options,
                                        struct aster_transport **transport, struct aster_error *error)
{
    struct aster_tcp *tcp = calloc(1, sizeof *tcp);
    if (tcp == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a transport");
    }
    aster_status status = aster_transport_init(&tcp->transport, &tcp_ops, options, error);
    if (status != ASTER_OK) {
        free(tcp);
        return status;
    }
    tcp->round.end = end_round;
    aster_loop_call(tcp->transport.options.loop, add_round, tcp);
    *transport = &tcp->transport;
    return ASTER_OK;
}
