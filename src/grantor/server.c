#include "grantor/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/calls.h"
#include "grantor/capacity.h"
#include "grantor/http.h"
#include "grantor/log.h"
#include "grantor/outbox.h"
#include "grantor/parking.h"
#include "grantor/peers.h"
#include "grantor/pulse.h"
#include "grantor/registrar.h"
#include "grantor/repeats.h"
#include "grantor/session.h"
#include "grantor/store.h"
#include "platform/files.h"

#define ADDRESSES_MAX 16
#define PAUSE_NS INT64_C(2000000)
#define FLUSH_ROUNDS 500 /* of PAUSE_NS: 1 s for the last bytes */
#define REFUSALS_PER_SECOND 20

struct grantor_server {
    struct grantor_state state;
    struct aster_transport *quic;
    struct aster_transport *tcp;
    struct grantor_http *http;
    struct grantor_pulse *pulse;
    int64_t drain_rounds;   /* of PAUSE_NS, for what is in flight */
    int64_t refused_second; /* the loop's: refusals are logged only so often */
    unsigned refused_count;
};

static bool admit(struct aster_bytes identity, void *user)
{
    struct grantor_server *server = user;
    return grantor_admission_knows(server->state.admission, identity);
}

static void refused(const struct aster_address *remote, struct aster_bytes identity, const struct aster_error *error,
                    void *user)
{
    struct grantor_server *server = user;
    int64_t second = aster_loop_now_ns(server->state.loop) / 1000000000;
    if (second != server->refused_second) {
        server->refused_second = second;
        server->refused_count = 0;
    }
    if (server->refused_count++ >= REFUSALS_PER_SECOND) {
        return;
    }
    char address[ASTER_ADDRESS_TEXT_MAX];
    struct grantor_line line;
    grantor_line_init(&line, GRANTOR_WARNING, "peer-refused");
    grantor_line_text(&line, "remote", aster_address_text(remote, address));
    grantor_line_bytes(&line, "peer", identity);
    grantor_line_text(&line, "error", error->message);
    grantor_line_end(&line);
}

static void opened(struct aster_link *link, void *user)
{
    struct grantor_server *server = user;
    grantor_session_open(&server->state, link);
}

static void frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)link;
    if (user != NULL) {
        grantor_session_frame(user, payload);
    }
}

static void drained(struct aster_link *link, void *user)
{
    (void)link;
    if (user != NULL) {
        grantor_outbox_drained(user);
    }
}

static void closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)end;
    (void)error;
    if (user != NULL) {
        grantor_session_close(user);
    }
}

static const struct aster_link_handler handler = {opened, frame, drained, closed};

static void end_round(struct aster_round *round, int64_t now_ns)
{
    (void)now_ns;
    grantor_state_end_round((void *)((char *)round - offsetof(struct grantor_state, round)));
}

static aster_status add_round(void *argument)
{
    struct grantor_state *state = argument;
    aster_loop_round_add(state->loop, &state->round);
    return grantor_outbox_open(state, NULL);
}

static aster_status remove_round(void *argument)
{
    struct grantor_state *state = argument;
    aster_loop_round_remove(state->loop, &state->round);
    state->ended = true;
    grantor_outbox_close(state);
    return ASTER_OK;
}

static aster_status load_credentials(const struct grantor_settings *settings, struct aster_credentials **credentials,
                                     struct aster_error *error)
{
    const struct aster_credentials_files files = {settings->key, settings->certificate, settings->roots};
    return settings->node_directory != NULL ? aster_credentials_load_node(settings->node_directory, credentials, error)
                                            : aster_credentials_load(&files, credentials, error);
}

aster_status grantor_server_check(const struct grantor_settings *settings, struct aster_error *error)
{
    struct aster_credentials *credentials = NULL;
    aster_status status = load_credentials(settings, &credentials, error);
    aster_credentials_unref(credentials);
    return status;
}

static void take_limits(struct grantor_state *state, const struct grantor_settings *settings)
{
    state->in_flight_max = settings->in_flight_max;
    state->in_flight_total_max = settings->in_flight_total_max;
    state->connections_max = settings->connections_max;
}

