#include "quic/tcp_link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/tcp.h"

#define LINGER_NS (INT64_C(1000) * 1000000)
#define RECORDS_PER_ROUND 16 /* of one link, so that a busy one does not keep the others waiting */

static void mark(struct aster_tcp_link *link)
{
    if (!link->dirty) {
        link->dirty = true;
        link->next_dirty = link->tcp->dirty;
        link->tcp->dirty = link;
    }
}

static void wake(struct aster_link *link)
{
    mark((struct aster_tcp_link *)link);
}

static struct aster_loop *loop_of(const struct aster_tcp_link *link)
{
    return link->tcp->transport.options.loop;
}

static void watch_for(struct aster_tcp_link *link, uint32_t events)
{
    if (events != link->events) {
        link->events = events;
        aster_loop_change(loop_of(link), &link->watch, events);
    }
}

static void die(struct aster_tcp_link *link, enum aster_link_end end, const struct aster_error *error)
{
    link->phase = ASTER_TCP_DEAD;
    mark(link);
    aster_link_finish(&link->link, end, error);
}

static void die_saying(struct aster_tcp_link *link, enum aster_link_end end, aster_status status, const char *message)
{
    struct aster_error error;
    char text[ASTER_ADDRESS_TEXT_MAX];
    aster_error_set(&error, status, "%s: %s", aster_address_text(&link->link.remote, text), message);
    die(link, end, &error);
}

static void evict(struct aster_link *link, const struct aster_error *error)
{
    die((struct aster_tcp_link *)link, ASTER_LINK_END_OVERLOAD, error);
}

static const struct aster_link_ops tcp_link_ops = {wake, evict};

static gnutls_alert_description_t alert_of_end(enum aster_link_end end)
{
    switch (end) {
    case ASTER_LINK_END_REFUSED:
        return GNUTLS_A_ACCESS_DENIED;
    case ASTER_LINK_END_OVERLOAD:
        return GNUTLS_A_INTERNAL_ERROR;
    case ASTER_LINK_END_PROTOCOL:
        return GNUTLS_A_DECODE_ERROR;
    default:
        return GNUTLS_A_CLOSE_NOTIFY;
    }
}

/* Say why, stop writing, and read until the peer has stopped too: closing at once could throw the reason away. */
static void end(struct aster_tcp_link *link, enum aster_link_end why, const struct aster_error *error)
{
    gnutls_alert_description_t alert = alert_of_end(why);
    if (link->link.tls.session != NULL && link->phase >= ASTER_TCP_SHAKING) {
        gnutls_alert_send(link->link.tls.session, alert == GNUTLS_A_CLOSE_NOTIFY ? GNUTLS_AL_WARNING : GNUTLS_AL_FATAL,
                          alert);
    }
    aster_tls_peer_stop(&link->link.tls);
    if (!aster_link_linger(&link->link)) {
        die(link, why, error);
        return;
    }
    shutdown(link->watch.fd, SHUT_WR);
    link->phase = ASTER_TCP_LINGERING;
    watch_for(link, EPOLLIN);
    aster_timers_set(aster_loop_timers(loop_of(link)), &link->timer, aster_loop_now_ns(loop_of(link)) + LINGER_NS);
    aster_link_finish(&link->link, why, error);
}

static void end_by_alert(struct aster_tcp_link *link)
{
    gnutls_alert_description_t alert = gnutls_alert_get(link->link.tls.session);
    switch (alert) {
    case GNUTLS_A_ACCESS_DENIED:
    case GNUTLS_A_BAD_CERTIFICATE:
    case GNUTLS_A_UNSUPPORTED_CERTIFICATE:
    case GNUTLS_A_CERTIFICATE_REVOKED:
    case GNUTLS_A_CERTIFICATE_EXPIRED:
    case GNUTLS_A_CERTIFICATE_UNKNOWN:
    case GNUTLS_A_UNKNOWN_CA:
    case GNUTLS_A_CERTIFICATE_REQUIRED:
        die_saying(link, ASTER_LINK_END_REFUSED, ASTER_ERR_INVALID,
                   "the peer does not admit this node: have its id added there");
        return;
    case GNUTLS_A_INTERNAL_ERROR:
        die_saying(link, ASTER_LINK_END_OVERLOAD, ASTER_ERR_UNREACHABLE,
                   "the peer has no room for another connection: try again later");
        return;
    default:
        die_saying(link, ASTER_LINK_END_PROTOCOL, ASTER_ERR_VERSION, gnutls_alert_get_name(alert));
    }
}

