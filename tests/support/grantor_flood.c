#include "support/grantor_flood.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/descriptors.h"
#include "platform/entropy.h"
#include "quic/link.h"
#include "support/quic_side.h"
#include "wire/request.h"

#define A_MINUTE 60
#define INITIALS 600
#define SOCKETS 32
#define RING 3000 /* connections at a time */
#define LINKS_MAX 60
#define REQUESTS_PER_STEP 1000

/* ---- without an identity ---- */

static int open_socket(int type, const struct aster_address *remote)
{
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        (void)connect(fd, &remote->any, remote->size); /* in progress, or refused: both are the server's affair */
    }
    return fd;
}

static void flood_datagrams(const struct aster_address *remote)
{
    static unsigned char noise[65536];
    aster_entropy_fill(noise, 256, NULL);
    for (size_t i = 256; i < sizeof noise; i++) {
        noise[i] = (unsigned char)(noise[i - 256] * 5 + noise[i - 7] + 1);
    }
    int fd = open_socket(SOCK_DGRAM, remote);
    for (size_t i = 0;; i++) {
        (void)send(fd, noise + i * 131 % 60000, 1 + i * 17 % 1400, 0);
    }
}

static void flood_connections(const struct aster_address *remote, bool again, bool talk)
{
    static int ring[RING];
    static const char nonsense[1000] = "GET / HTTP/1.1\r\n\r\n";
    aster_descriptors_raise();
    for (size_t i = 0; again || i < RING; i++) {
        int *fd = &ring[i % RING];
        if (i >= RING) {
            close(*fd);
        }
        *fd = open_socket(SOCK_STREAM, remote);
        if (talk && i % RING >= 8) { /* by now it is connected */
            (void)send(ring[i % RING - 8], nonsense, sizeof nonsense, MSG_NOSIGNAL);
        }
    }
    pause();
}

/* ---- with an identity ---- */

struct slot {
    struct attacker *attacker;
    struct aster_link *link; /* NULL: to be connected */
    bool open;
    size_t sent;
};

struct attacker {
    struct aster_loop *loop;
    struct aster_transport *transport;
    struct aster_address remote;
    bool (*act)(struct slot *slot); /* false = not again on this link */
    bool greets;
    size_t links;
    struct slot slots[LINKS_MAX];
    struct aster_scratch scratch;
    unsigned char payload[ASTER_FRAME_PAYLOAD_MAX];
};

static bool admit(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

/* False when the link's buffer is full. */
static bool say(struct slot *slot, const struct aster_call *call)
{
    struct attacker *attacker = slot->attacker;
    size_t size = 0;
    attacker->scratch.used = 0;
    return aster_call_encode(call, &attacker->scratch, attacker->payload, sizeof attacker->payload, &size, NULL) ==
               ASTER_OK &&
           aster_link_send(slot->link, (struct aster_bytes){attacker->payload, size}, NULL) == ASTER_OK;
}

/* Bytes that make no frame. */
static void push(struct slot *slot, const void *data, size_t size)
{
    const struct aster_bytes none = {NULL, 0};
    aster_send_queue_append(&slot->link->out, (struct aster_bytes){data, size}, none, NULL);
    slot->link->ops->wake(slot->link);
}

static void opened(struct aster_link *link, void *user)
{
    struct slot *slot = user;
    slot->link = link;
    slot->open = true;
    slot->sent = 0;
    if (slot->attacker->greets) {
        const struct aster_call hello = {.kind = ASTER_CALL_HELLO, .hello = {ASTER_WIRE_VERSION, aster_text("flood")}};
        say(slot, &hello);
    }
}

static void ignore(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)link;
    (void)payload;
    (void)user;
}

static void closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)end;
    (void)error;
    struct slot *slot = user;
    slot->link = NULL;
    slot->open = false;
}

static const struct aster_link_handler handler = {opened, ignore, NULL, closed};