static aster_status prepare(struct grantor_state *state, struct aster_error *error)
{
    aster_status status = grantor_state_init(state, error);
    state->round.end = end_round;
    if (status == ASTER_OK) {
        status = aster_loop_create("asterd-net", &state->loop, error);
    }
    if (status == ASTER_OK && (aster_serializer_traits_of(state->serializer) & ASTER_SERIALIZER_QUEUES_WAITERS) == 0) {
        status = grantor_parking_create(state->loop, &state->parking, error);
    }
    return status == ASTER_OK ? grantor_reader_create(state, &state->reader, error) : status;
}

static aster_status listen_at(struct aster_transport *transport, const char *text, struct aster_error *error)
{
    struct aster_address addresses[ADDRESSES_MAX];
    struct aster_address bound;
    char shown[ASTER_ADDRESS_TEXT_MAX];
    size_t count = 0;
    aster_status status = aster_address_resolve(text, true, addresses, ADDRESSES_MAX, &count, error);
    for (size_t i = 0; i < count && status == ASTER_OK; i++) {
        status = aster_transport_listen(transport, &addresses[i], &bound, error);
        if (status == ASTER_OK) {
            struct grantor_line line;
            grantor_line_init(&line, GRANTOR_INFO, "listening");
            grantor_line_text(&line, "transport", aster_transport_name(transport));
            grantor_line_text(&line, "address", aster_address_text(&bound, shown));
            grantor_line_end(&line);
        }
    }
    return status;
}

static aster_status listen_all(struct aster_transport *transport, const struct grantor_texts *texts,
                               struct aster_error *error)
{
    aster_status status = ASTER_OK;
    for (size_t i = 0; i < texts->count && status == ASTER_OK; i++) {
        status = listen_at(transport, texts->items[i], error);
    }
    return status;
}

static aster_status open_transports(struct grantor_server *server, const struct grantor_settings *settings,
                                    struct aster_error *error)
{
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    aster_status status = load_credentials(settings, &options.credentials, error);
    options.loop = server->state.loop;
    options.admit = admit;
    options.refused = refused;
    options.handler = &handler;
    options.user = server;
    options.idle_timeout_ms = settings->idle_timeout_ms;
    if (status == ASTER_OK && settings->node_directory != NULL) {
        status = aster_node_secret(settings->node_directory, options.secret, error);
    }
    if (status == ASTER_OK && settings->quic.count > 0) {
        status = aster_quic_transport_create(&options, &server->quic, error);
    }
    if (status == ASTER_OK && settings->tcp.count > 0) {
        grantor_capacity_fit(&options);
        status = aster_tcp_transport_create(&options, &server->tcp, error);
    }
    if (status ==
        ASTER_OK) { /* after the transports': rounds run newest first, so that answers leave in the same one */
        status = aster_loop_call(server->state.loop, add_round, &server->state);
        if (status != ASTER_OK) {
            aster_error_set(error, status, "no memory for the server's timer");
        }
    }
    if (status == ASTER_OK) {
        status = listen_all(server->quic, &settings->quic, error);
    }
    if (status == ASTER_OK) {
        status = listen_all(server->tcp, &settings->tcp, error);
    }
    aster_credentials_unref(options.credentials);
    return status;
}

struct measuring {
    struct grantor_server *server;
    struct grantor_gauges *gauges;
};

static aster_status run_measure(void *argument)
{
    struct measuring *measuring = argument;
    struct grantor_server *server = measuring->server;
    struct aster_transport *transports[] = {server->quic, server->tcp};
    struct grantor_gauges gauges = {.in_flight = server->state.flights,
                                    .draining = server->state.draining,
                                    .forgets = strcmp(aster_serializer_name(server->state.serializer), "memory") == 0,
                                    .journal = aster_journalled_counts(server->state.serializer)};
    for (int i = 0; i < 2; i++) {
        if (transports[i] != NULL) {
            const struct aster_transport_counts counts = aster_transport_counts(transports[i]);
            gauges.connections += counts.connections;
            gauges.handshakes += counts.handshakes;
            gauges.refused += counts.refused;
        }
    }
    *measuring->gauges = gauges;
    return ASTER_OK;
}

