/* The remote serializer's parts. `lock` guards what several threads use; the rest belongs to the loop's thread.
 *
 *   submit.c    requests come in, are cancelled, the serializer is closed
 *   connect.c   ways to the grantor are tried until one leads to it
 *   send.c      the queues become frames
 *   answer.c    frames become answers
 *   ending.c    requests that end without a decision
 *   read.c      list and history
 *   open.c      options, threads, the vtable
 *   credentials.c  who we are, read again before every connection */
#ifndef REMOTE_REMOTE_H
#define REMOTE_REMOTE_H

#include <pthread.h>

#include "aster/grantor.h"
#include "aster/sys/serializer.h"
#include "quic/transport.h"
#include "serializer/remote/addresses.h"
#include "serializer/remote/index.h"
#include "wire/reply.h"
#include "wire/request.h"

struct remote;
struct remote_read;

/* Why a request ends without a decision. */
enum remote_end {
    REMOTE_END_DEADLINE = 1,
    REMOTE_END_CANCELLED = 2,
    REMOTE_END_CLOSED = 3,
    REMOTE_END_REFUSED = 4, /* the grantor does not admit us, or we do not believe it */
    REMOTE_END_UNSENDABLE = 5
};

/* One request, or one read, that has not been answered. Under `lock`. */
struct remote_entry {
    struct remote_node node;  /* of remote.entries; the key is the request's address. First member */
    struct aster_timer timer; /* of remote.deadlines; the serializer's clock */
    struct remote *remote;
    struct aster_request *request; /* NULL for a read */
    struct remote_read *read;      /* NULL for a request */
    struct remote_entry *next;     /* in a queue, or in a list of ended ones */
    struct remote_entry *previous;
    struct remote_queue *queue;       /* where it waits to be sent, or */
    struct remote_exchange *exchange; /* what it travels in */
    size_t position;                  /* in the exchange */
    int64_t deadline_ns;              /* INT64_MAX = none */
    unsigned char request_id[ASTER_REQUEST_ID_SIZE];
    bool sent_before; /* on a connection that was lost before the answer */
    bool cancelled;
    bool maybe_applied; /* ended: it had been sent */
    enum remote_end end;
};

/* One message under way, with the entries that its reply answers. Under `lock`. */
struct remote_exchange {
    struct remote_node node;       /* of remote.exchanges; the key is the id on the wire. First member */
    struct remote_exchange *older; /* in the order of sending */
    struct remote_exchange *newer;
    struct remote_exchange *next_cancel;
    bool cancel_listed;
    size_t count;
    size_t left; /* entries that still wait */
    struct remote_entry *entries[];
};

struct remote_queue {
    struct remote_entry *head;
    struct remote_entry *tail;
};

struct remote_attempt;

/* Where our key and certificate are; copies. */
struct remote_files {
    char *node;
    char *key;
    char *certificate;
    char *roots;
};

struct remote {
    struct aster_grantor_options options; /* its texts are not kept */
    struct aster_clock clock;
    struct remote_files files;
    struct aster_credentials *credentials; /* the first ones: `identity` is theirs */
    struct aster_bytes identity;
    struct remote_addresses addresses;
    struct aster_loop *loop;
    struct aster_transport *quic;
    struct aster_transport *tcp; /* NULL: without */

    pthread_mutex_t lock; /* from here on under it */
    pthread_cond_t idle;
    struct remote_index entries;
    struct remote_index exchanges;
    struct remote_exchange *newest;
    struct remote_queue renewals; /* go first */
    struct remote_queue others;
    struct remote_exchange *cancels; /* to be told to the grantor */
    struct aster_timers deadlines;
    struct remote_entry *ended; /* by a deadline that fires; answered once the lock is open */
    size_t unanswered;
    size_t out;     /* entries that were sent and are not answered */
    size_t out_max; /* what the grantor said that it takes; renewals have a quarter of it for themselves */
    bool closed;
    bool wake_posted;
    struct aster_task wake;
    bool connected;                        /* accepted by a grantor, now */
    char trouble[ASTER_ERROR_MESSAGE_MAX]; /* what went wrong when it was last tried */
    bool trouble_is_old;                   /* another round has begun since */

