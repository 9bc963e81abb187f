/* A client that speaks the wire to a grantor by hand: what a test sends is what travels. */
#ifndef SUPPORT_GRANTOR_CLIENT_H
#define SUPPORT_GRANTOR_CLIENT_H

#include <pthread.h>

#include "quic/transport.h"
#include "wire/frame.h"
#include "wire/reply.h"
#include "wire/request.h"

struct grantor_received {
    struct grantor_received *next;
    uint64_t id;
    size_t size;
    unsigned char payload[];
};

struct grantor_client {
    char directory[64];
    char id[ASTER_NODE_ID_SIZE];
    struct aster_bytes identity;                 /* the same as a view; CA mode: the test's SPIFFE id */
    const struct aster_credentials_files *files; /* CA mode: instead of the node's; or NULL */
    const struct grantor_client *as;             /* shows the node of this one instead of its own; or NULL */
    int64_t idle_timeout_ms;                     /* of the next link; 0 = the default */
    struct aster_loop *loop;
    struct aster_transport *transport;
    uint64_t last_id;
    unsigned char *scratch;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct aster_link *link; /* under `lock` from here on; NULL unless it is open */
    bool closed;
    enum aster_link_end end;
    struct grantor_received *received; /* oldest first */
};

/* A fresh node in a temporary directory, and its removal. */
void grantor_client_init(struct grantor_client *client, const char *name);
void grantor_client_fini(struct grantor_client *client);

/* Connect over QUIC, or TCP, to a port of the loopback. True: open. False: refused or closed, see `end`. */
bool grantor_client_link(struct grantor_client *client, uint16_t port, bool tcp);
/* Link and say hello; the test fails unless it is accepted under the client's own identity. */
void grantor_client_connect(struct grantor_client *client, uint16_t port, bool tcp);
/* The second half of that. */
void grantor_client_greet(struct grantor_client *client);
/* Close the link in good order, or wait until the server does. */
void grantor_client_close(struct grantor_client *client);
void grantor_client_await_close(struct grantor_client *client);

/* While throttled it reads nothing more than what the server has credit for. */
void grantor_client_throttle(struct grantor_client *client, bool throttled);

/* Send and give the id. */
uint64_t grantor_client_send(struct grantor_client *client, struct aster_call *call);
/* Send and close in one go, so that the answer finds nobody. */
void grantor_client_send_and_close(struct grantor_client *client, struct aster_call *call);
void grantor_client_send_bytes(struct grantor_client *client, const void *data, size_t size);
uint64_t grantor_client_acquire(struct grantor_client *client, const char *resource, int64_t ttl_ms, uint32_t wait_ms);
uint64_t grantor_client_operate(struct grantor_client *client, enum aster_operation_kind kind, const char *resource,
                                int64_t epoch);

/* Wait for the next answer to `id`; valid until the next call. The test fails after 20 s. */
const struct aster_answer *grantor_client_await(struct grantor_client *client, uint64_t id);
/* The same, which must be a decision. */
const struct aster_decision *grantor_client_decision(struct grantor_client *client, uint64_t id);
/* Is there an answer to `id` yet? */
bool grantor_client_has(struct grantor_client *client, uint64_t id);

struct aster_call grantor_call_acquire(const char *resource, int64_t ttl_ms, uint32_t wait_ms);

#endif
