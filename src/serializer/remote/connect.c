/* Ways to the grantor: every address over QUIC and over TCP. They are tried in turn, the next one joining in while an
 * earlier one is still silent; the first whose handshake is done wins. Everything runs on the loop's thread. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/remote/remote.h"

#define BACKOFF_LEAST_NS (50 * ASTER_NS_PER_MS)
#define BACKOFF_MOST_NS (2000 * ASTER_NS_PER_MS)
#define SHORT_LIVED_NS (1000 * ASTER_NS_PER_MS) /* a connection that ends sooner does not reset the backoff */
#define AGENT "aster/0.1.0"
#define LINE_MAX_BYTES 640

struct remote_attempt {
    struct remote *remote;
    struct aster_link *link;
    struct remote_attempt *next;
    size_t way;
    bool abandoned;
};

static size_t transports(const struct remote *remote)
{
    return remote->tcp != NULL ? 2 : 1;
}

static size_t ways(const struct remote *remote)
{
    return remote->addresses.count * transports(remote);
}

static struct aster_timers *timers_of(const struct remote *remote)
{
    return aster_loop_timers(remote->loop);
}

static int64_t now_of(const struct remote *remote)
{
    return aster_loop_now_ns(remote->loop);
}

void remote_log(const struct remote *remote, enum aster_grantor_event event, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;
    if (remote->options.log == NULL) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    remote->options.log(event, line, remote->options.log_user);
}

static const char *way_name(const struct remote *remote, size_t way)
{
    return way % transports(remote) == 0 ? "quic" : "tcp";
}

static size_t address_of(const struct remote *remote, size_t way)
{
    return way / transports(remote);
}

static const struct remote_address *way_address(const struct remote *remote, size_t way)
{
    return &remote->addresses.list[address_of(remote, way)];
}

struct aster_link *remote_link(struct remote *remote)
{
    return remote->current->link;
}

/* Keep why a way failed, for those who ask at their deadline. */
static void note_trouble(struct remote *remote, size_t way, const char *message)
{
    pthread_mutex_lock(&remote->lock);
    if (remote->trouble_is_old) {
        remote->trouble[0] = '\0';
        remote->trouble_is_old = false;
    }
    size_t used = strlen(remote->trouble);
    if (used + 1 < sizeof remote->trouble) {
        snprintf(remote->trouble + used, sizeof remote->trouble - used, "%s%s: %s", used > 0 ? "; " : "",
                 way_name(remote, way), message);
    }
    pthread_mutex_unlock(&remote->lock);
}

static int64_t jitter(struct remote *remote, int64_t up_to)
{
    remote->random ^= remote->random << 13;
    remote->random ^= remote->random >> 7;
    remote->random ^= remote->random << 17;
    return (int64_t)(remote->random % (uint64_t)up_to);
}

static void wait_to_retry(struct remote *remote)
{
    int64_t next_ns = remote->backoff_ns * 2;
    remote->backoff_ns = next_ns < BACKOFF_LEAST_NS  ? BACKOFF_LEAST_NS
                         : next_ns < BACKOFF_MOST_NS ? next_ns
                                                     : BACKOFF_MOST_NS;
    int64_t delay_ns = remote->backoff_ns / 2 + jitter(remote, remote->backoff_ns / 2);
    aster_timers_set(timers_of(remote), &remote->backoff, now_of(remote) + delay_ns);
}

/* Waiting for a grantor that refuses us would only hide it. */
static void end_refused(struct remote *remote)
{
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    while (remote->renewals.head != NULL) {
        remote_end_locked(remote->renewals.head, REMOTE_END_REFUSED, &ended);
    }
    while (remote->others.head != NULL) {
        remote_end_locked(remote->others.head, REMOTE_END_REFUSED, &ended);
    }
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
}

static void round_failed(struct remote *remote)
{
    remote->trying = false;
    remote->first_way = 0;
    aster_timers_unset(timers_of(remote), &remote->stagger);
    remote_log(remote, ASTER_GRANTOR_UNREACHABLE, "no grantor can be reached: %s", remote->trouble);
    wait_to_retry(remote);
    if (remote->hopeless == (1U << remote->addresses.count) - 1) {
        end_refused(remote);
    }
}

static aster_status start(struct remote *remote, size_t way, struct aster_error *error)
{
    struct remote_attempt *attempt = calloc(1, sizeof *attempt);
    if (attempt == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a connection");
    }
    const struct remote_address *address = way_address(remote, way);
    attempt->remote = remote;
    attempt->way = way;
    aster_status status =
        aster_transport_connect(way % transports(remote) == 0 ? remote->quic : remote->tcp, &address->address,
                                aster_text(address->server), attempt, &attempt->link, error);
    if (status != ASTER_OK) {
        free(attempt);
        return status;
    }
    attempt->next = remote->attempts;
    remote->attempts = attempt;
    return ASTER_OK;
}