static void measure(struct grantor_gauges *gauges, void *user)
{
    struct measuring measuring = {user, gauges};
    aster_loop_call(measuring.server->state.loop, run_measure, &measuring);
}

static aster_status take_reader(void *argument)
{
    struct grantor_state *state = argument;
    state->last_reader = state->reader;
    state->reader = NULL; /* answers that are still to come find none */
    return ASTER_OK;
}

/* Whoever still has something to tell the loop ends before it: the reader, and the serializer with what a slow disk
 * kept in flight. */
static void destroy(struct grantor_server *server, bool keep_settings)
{
    struct grantor_state *state = &server->state;
    grantor_http_close(server->http);
    grantor_pulse_stop(server->pulse);
    grantor_registrar_destroy(state->registrar); /* while the loop and its flights still run */
    aster_transport_destroy(server->quic);
    aster_transport_destroy(server->tcp);
    if (state->loop != NULL) {
        aster_loop_call(state->loop, remove_round, state);
        aster_loop_call(state->loop, take_reader, state);
    }
    grantor_reader_destroy(state->last_reader);
    aster_serializer_destroy(state->serializer);
    aster_loop_destroy(state->loop); /* runs what was posted */
    grantor_parking_destroy(state->parking);
    grantor_state_fini(state);
    if (keep_settings) {
        grantor_admission_keep_settings(state->admission);
    }
    grantor_admission_destroy(state->admission);
    free(server);
}

struct change {
    struct grantor_server *server;
    struct grantor_settings *settings;
    struct grantor_overlay *overlay;
    size_t count;
};

/* Whoever is no longer admitted, or may no longer watch. */
static size_t expel(struct grantor_server *server)
{
    struct grantor_state *state = &server->state;
    struct aster_transport *transports[] = {server->quic, server->tcp};
    size_t count = 0;
    for (struct grantor_session *session = state->sessions; session != NULL; session = session->next) {
        struct aster_bytes identity = aster_link_identity(session->link);
        for (int i = 0; i < 2 && !grantor_admission_knows(state->admission, identity); i++) {
            count += transports[i] != NULL ? aster_transport_expel(transports[i], identity) : 0;
        }
        grantor_session_recheck(session);
    }
    return count;
}

static uint32_t apply(struct grantor_overlay *overlay, void *user)
{
    struct grantor_server *server = user;
    grantor_admission_replace(server->state.admission, NULL, overlay);
    return (uint32_t)expel(server);
}

/* What operators changed before counts before anybody is let in. */
static aster_status open_registrar(struct grantor_server *server, const struct grantor_settings *settings,
                                   struct aster_error *error)
{
    const struct grantor_registrar_options options = {&server->state, apply, server};
    struct grantor_overlay *overlay = NULL;
    char *path = NULL;
    aster_status status = grantor_settings_nodes_file(settings, &path, error);
    if (status == ASTER_OK) {
        status = grantor_registrar_create(&options, path, &server->state.registrar, error);
    }
    if (status == ASTER_OK) {
        status = grantor_registrar_hold(server->state.registrar, settings, &overlay, error);
    }
    if (status == ASTER_OK) {
        grantor_admission_replace(server->state.admission, NULL, overlay);
        grantor_registrar_go_on(server->state.registrar);
    }
    free(path);
    return status;
}

aster_status grantor_server_start(struct grantor_settings *settings, struct grantor_server **server,
                                  struct aster_error *error)
{
    struct grantor_server *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the server");
    }
    aster_status status = grantor_admission_create(settings, &made->state.admission, error);
    if (status == ASTER_OK) {
        take_limits(&made->state, settings);
        made->drain_rounds = settings->drain_timeout_ms * 1000000 / PAUSE_NS;
        status = grantor_store_open(settings, &made->state, error);
    }
    if (status == ASTER_OK) {
        status = prepare(&made->state, error);
    }
    if (status == ASTER_OK) {
        status = open_registrar(made, settings, error);
    }
    if (status == ASTER_OK) {
        status = open_transports(made, settings, error);
    }
    if (status == ASTER_OK && settings->http != NULL) {
        const struct grantor_http_source source = {&made->state.counters, made->state.serializer, measure, made};
        status = grantor_http_open(settings->http, &source, &made->http, error);
    }
    if (status == ASTER_OK) {
        status = grantor_pulse_start(&made->state, &made->pulse, error);
    }
    if (status != ASTER_OK) {
        destroy(made, true);
        return status;
    }
    *server = made;
    return ASTER_OK;
}

