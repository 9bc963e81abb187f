#include "grantor_session/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/memory.h"
#include "base/error.h"
#include "grantor/calls.h"
#include "grantor/log.h"
#include "grantor/outbox.h"
#include "grantor/parking.h"
#include "grantor/session.h"
#include "grantor_session/still.h"
#include "quic/link.h"
#include "support/fake_clock.h"

#define HISTORY_MAX 64
#define RULES 3

struct peer {
    struct aster_link link;
    struct aster_frame_reader reader; /* of what the server sends */
    unsigned char *buffer;
    bool open;
};

static struct grantor_state state;
static struct aster_transport transport;
static struct fake_clock *fake_time;
static struct peer peers[WORLD_PEERS];
static char configurations[RULES][64];
static unsigned char *scratch;
static struct grantor_store_below *below;
static struct grantor_admission *admission; /* of all worlds: parsing its rules is slow */
static unsigned rules_now;

static const char *const identities[WORLD_PEERS] = {
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc",
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
};

static bool operators[WORLD_PEERS]; /* by now, or once */
static bool nodes_changed;          /* by an operator: prefixes are no longer those of the configuration */

static const char *const rules[RULES] = {
    "",
    "requires { acquire = \"operator\" list = \"operator\" watch = \"operator\" }\n",
    "requires { inspect = \"x\" history = \"x\" renew = \"x\" release = \"x\" put = \"x\" }\n",
};

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

/* ---- a store that does not queue waiters: the memory serializer behind another face ---- */

struct grantor_store_below {
    struct aster_serializer *serializer;
};

static void submit(void *self, struct aster_request *request)
{
    request->wait_until_ns = 0;
    aster_serializer_submit(((struct grantor_store_below *)self)->serializer, request);
}

static void close_below(void *self)
{
    aster_serializer_close(((struct grantor_store_below *)self)->serializer);
}

static aster_status wait_below(void *self, int64_t timeout_ms)
{
    (void)self;
    (void)timeout_ms;
    return ASTER_OK; /* it answers at once */
}

static void destroy_below(void *self)
{
    aster_serializer_destroy(((struct grantor_store_below *)self)->serializer);
    free(self);
}

static aster_status list_below(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                               struct aster_error *error)
{
    return aster_list_page(((struct grantor_store_below *)self)->serializer, query, visit, user, error);
}

static aster_status history_below(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                  void *user, struct aster_error *error)
{
    return aster_history(((struct grantor_store_below *)self)->serializer, query, visit, user, error);
}

static const struct aster_serializer_ops ops = {.struct_size = sizeof ops,
                                                .name = "impatient",
                                                .submit = submit,
                                                .close = close_below,
                                                .wait = wait_below,
                                                .destroy = destroy_below,
                                                .history = history_below,
                                                .list_page = list_below};

static void open_store(bool parking)
{
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.clock = fake_clock_clock(fake_time);
    options.history_max = HISTORY_MAX;
    options.stripes = 2;
    options.authorize = grantor_admission_authorize;
    options.authorize_user = state.admission;
    must(aster_memory_open(&options, &state.serializer, NULL) == ASTER_OK);
    if (parking) {
        below = malloc(sizeof *below);
        must(below != NULL);
        below->serializer = state.serializer;
        must(aster_serializer_create(&ops, below, options.clock, &state.serializer, NULL) == ASTER_OK);
        must(grantor_parking_create(state.loop, &state.parking, NULL) == ASTER_OK);
    }
}

/* ---- rules ---- */

static void write_configurations(void)
{
    for (int i = 0; i < RULES && configurations[i][0] == '\0'; i++) {
        snprintf(configurations[i], sizeof configurations[i], "/tmp/aster-fuzz-XXXXXX");
        int fd = mkstemp(configurations[i]);
        must(fd >= 0);
        FILE *file = fdopen(fd, "w");
        must(file != NULL);
        fprintf(file,
                "journal = \"none\"\nnode-directory = \"/nowhere\"\nlisten { quic = {\"127.0.0.1:0\"} }\n"
                "node \"%s\" { roles = {\"operator\"} }\nnode \"%s\" {}\nnode \"%s\" { resources = {\"b\"} }\n%s",
                identities[0], identities[1], identities[2], rules[i]);
        must(fclose(file) == 0);
    }
}

static struct grantor_settings *read_rules(unsigned which)
{
    struct grantor_settings *settings = NULL;
    must(grantor_settings_read(configurations[which % RULES], &(struct grantor_place){NULL, NULL}, &settings, NULL) ==
         ASTER_OK);
    return settings;
}