    struct aster_timer tick; /* the loop's thread only, from here on */
    struct remote_attempt *attempts;
    struct remote_attempt *current; /* whose handshake is done */
    struct aster_timer stagger;     /* when the next way is tried as well, or the grantor should have said hello */
    struct aster_timer backoff;
    int64_t backoff_ns;
    int64_t connected_ns;
    size_t first_way;
    size_t ways_tried;
    unsigned refusing; /* addresses, by bit: the server there does not admit us; its other way is not tried */
    unsigned hopeless; /* those, and where something else than a grantor speaks */
    bool trying;       /* a round of ways is under way */
    bool blocked;      /* the link's send buffer is full */
    bool full;         /* something waits because so much is out */
    bool cancelled_all;
    bool stopped;
    uint64_t last_id;
    uint64_t random;
    struct aster_scratch scratch;
    unsigned char *buffer; /* of one payload */
};

/* submit.c */
void remote_submit(void *self, struct aster_request *request);
void remote_submit_many(void *self, struct aster_request **requests, size_t count);
void remote_cancel(void *self, struct aster_request *request);
void remote_close(void *self);
/* Queue an entry that is new. Gives up with a status when there is no room or no more. */
aster_status remote_enqueue(struct remote *remote, struct remote_entry *entry, struct aster_error *error);
void remote_wake_locked(struct remote *remote);
void remote_queue_append(struct remote_queue *queue, struct remote_entry *entry);
void remote_queue_prepend(struct remote_queue *queue, struct remote_entry *entry);
struct remote_queue *remote_queue_for(struct remote_entry *entry);

/* ending.c */
/* Take an entry out of everything; the caller answers it after the lock is open. Under the lock. */
void remote_detach(struct remote_entry *entry);
/* The same, and put it on the list. */
void remote_end_locked(struct remote_entry *entry, enum remote_end end, struct remote_entry **list);
/* Answer a list of ended entries and free them. Not under the lock. */
void remote_answer_ended(struct remote *remote, struct remote_entry *list);
/* Give the memory of `count` answered entries back to the count that wait() looks at. Not under the lock. */
void remote_answered(struct remote *remote, size_t count);
void remote_deadline_fire(struct aster_timer *timer, int64_t now_ns);
/* Fire deadlines that are due and set the next tick. The loop's thread. */
void remote_tick(struct remote *remote);
void remote_exchange_free(struct remote *remote, struct remote_exchange *exchange);
/* Everything under way goes back to the queues, to be sent again in the order it was sent in; what was cancelled ends.
 * Under the lock. */
void remote_requeue_all(struct remote *remote, struct remote_entry **ended);
bool remote_is_mutating(const struct remote_entry *entry);
const char *remote_verb(const struct remote_entry *entry); /* what it is, for messages */

/* send.c, the loop's thread */
void remote_wake_run(struct aster_task *task);
/* Send what waits, connecting first where needed. */
void remote_flush(struct remote *remote);
bool remote_send_call(struct remote *remote, const struct aster_call *call, aster_status *status,
                      struct aster_error *error);

/* credentials.c. Errors: as aster_credentials_load(); fini() is due after an error, too. */
aster_status remote_credentials_init(struct remote *remote, const struct aster_grantor_options *options,
                                     struct aster_error *error);
/* Look at the files again for the next handshake. The loop's thread. */
void remote_credentials_reload(struct remote *remote);
void remote_credentials_fini(struct remote *remote);

/* connect.c, the loop's thread */
void remote_connect(struct remote *remote); /* no effect when connected or trying */
struct aster_link *remote_link(struct remote *remote);
void remote_disconnect(struct remote *remote, const char *reason);
bool remote_admit(struct aster_bytes identity, void *user);
extern const struct aster_link_handler remote_link_handler;
void remote_timers_init(struct remote *remote);
void remote_log(const struct remote *remote, enum aster_grantor_event event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* answer.c, the loop's thread */
void remote_frame(struct remote *remote, struct aster_bytes payload);

/* open.c: NULL for a serializer of another kind */
struct remote *remote_of(struct aster_serializer *serializer);

/* read.c */
aster_status remote_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                         struct aster_error *error);
aster_status remote_history(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                            struct aster_error *error);
bool remote_read_changes(const struct remote_read *read); /* else asking twice or in vain has no effect */
void remote_read_call(const struct remote_read *read, struct aster_call *call);
/* One payload of the answer; true when it was the last. Under the lock, on the loop's thread. */
bool remote_read_take(struct remote_read *read, const struct aster_answer *answer, struct aster_bytes payload);
void remote_read_restart(struct remote_read *read); /* the connection was lost: what came is void */
void remote_read_end(struct remote_read *read, aster_status status, const struct aster_error *error);

#endif