/* A TLS call failed for good. */
static void fail(struct aster_tcp_link *link, int code)
{
    const struct aster_tls_peer *tls = &link->link.tls;
    if (code == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        end_by_alert(link);
    } else if (tls->refused) {
        end(link, ASTER_LINK_END_REFUSED, &tls->error);
    } else if (code == GNUTLS_E_PREMATURE_TERMINATION || code == GNUTLS_E_PULL_ERROR || code == GNUTLS_E_PUSH_ERROR) {
        die_saying(link, ASTER_LINK_END_UNREACHABLE, ASTER_ERR_UNREACHABLE, "the connection was cut");
    } else {
        struct aster_error error;
        bool certificate = code == GNUTLS_E_CERTIFICATE_REQUIRED || code == GNUTLS_E_NO_CERTIFICATE_FOUND;
        aster_error_set(&error, ASTER_ERR_INVALID, "the TLS handshake failed: %s", gnutls_strerror(code));
        gnutls_alert_send_appropriate(tls->session, code);
        end(link, certificate ? ASTER_LINK_END_REFUSED : ASTER_LINK_END_PROTOCOL, &error);
    }
}

static void open_link(struct aster_tcp_link *link)
{
    link->phase = ASTER_TCP_OPEN;
    aster_timers_unset(aster_loop_timers(loop_of(link)), &link->timer);
    watch_for(link, EPOLLIN);
    aster_link_opened(&link->link);
}

static void judge_client(struct aster_tcp_link *link)
{
    const struct aster_transport *transport = &link->tcp->transport;
    static const unsigned char accepted = ASTER_TCP_ACCEPTED;
    struct aster_error error;
    if (transport->counts.connections >= transport->options.connections_max) {
        aster_error_set(&error, ASTER_ERR_LIMIT, "connections_max of %zu is reached",
                        transport->options.connections_max);
        end(link, ASTER_LINK_END_OVERLOAD, &error);
        return;
    }
    if (aster_send_queue_append(&link->link.out, (struct aster_bytes){&accepted, 1}, (struct aster_bytes){NULL, 0},
                                &error) != ASTER_OK) {
        die(link, ASTER_LINK_END_OVERLOAD, &error);
        return;
    }
    open_link(link);
    mark(link);
}

static void shake(struct aster_tcp_link *link)
{
    gnutls_session_t session = link->link.tls.session;
    int code = gnutls_handshake(session);
    if (code < 0 && gnutls_error_is_fatal(code) == 0) {
        watch_for(link, gnutls_record_get_direction(session) == 1 ? EPOLLOUT : EPOLLIN);
        return;
    }
    if (code < 0) {
        fail(link, code);
        return;
    }
    struct aster_error error;
    if (aster_tls_peer_bind(&link->link.tls, &error) != ASTER_OK) {
        end(link, link->link.tls.refused ? ASTER_LINK_END_REFUSED : ASTER_LINK_END_PROTOCOL, &error);
    } else if (link->link.accepted) {
        judge_client(link);
    } else {
        link->phase = ASTER_TCP_WAITING;
        watch_for(link, EPOLLIN);
    }
}

static void finish_connect(struct aster_tcp_link *link)
{
    int code = aster_tcp_connected(link->watch.fd);
    if (code != 0) {
        struct aster_error error;
        char text[ASTER_ADDRESS_TEXT_MAX];
        aster_error_set_os(&error, ASTER_ERR_UNREACHABLE, code, "cannot connect to %s",
                           aster_address_text(&link->link.remote, text));
        die(link, ASTER_LINK_END_UNREACHABLE, &error);
        return;
    }
    link->phase = ASTER_TCP_SHAKING;
    shake(link);
}

