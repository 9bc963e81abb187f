/* A small grantor inside the test's process: a memory serializer behind both transports, with faults on request. */
#ifndef SUPPORT_REMOTE_GRANTOR_H
#define SUPPORT_REMOTE_GRANTOR_H

#include <pthread.h>
#include <stdatomic.h>

#include "aster/grantor.h"
#include "aster/memory.h"
#include "quic/transport.h"
#include "wire/reply.h"
#include "wire/request.h"

struct remote_grantor {
    char directory[64];
    char id[ASTER_NODE_ID_SIZE];
    struct aster_loop *loop;
    struct aster_transport *quic;
    struct aster_transport *tcp;
    struct aster_address bound; /* of both */
    struct aster_serializer *serializer;
    atomic_int lose_reply_to; /* an aster_operation_kind: instead of the next reply to it the connection ends */
    atomic_int refuse_with;   /* an aster_status: once no reply is to be lost, the next operation gets it, undecided */
    atomic_bool admit_nobody;
    atomic_bool silent;        /* nothing is answered any more */
    atomic_uint in_flight_max; /* what it tells clients that it takes; 0 = nothing */
    atomic_uint requests;
    atomic_uint batches;
    atomic_uint renewals; /* single and in batches */
    atomic_uint cancels;
    atomic_uint links; /* opened so far */
    struct aster_scratch scratch;
    struct aster_scratch answers;
    unsigned char *buffer;
};

enum remote_carriers { REMOTE_QUIC = 1, REMOTE_TCP = 2 };

/* A fresh node and an empty serializer on `clock` (NULL = the system's); serves nothing yet. */
void remote_grantor_init(struct remote_grantor *grantor, const struct aster_clock *clock);
void remote_grantor_fini(struct remote_grantor *grantor);
/* Serve on 127.0.0.1:port (0 = any); `bound` says where. */
void remote_grantor_start(struct remote_grantor *grantor, unsigned carriers, uint16_t port);
/* Stop serving; the leases stay. */
void remote_grantor_stop(struct remote_grantor *grantor);

/* A client: a node of its own, opened over `address` ("127.0.0.1:PORT" of the grantor when NULL). */
struct remote_client {
    char directory[64];
    char id[ASTER_NODE_ID_SIZE];
    char log[4096]; /* under `lock` */
    pthread_mutex_t lock;
    struct aster_serializer *serializer;
};

void remote_client_init(struct remote_client *client);
void remote_client_fini(struct remote_client *client); /* destroys the serializer too, if any */
/* Options to change before opening; `addresses` is static text until the next call. */
struct aster_grantor_options remote_client_options(struct remote_client *client, const struct remote_grantor *grantor);
void remote_client_open(struct remote_client *client, const struct aster_grantor_options *options);
void remote_client_log(enum aster_grantor_event event, const char *line, void *client); /* for options.log */
bool remote_client_logged(struct remote_client *client, const char *text);

/* A fresh node in a temporary directory, and its removal. */
void remote_make_node(char directory[64], const char *name, char id[ASTER_NODE_ID_SIZE]);
void remote_remove_node(const char *directory);

#endif