static void forget(void)
{
    grantor_admission_destroy(admission);
    free(scratch);
    for (int i = 0; i < RULES; i++) {
        unlink(configurations[i]);
    }
}

void world_reload(unsigned which)
{
    rules_now = which % RULES;
    grantor_admission_replace(admission, read_rules(which), NULL);
    for (struct grantor_session *session = state.sessions; session != NULL; session = session->next) {
        grantor_session_recheck(session);
    }
}

const char *world_identity(int at)
{
    static const char *const more[] = {"0000000000000000000000000000000000000000000000000000000000000000",
                                       "spiffe://example.org/worker", "short"};
    return at < WORLD_PEERS ? identities[at] : more[at % 3];
}

void world_nodes_changed(void)
{
    nodes_changed = true;
    for (int at = 0; at < WORLD_PEERS; at++) {
        operators[at] = operators[at] || grantor_admission_is_operator(admission, aster_text(identities[at]));
    }
}

/* ---- links ---- */

static void wake(struct aster_link *link)
{
    (void)link;
}

static const struct aster_link_ops link_ops = {.wake = wake};

static void opened(struct aster_link *link, void *user)
{
    (void)user;
    grantor_session_open(&state, link);
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

void world_cut(int at)
{
    struct peer *peer = &peers[at];
    if (!peer->open) {
        return;
    }
    peer->open = false;
    peer->link.state = ASTER_LINK_CLOSED;
    closed(&peer->link, ASTER_LINK_END_UNREACHABLE, NULL, peer->link.user);
    aster_send_queue_fini(&peer->link.out);
    free(peer->link.in.buffer);
    free(peer->buffer);
}

static void open_link(int at)
{
    struct peer *peer = &peers[at];
    if (!grantor_admission_knows(admission, aster_text(identities[at]))) {
        return; /* the handshake refuses it */
    }
    memset(peer, 0, sizeof *peer);
    peer->open = true;
    peer->link.ops = &link_ops;
    peer->link.transport = &transport;
    peer->link.state = ASTER_LINK_OPEN;
    peer->link.accepted = true;
    peer->link.tls.identity.size = strlen(identities[at]);
    memcpy(peer->link.tls.identity.text, identities[at], strlen(identities[at]));
    aster_frame_reader_init(&peer->link.in, 0);
    aster_frame_reader_init(&peer->reader, 0);
    opened(&peer->link, NULL);
}

/* What the transport does at the end of a round. */
static void bury(void)
{
    for (int at = 0; at < WORLD_PEERS; at++) {
        if (peers[at].open && peers[at].link.stopping) {
            world_cut(at);
        }
    }
}

void world_bytes(int at, struct aster_bytes bytes)
{
    if (!peers[at].open) {
        open_link(at);
    }
    if (!peers[at].open) {
        return;
    }
    struct aster_link *link = &peers[at].link;
    if (!link->throttled) { /* else there is no credit for it */
        aster_link_received(link, bytes);
    }
}

void world_payload(int at, struct aster_bytes payload)
{
    unsigned char header[ASTER_FRAME_HEADER_SIZE];
    if (payload.size > 0) {
        aster_frame_header(header, payload.size);
        world_bytes(at, (struct aster_bytes){header, sizeof header});
        world_bytes(at, payload);
    }
}

void world_call(int at, const struct aster_call *call)
{
    static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];
    struct aster_scratch room = {scratch, ASTER_SCRATCH_SIZE, 0};
    size_t size;
    if (aster_call_encode(call, &room, wire, sizeof wire, &size, NULL) == ASTER_OK) {
        world_payload(at, (struct aster_bytes){wire, size});
    }
}

/* ---- answers ---- */

static void judge(int at, struct aster_bytes payload)
{
    struct aster_answer answer;
    struct aster_scratch room = {scratch, ASTER_SCRATCH_SIZE, 0};
    must(aster_answer_decode(payload, &room, &answer, NULL) == ASTER_OK);
    if (answer.kind == ASTER_ANSWER_ACCEPTED) {
        must(aster_bytes_equal(answer.accepted.identity, aster_text(identities[at])));
    } else if (answer.kind == ASTER_ANSWER_DECISION) {
        const struct aster_decision *decision = &answer.decision;
        bool granted = decision->outcome == ASTER_GRANTED;
        must(granted == (decision->reason == ASTER_REASON_NONE));
        if (granted && decision->kind == ASTER_OP_ACQUIRE) {
            must(decision->epoch > 0);
        }
        if (decision->reason == ASTER_REASON_UNAUTHORIZED) { /* and nothing is given away */
            must(decision->epoch == 0 && decision->snapshot.holder.size == 0 && decision->snapshot.value.size == 0);
        }
    } else if (answer.kind == ASTER_ANSWER_NODES || answer.kind == ASTER_ANSWER_CHANGED) {
        must(operators[at]);
    } else if (answer.kind == ASTER_ANSWER_ROWS && at == 2 && !nodes_changed) {
        for (size_t i = 0; i < answer.rows.count; i++) {
            must(*(const char *)answer.rows.rows[i].resource.data == 'b');
        }
    } else if (answer.kind == ASTER_ANSWER_EVENTS && at == 2 && !nodes_changed) {
        for (size_t i = 0; i < answer.events.count; i++) {
            must(*(const char *)answer.events.events[i].resource.data == 'b');
        }
    }
}