static aster_status run_reload(void *argument)
{
    struct change *change = argument;
    struct grantor_state *state = &change->server->state;
    take_limits(state, change->settings);
    grantor_admission_replace(state->admission, change->settings, change->overlay);
    change->count += expel(change->server);
    return ASTER_OK;
}

aster_status grantor_server_reload(struct grantor_server *server, struct grantor_settings *settings,
                                   struct aster_error *error)
{
    struct aster_credentials *credentials = NULL;
    aster_status status = load_credentials(settings, &credentials, error);
    struct change change = {.server = server, .settings = settings};
    if (status == ASTER_OK) {
        status = grantor_registrar_hold(server->state.registrar, settings, &change.overlay, error);
    }
    if (status != ASTER_OK) {
        aster_credentials_unref(credentials);
        return status;
    }
    struct aster_transport *transports[] = {server->quic, server->tcp};
    for (int i = 0; i < 2; i++) {
        change.count += transports[i] != NULL ? aster_transport_reload(transports[i], credentials) : 0;
    }
    aster_credentials_unref(credentials);
    size_t nodes = settings->nodes.count;
    aster_loop_call(server->state.loop, run_reload, &change);
    grantor_registrar_go_on(server->state.registrar);
    struct grantor_line line;
    grantor_line_init(&line, GRANTOR_INFO, "reloaded");
    grantor_line_number(&line, "nodes", (int64_t)nodes);
    grantor_line_number(&line, "expelled", (int64_t)change.count);
    grantor_line_end(&line);
    return ASTER_OK;
}

static aster_status run_drain(void *argument)
{
    struct grantor_server *server = argument;
    server->state.draining = true;
    if (server->state.parking != NULL) {
        grantor_parking_close(server->state.parking);
    } else {
        grantor_flights_dismiss(&server->state);
    }
    return ASTER_OK;
}

static aster_status count_flights(void *argument)
{
    struct change *change = argument;
    change->count = change->server->state.flights;
    return ASTER_OK;
}

static aster_status count_unsent(void *argument)
{
    struct change *change = argument;
    change->count = 0;
    for (struct grantor_session *session = change->server->state.sessions; session != NULL; session = session->next) {
        change->count += aster_link_unacknowledged(session->link) + session->held_bytes;
    }
    return ASTER_OK;
}

static aster_status run_end(void *argument)
{
    struct grantor_server *server = argument;
    for (struct grantor_session *session = server->state.sessions; session != NULL; session = session->next) {
        grantor_session_end(session, "shutting down");
    }
    return ASTER_OK;
}

static bool wait_for_none(struct grantor_server *server, aster_status (*count)(void *), int64_t rounds)
{
    struct change change = {.server = server};
    aster_loop_call(server->state.loop, count, &change);
    for (int64_t i = 0; change.count > 0 && i < rounds; i++) {
        aster_pause_ns(PAUSE_NS);
        aster_loop_call(server->state.loop, count, &change);
    }
    return change.count == 0;
}

void grantor_server_stop(struct grantor_server *server)
{
    aster_loop_call(server->state.loop, run_drain, server);
    grantor_registrar_destroy(server->state.registrar); /* so that operators are answered */
    server->state.registrar = NULL;
    bool answered = wait_for_none(server, count_flights, server->drain_rounds);
    wait_for_none(server, count_unsent, FLUSH_ROUNDS);
    aster_loop_call(server->state.loop, run_end, server);
    destroy(server, false);
    struct grantor_line line;
    grantor_line_init(&line, answered ? GRANTOR_INFO : GRANTOR_WARNING, "drained");
    grantor_line_text(&line, "answered", answered ? "all" : "some");
    grantor_line_end(&line);
}