static void take(struct aster_tcp_link *link, struct aster_bytes bytes)
{
    if (link->phase == ASTER_TCP_WAITING) {
        if (*(const unsigned char *)bytes.data != ASTER_TCP_ACCEPTED) {
            die_saying(link, ASTER_LINK_END_PROTOCOL, ASTER_ERR_VERSION,
                       "the server does not speak " ASTER_ALPN " over TCP");
            return;
        }
        open_link(link);
        bytes = (struct aster_bytes){(const unsigned char *)bytes.data + 1, bytes.size - 1};
    }
    if (bytes.size > 0) {
        aster_link_received(&link->link, bytes);
    }
}

static void receive(struct aster_tcp_link *link)
{
    unsigned char *buffer = link->tcp->buffer;
    for (unsigned i = 0; i < RECORDS_PER_ROUND; i++) {
        if ((link->phase != ASTER_TCP_OPEN && link->phase != ASTER_TCP_WAITING) || link->link.stopping ||
            link->link.throttled) {
            break;
        }
        ssize_t size = gnutls_record_recv(link->link.tls.session, buffer, ASTER_TCP_RECORD);
        if (size == GNUTLS_E_AGAIN) {
            break;
        }
        if (size > 0) {
            take(link, (struct aster_bytes){buffer, (size_t)size});
        } else if (size == 0) {
            die_saying(link, ASTER_LINK_END_PEER, ASTER_ERR_CLOSED, "the peer closed the connection");
        } else if (gnutls_error_is_fatal((int)size) != 0) {
            fail(link, (int)size);
        }
    }
    if (link->phase == ASTER_TCP_OPEN && link->link.throttled) {
        mark(link);
    }
}

static void discard(struct aster_tcp_link *link)
{
    ssize_t size = 1;
    for (unsigned i = 0; i < RECORDS_PER_ROUND && size > 0; i++) {
        size = read(link->watch.fd, link->tcp->buffer, ASTER_TCP_RECORD);
    }
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        link->phase = ASTER_TCP_DEAD;
        mark(link);
    }
}

static void ready(struct aster_watch *watch, uint32_t events)
{
    struct aster_tcp_link *link = (struct aster_tcp_link *)((char *)watch - offsetof(struct aster_tcp_link, watch));
    switch (link->phase) {
    case ASTER_TCP_CONNECTING:
        finish_connect(link);
        break;
    case ASTER_TCP_SHAKING:
        shake(link);
        break;
    case ASTER_TCP_WAITING:
    case ASTER_TCP_OPEN:
        if (events & EPOLLOUT) {
            link->blocked = false;
            mark(link);
        }
        if (events & ~(uint32_t)EPOLLOUT) {
            receive(link);
        }
        break;
    case ASTER_TCP_LINGERING:
        discard(link);
        break;
    default:
        break;
    }
}

static void fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    struct aster_tcp_link *link = (struct aster_tcp_link *)((char *)timer - offsetof(struct aster_tcp_link, timer));
    if (link->phase == ASTER_TCP_LINGERING) {
        link->phase = ASTER_TCP_DEAD;
        mark(link);
    } else if (link->phase < ASTER_TCP_OPEN) {
        die_saying(link, ASTER_LINK_END_UNREACHABLE, ASTER_ERR_UNREACHABLE, "no answer within the handshake timeout");
    }
}

static bool send_pieces(struct aster_tcp_link *link)
{
    struct aster_send_queue *out = &link->link.out;
    struct iovec piece;
    while (!link->blocked && aster_send_queue_unsent(out, &piece, 1) == 1) {
        /* After AGAIN the very same bytes have to be offered again, although more may have come behind them. */
        size_t size = link->pending > 0 ? link->pending : piece.iov_len;
        size = size < ASTER_TCP_RECORD ? size : ASTER_TCP_RECORD;
        ssize_t sent = gnutls_record_send(link->link.tls.session, piece.iov_base, size);
        if (sent == GNUTLS_E_AGAIN || sent == GNUTLS_E_INTERRUPTED) {
            link->pending = size;
            link->blocked = sent == GNUTLS_E_AGAIN;
        } else if (sent < 0) {
            fail(link, (int)sent);
            return false;
        } else {
            link->pending = 0;
            aster_send_queue_mark_sent(out, (size_t)sent);
            aster_link_sent(&link->link, (size_t)sent);
        }
    }
    return true;
}