static void take_apart(int at, struct aster_bytes bytes)
{
    struct peer *peer = &peers[at];
    enum aster_frame_step step;
    struct aster_bytes payload;
    size_t needed;
    while ((step = aster_frame_reader_next(&peer->reader, &bytes, &payload, &needed)) != ASTER_FRAME_NONE) {
        must(step == ASTER_FRAME_READY || step == ASTER_FRAME_GROW);
        if (step == ASTER_FRAME_READY) {
            judge(at, payload);
        } else {
            peer->buffer = realloc(peer->buffer, needed);
            must(peer->buffer != NULL);
            aster_frame_reader_supply(&peer->reader, peer->buffer, needed);
        }
    }
}

void world_take(int at, size_t bytes)
{
    struct peer *peer = &peers[at];
    struct iovec piece;
    while (peer->open && bytes > 0 && aster_send_queue_unsent(&peer->link.out, &piece, 1) == 1) {
        size_t size = piece.iov_len < bytes ? piece.iov_len : bytes;
        take_apart(at, (struct aster_bytes){piece.iov_base, size});
        aster_send_queue_mark_sent(&peer->link.out, size);
        aster_link_sent(&peer->link, size);
        bytes -= size;
    }
}

/* ---- the whole ---- */

void world_end_round(void)
{
    still_run_posted();
    grantor_state_end_round(&state);
    still_run_posted();
    bury();
}

void world_read(void)
{
    still_read();
}

void world_advance_ms(int64_t ms)
{
    fake_clock_advance_ms(fake_time, ms);
    still_advance_ns(ms * 1000000);
}

void world_drain(void)
{
    state.draining = true;
    if (state.parking != NULL) {
        grantor_parking_close(state.parking);
    } else {
        grantor_flights_dismiss(&state);
    }
}

static void prepare_once(void)
{
    if (scratch == NULL) {
        scratch = malloc(ASTER_SCRATCH_SIZE);
        must(scratch != NULL);
        write_configurations();
        atexit(forget);
        must(grantor_admission_create(read_rules(0), &admission, NULL) == ASTER_OK);
        grantor_log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    }
}

void world_open(bool parking)
{
    prepare_once();
    memset(&state, 0, sizeof state);
    memset(&transport, 0, sizeof transport);
    transport.options = (struct aster_transport_options)ASTER_TRANSPORT_OPTIONS_INIT;
    transport.options.handler = &handler;
    still_init(&state);
    fake_time = fake_clock_create();
    must(fake_time != NULL);
    state.in_flight_max = 256;
    state.in_flight_total_max = 512;
    state.connections_max = 2;
    state.admission = admission;
    memset(operators, 0, sizeof operators);
    operators[0] = true;
    nodes_changed = false;
    struct grantor_overlay *unchanged = calloc(1, sizeof *unchanged);
    must(unchanged != NULL);
    grantor_admission_replace(admission, NULL, unchanged);
    if (rules_now != 0) {
        world_reload(0);
    }
    open_store(parking);
    must(grantor_state_init(&state, NULL) == ASTER_OK);
    must(grantor_outbox_open(&state, NULL) == ASTER_OK);
}

void world_close(void)
{
    for (int at = 0; at < WORLD_PEERS; at++) {
        world_take(at, SIZE_MAX);
        world_cut(at);
    }
    world_end_round();
    world_drain(); /* what gives grants back waits for nobody */
    world_end_round();
    still_read();
    must(state.sessions == NULL && state.flights == 0 && state.flight_bytes == 0 && state.held_bytes == 0);
    must(state.reads == 0 && state.read_bytes == 0 && state.renewals == NULL && state.others == NULL);
    grantor_outbox_close(&state);
    aster_serializer_destroy(state.serializer);
    still_run_posted();
    grantor_parking_destroy(state.parking);
    grantor_state_fini(&state);
    still_fini();
    fake_clock_destroy(fake_time);
}