/* One more way, or the end of the round when there is none and nothing is under way. */
static void try_next(struct remote *remote)
{
    struct aster_error error = ASTER_ERROR_INIT;
    aster_timers_unset(timers_of(remote), &remote->stagger);
    while (remote->ways_tried < ways(remote)) {
        size_t way = (remote->first_way + remote->ways_tried++) % ways(remote);
        if ((remote->refusing >> address_of(remote, way) & 1) != 0) {
            continue;
        }
        if (start(remote, way, &error) != ASTER_OK) {
            note_trouble(remote, way, error.message);
            continue;
        }
        if (remote->ways_tried < ways(remote)) {
            int64_t delay_ns = aster_ms_to_ns(remote->options.fallback_delay_ms);
            aster_timers_set(timers_of(remote), &remote->stagger, now_of(remote) + delay_ns);
        }
        return;
    }
    if (remote->attempts == NULL && remote->current == NULL) {
        round_failed(remote);
    }
}

void remote_connect(struct remote *remote)
{
    if (remote->trying || remote->current != NULL || remote->stopped || remote->backoff.slot != 0) {
        return;
    }
    remote->trying = true;
    remote_credentials_reload(remote);
    remote->ways_tried = 0;
    remote->refusing = 0;
    remote->hopeless = 0;
    pthread_mutex_lock(&remote->lock);
    remote->trouble_is_old = true;
    pthread_mutex_unlock(&remote->lock);
    try_next(remote);
}

static void abandon_attempts(struct remote *remote)
{
    while (remote->attempts != NULL) {
        struct remote_attempt *attempt = remote->attempts;
        remote->attempts = attempt->next;
        attempt->abandoned = true;
        aster_link_close(attempt->link, "another way was faster");
    }
}

/* What one address said for good is not asked again over its other transport. */
static void note_refusal(struct remote *remote, size_t way, enum aster_link_end end)
{
    unsigned bit = 1U << address_of(remote, way);
    if (end != ASTER_LINK_END_REFUSED && end != ASTER_LINK_END_PROTOCOL) {
        return;
    }
    remote->hopeless |= bit;
    if (end == ASTER_LINK_END_PROTOCOL) {
        return; /* the other transport may lead to something else */
    }
    remote->refusing |= bit;
    for (struct remote_attempt **at = &remote->attempts; *at != NULL;) {
        struct remote_attempt *attempt = *at;
        if (address_of(remote, attempt->way) == address_of(remote, way)) {
            *at = attempt->next;
            attempt->abandoned = true;
            aster_link_close(attempt->link, "refused already");
        } else {
            at = &attempt->next;
        }
    }
}

static void forget_attempt(struct remote *remote, const struct remote_attempt *attempt)
{
    struct remote_attempt **at = &remote->attempts;
    while (*at != attempt) {
        at = &(*at)->next;
    }
    *at = attempt->next;
}

static void on_opened(struct aster_link *link, void *user)
{
    struct remote_attempt *attempt = user;
    struct remote *remote = attempt->remote;
    if (attempt->abandoned) {
        return; /* it is being closed */
    }
    forget_attempt(remote, attempt);
    abandon_attempts(remote);
    remote->current = attempt;
    attempt->link = link;
    aster_status status = ASTER_OK;
    struct aster_call hello = {.kind = ASTER_CALL_HELLO, .hello = {ASTER_WIRE_VERSION, aster_text(AGENT)}};
    remote_send_call(remote, &hello, &status, NULL);
    int64_t patience_ns = aster_ms_to_ns(remote->options.connect_timeout_ms);
    aster_timers_set(timers_of(remote), &remote->stagger, now_of(remote) + patience_ns);
}

static void accepted(struct remote *remote, uint64_t in_flight_max)
{
    char text[ASTER_ADDRESS_TEXT_MAX];
    char server[ASTER_PRINTABLE_MAX];
    size_t way = remote->current->way;
    aster_timers_unset(timers_of(remote), &remote->stagger);
    bool is_quic = way % transports(remote) == 0;
    remote_log(remote, is_quic ? ASTER_GRANTOR_CONNECTED : ASTER_GRANTOR_FELL_BACK,
               "connected to %s over %s, grantor %.64s%s",
               aster_address_text(aster_link_remote(remote_link(remote)), text), way_name(remote, way),
               aster_printable(aster_link_identity(remote_link(remote)), server),
               is_quic ? "" : ": QUIC was not answered there, is UDP dropped?");
    remote->trying = false;
    remote->blocked = false;
    remote->connected_ns = now_of(remote);
    remote->first_way = way - way % transports(remote);
    pthread_mutex_lock(&remote->lock);
    remote->connected = true;
    remote->out_max = in_flight_max > 0 && in_flight_max < SIZE_MAX ? (size_t)in_flight_max : SIZE_MAX;
    pthread_mutex_unlock(&remote->lock);
    remote_flush(remote);
}