void aster_tcp_link_write(struct aster_tcp_link *link)
{
    struct aster_link *base = &link->link;
    if (link->phase == ASTER_TCP_OPEN && !send_pieces(link)) {
        return;
    }
    if (base->stopping && link->phase < ASTER_TCP_LINGERING) {
        if (link->phase >= ASTER_TCP_SHAKING) {
            end(link, base->end, &base->error);
        } else {
            die(link, base->end, &base->error);
        }
        return;
    }
    if (link->phase == ASTER_TCP_OPEN) {
        base->uncredited = 0; /* the kernel's window is the credit */
        watch_for(link, (base->throttled ? 0 : (uint32_t)EPOLLIN) | (link->blocked ? (uint32_t)EPOLLOUT : 0));
    }
}

void aster_tcp_link_free(struct aster_tcp_link *link)
{
    struct aster_timers *timers = aster_loop_timers(loop_of(link));
    aster_timers_unset(timers, &link->timer);
    aster_timers_unreserve(timers);
    aster_loop_remove(loop_of(link), &link->watch);
    close(link->watch.fd);
    aster_link_fini(&link->link);
    free(link);
}

/* Takes the descriptor, also on failure. */
static aster_status create(struct aster_tcp *tcp, int fd, bool accepted, const struct aster_address *remote,
                           struct aster_bytes expected, struct aster_tcp_link **link, struct aster_error *error)
{
    struct aster_loop *loop = tcp->transport.options.loop;
    struct aster_tcp_link *made = calloc(1, sizeof *made);
    aster_status status = made != NULL ? aster_timers_reserve(aster_loop_timers(loop), error)
                                       : aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a connection");
    if (status != ASTER_OK) {
        goto fail;
    }
    status = aster_link_init(&made->link, &tcp->transport, &tcp_link_ops, accepted, remote, expected, error);
    if (status != ASTER_OK) {
        aster_timers_unreserve(aster_loop_timers(loop));
        goto fail;
    }
    made->tcp = tcp;
    made->timer.fire = fire;
    made->phase = accepted ? ASTER_TCP_SHAKING : ASTER_TCP_CONNECTING;
    made->watch = (struct aster_watch){ready, fd};
    made->events = accepted ? EPOLLIN : EPOLLOUT;
    status = aster_tls_peer_start(&made->link.tls, ASTER_TLS_OVER_TCP, error);
    if (status == ASTER_OK) {
        gnutls_transport_set_int(made->link.tls.session, fd);
        status = aster_loop_add(loop, &made->watch, made->events, error);
    }
    if (status != ASTER_OK) {
        aster_link_withdraw(&made->link);
        aster_tcp_link_free(made);
        return status;
    }
    aster_timers_set(aster_loop_timers(loop), &made->timer,
                     aster_loop_now_ns(loop) + tcp->transport.options.handshake_timeout_ms * 1000000);
    *link = made;
    return ASTER_OK;
fail:
    free(made);
    close(fd);
    return status;
}

aster_status aster_tcp_link_connect(struct aster_tcp *tcp, const struct aster_address *remote,
                                    struct aster_bytes expected, void *user, struct aster_tcp_link **link,
                                    struct aster_error *error)
{
    int fd;
    aster_status status = aster_tcp_connect(remote, &fd, error);
    if (status != ASTER_OK) {
        return status;
    }
    aster_tcp_tune(fd, tcp->transport.options.keep_alive_ms, tcp->transport.options.idle_timeout_ms);
    status = create(tcp, fd, false, remote, expected, link, error);
    if (status == ASTER_OK) {
        (*link)->link.user = user;
    }
    return status;
}

aster_status aster_tcp_link_accept(struct aster_tcp *tcp, int fd, const struct aster_address *remote,
                                   struct aster_error *error)
{
    struct aster_tcp_link *link;
    aster_tcp_tune(fd, tcp->transport.options.keep_alive_ms, tcp->transport.options.idle_timeout_ms);
    return create(tcp, fd, true, remote, (struct aster_bytes){NULL, 0}, &link, error);
}