static bool act_oversized(struct slot *slot)
{
    static const unsigned char header[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    push(slot, header, sizeof header);
    return false;
}

static bool act_slowly(struct slot *slot)
{
    unsigned char header[ASTER_FRAME_HEADER_SIZE];
    aster_frame_header(header, ASTER_FRAME_PAYLOAD_MAX);
    push(slot, slot->sent < sizeof header ? &header[slot->sent] : header, 1);
    slot->sent++;
    return true;
}

static struct aster_call call_of(struct slot *slot, enum aster_operation_kind kind, const char *resource)
{
    struct aster_call call = {.id = ++slot->sent, .kind = ASTER_CALL_OPERATION};
    call.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    call.one.operation.kind = kind;
    call.one.operation.resource = aster_text(resource);
    call.one.operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 60000 : 0;
    memcpy(call.one.operation.request_id, &slot->sent, sizeof slot->sent);
    return call;
}

static bool act_asking(struct slot *slot)
{
    bool room = true;
    for (unsigned i = 0; i < REQUESTS_PER_STEP && room; i++) {
        char name[16];
        snprintf(name, sizeof name, "flood/%zu", slot->sent % 1000);
        struct aster_call call = call_of(slot, i % 2 == 0 ? ASTER_OP_ACQUIRE : ASTER_OP_INSPECT, name);
        room = say(slot, &call);
    }
    return true;
}

static bool act_busily(struct slot *slot)
{
    for (unsigned i = 0; i < 100; i++) {
        struct aster_call call = call_of(slot, ASTER_OP_ACQUIRE, "watched");
        call.one.operation.flags = ASTER_OP_TAKE_OVER_OWN; /* so each is granted, and an event */
        say(slot, &call);
    }
    return true;
}

static bool act_deaf(struct slot *slot)
{
    for (unsigned i = 0; i < 60; i++) {
        const struct aster_call watch = {.id = ++slot->sent, .kind = ASTER_CALL_WATCH};
        say(slot, &watch);
    }
    aster_link_throttle(slot->link, true);
    return false;
}

static aster_status step(void *argument)
{
    struct attacker *attacker = argument;
    const struct aster_bytes anybody = {NULL, 0};
    for (size_t i = 0; i < attacker->links; i++) {
        struct slot *slot = &attacker->slots[i];
        if (slot->link == NULL) {
            aster_transport_connect(attacker->transport, &attacker->remote, anybody, slot, &slot->link, NULL);
        } else if (slot->open) {
            slot->open = attacker->act(slot);
        }
    }
    return ASTER_OK;
}

static struct attacker *attacker_create(bool tcp, const char *node)
{
    struct attacker *attacker = calloc(1, sizeof *attacker);
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    if (attacker == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < LINKS_MAX; i++) {
        attacker->slots[i].attacker = attacker;
    }
    attacker->scratch = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    if (aster_loop_create("flood", &options.loop, NULL) != ASTER_OK ||
        aster_credentials_load_node(node, &options.credentials, NULL) != ASTER_OK) {
        return NULL;
    }
    options.admit = admit;
    options.handler = &handler;
    attacker->loop = options.loop;
    aster_status status = tcp ? aster_tcp_transport_create(&options, &attacker->transport, NULL)
                              : aster_quic_transport_create(&options, &attacker->transport, NULL);
    return status == ASTER_OK ? attacker : NULL;
}

struct behaviour {
    const char *kind;
    bool (*act)(struct slot *slot);
    bool greets;
    size_t links;
    useconds_t pause_us;
};

static const struct behaviour behaviours[] = {
    {"oversized", act_oversized, false, 16, 1000}, {"slow", act_slowly, false, LINKS_MAX, 100000},
    {"requests", act_asking, true, 4, 0},          {"events", act_busily, true, 1, 1000},
    {"deaf-watcher", act_deaf, true, 4, 100000},
};

static int flood_links(const char *kind, const struct aster_address *remote, bool tcp, const char *node)
{
    for (size_t i = 0; i < sizeof behaviours / sizeof behaviours[0]; i++) {
        const struct behaviour *behaviour = &behaviours[i];
        if (strncmp(kind, behaviour->kind, strlen(behaviour->kind)) == 0) {
            struct attacker *attacker = attacker_create(tcp, node);
            if (attacker == NULL) {
                return 1;
            }
            attacker->remote = *remote;
            attacker->act = behaviour->act;
            attacker->greets = behaviour->greets;
            attacker->links = behaviour->links;
            for (;;) {
                aster_loop_call(attacker->loop, step, attacker);
                usleep(behaviour->pause_us);
            }
        }
    }
    return 1;
}

/* ---- first packets ---- */

static unsigned char initials[INITIALS][1500];
static size_t initial_sizes[INITIALS];

/* Real ones, which a client sends to a hole in the ground: each belongs to another connection. */
static bool collect_initials(const char *node)
{
    struct aster_address hole = loopback_address(0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct attacker *attacker = attacker_create(false, node);
    if (attacker == NULL || fd < 0 || bind(fd, &hole.any, hole.size) != 0 ||
        getsockname(fd, &hole.any, &hole.size) != 0) {
        return false;
    }
    attacker->remote = hole;
    attacker->links = 1;
    for (size_t i = 0; i < INITIALS; i++) {
        attacker->slots[0].link = NULL; /* the last one goes on talking to the hole */
        aster_loop_call(attacker->loop, step, attacker);
        ssize_t size = recv(fd, initials[i], sizeof initials[i], 0);
        initial_sizes[i] = size > 0 ? (size_t)size : 0;
    }
    close(fd);
    aster_transport_destroy(attacker->transport);
    aster_loop_destroy(attacker->loop);
    return true;
}

static int flood_initials(const struct aster_address *remote, const char *node)
{
    int sockets[SOCKETS];
    if (!collect_initials(node)) {
        return 1;
    }
    for (size_t i = 0; i < SOCKETS; i++) {
        sockets[i] = open_socket(SOCK_DGRAM, remote);
    }
    for (size_t i = 0;; i++) {
        (void)send(sockets[i / 7 % SOCKETS], initials[i % INITIALS], initial_sizes[i % INITIALS], 0);
    }
}

int grantor_flood(const char *kind, uint16_t quic, uint16_t tcp, const char *node)
{
    const struct aster_address over_quic = loopback_address(quic);
    const struct aster_address over_tcp = loopback_address(tcp);
    alarm(A_MINUTE); /* whatever becomes of the test */
    if (strcmp(kind, "initials") == 0) {
        return flood_initials(&over_quic, node);
    }
    if (strcmp(kind, "datagrams") == 0) {
        flood_datagrams(&over_quic);
    } else if (strcmp(kind, "half-open") == 0 || strcmp(kind, "garbage") == 0) {
        flood_connections(&over_tcp, true, strcmp(kind, "garbage") == 0);
    } else if (strcmp(kind, "half-open-once") == 0) {
        flood_connections(&over_tcp, false, false);
    }
    size_t length = strlen(kind);
    bool is_tcp = length > 4 && strcmp(kind + length - 4, "-tcp") == 0;
    return flood_links(kind, is_tcp ? &over_tcp : &over_quic, is_tcp, node);
}