static void greet(struct remote *remote, struct aster_bytes payload)
{
    struct aster_answer answer;
    struct aster_error error = ASTER_ERROR_INIT;
    remote->scratch.used = 0;
    aster_status status = aster_answer_decode(payload, &remote->scratch, &answer, &error);
    if (status == ASTER_OK && answer.kind == ASTER_ANSWER_ACCEPTED &&
        aster_bytes_equal(answer.accepted.identity, remote->identity)) {
        accepted(remote, answer.accepted.in_flight_max);
        return;
    }
    if (status == ASTER_OK && answer.kind == ASTER_ANSWER_ERROR) {
        aster_error_set(&error, answer.error.status, "%.*s", (int)answer.error.message.size,
                        (const char *)answer.error.message.data);
    } else if (status == ASTER_OK) {
        aster_error_set(&error, ASTER_ERR_VERSION, "the server does not greet as a grantor that knows this node");
    }
    note_trouble(remote, remote->current->way, error.message);
    aster_link_close(remote_link(remote), "no greeting");
}

static void on_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)link;
    struct remote_attempt *attempt = user;
    struct remote *remote = attempt->remote;
    if (attempt != remote->current) {
        return;
    }
    if (!remote->connected) {
        greet(remote, payload);
    } else {
        remote_frame(remote, payload);
    }
}

static void on_drained(struct aster_link *link, void *user)
{
    (void)link;
    struct remote_attempt *attempt = user;
    if (attempt == attempt->remote->current) {
        attempt->remote->blocked = false;
        remote_flush(attempt->remote);
    }
}

static void lost(struct remote *remote, enum aster_link_end end, const struct aster_error *error)
{
    struct remote_entry *ended = NULL;
    pthread_mutex_lock(&remote->lock);
    remote->connected = false;
    remote->blocked = false;
    snprintf(remote->trouble, sizeof remote->trouble, "the connection was lost (%s)", aster_link_end_name(end));
    remote_requeue_all(remote, &ended);
    bool closed = remote->closed;
    if (closed) {
        remote_wake_locked(remote); /* nothing is sent any more: they end there */
    }
    pthread_mutex_unlock(&remote->lock);
    remote_answer_ended(remote, ended);
    remote_log(remote, ASTER_GRANTOR_LOST, "connection lost: %s: %s", aster_link_end_name(end), error->message);
    if (now_of(remote) - remote->connected_ns >= SHORT_LIVED_NS) {
        remote->backoff_ns = 0;
    }
    if (!closed && !remote->stopped) {
        wait_to_retry(remote);
    }
}

static void on_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    struct remote_attempt *attempt = user;
    struct remote *remote = attempt->remote;
    bool was_current = attempt == remote->current;
    if (was_current && remote->connected) {
        remote->current = NULL;
        lost(remote, end, error);
    } else if (!attempt->abandoned) {
        if (was_current) {
            remote->current = NULL;
        } else {
            forget_attempt(remote, attempt);
        }
        note_refusal(remote, attempt->way, end);
        if (end != ASTER_LINK_END_LOCAL) { /* of our own closing the reason is noted already */
            note_trouble(remote, attempt->way, error->message);
        }
        if (!remote->stopped) {
            try_next(remote);
        }
    }
    free(attempt);
}

const struct aster_link_handler remote_link_handler = {on_opened, on_frame, on_drained, on_closed};

/* The transports check whom connect() named; where nobody was named, a root vouches for the server. */
bool remote_admit(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

static void stagger_fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    struct remote *remote = (struct remote *)((char *)timer - offsetof(struct remote, stagger));
    if (remote->current != NULL) {
        note_trouble(remote, remote->current->way, "the server does not say hello");
        aster_link_close(remote_link(remote), "no greeting");
    } else {
        try_next(remote);
    }
}

static void backoff_fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    remote_flush((struct remote *)((char *)timer - offsetof(struct remote, backoff)));
}

static void tick_fire(struct aster_timer *timer, int64_t now_ns)
{
    (void)now_ns;
    struct remote *remote = (struct remote *)((char *)timer - offsetof(struct remote, tick));
    remote_tick(remote);
    if (remote->full) {
        remote_flush(remote); /* what ended made room */
    }
}

void remote_timers_init(struct remote *remote)
{
    remote->tick.fire = tick_fire;
    remote->stagger.fire = stagger_fire;
    remote->backoff.fire = backoff_fire;
}

void remote_disconnect(struct remote *remote, const char *reason)
{
    abandon_attempts(remote);
    remote->trying = false;
    aster_timers_unset(timers_of(remote), &remote->stagger);
    aster_timers_unset(timers_of(remote), &remote->backoff);
    if (remote->current != NULL) {
        aster_link_close(remote_link(remote), reason);
    }
}
