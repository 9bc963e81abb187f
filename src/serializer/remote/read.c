/* list, history and what operators ask about nodes: the calling thread blocks, the loop's thread collects the messages,
 * and the visitor runs on the calling thread. */
#include <stdlib.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/remote/nodes.h"
#include "serializer/remote/remote.h"

#define READ_TIMEOUT_NS (INT64_C(30000) * ASTER_NS_PER_MS)

struct message {
    struct message *next;
    size_t size;
    unsigned char payload[];
};

struct remote_read {
    struct aster_call call;
    struct message *first;
    struct message **last;
    pthread_mutex_t mutex;
    pthread_cond_t done_changed;
    bool done;
    bool no_memory;
    aster_status status;
    struct aster_error error;
};

void remote_read_call(const struct remote_read *read, struct aster_call *call)
{
    uint64_t id = call->id;
    uint32_t deadline_ms = call->deadline_ms;
    *call = read->call;
    call->id = id;
    call->deadline_ms = deadline_ms;
}

bool remote_read_changes(const struct remote_read *read)
{
    return read->call.kind >= ASTER_CALL_NODE_ADD && read->call.kind != ASTER_CALL_NODE_LIST;
}

void remote_read_restart(struct remote_read *read)
{
    while (read->first != NULL) {
        struct message *next = read->first->next;
        free(read->first);
        read->first = next;
    }
    read->last = &read->first;
}

bool remote_read_take(struct remote_read *read, const struct aster_answer *answer, struct aster_bytes payload)
{
    struct message *message = malloc(sizeof *message + payload.size);
    if (message == NULL) {
        read->no_memory = true;
        return true;
    }
    message->next = NULL;
    message->size = payload.size;
    memcpy(message->payload, payload.data, payload.size);
    *read->last = message;
    read->last = &message->next;
    return answer->kind != ASTER_ANSWER_EVENTS || !answer->events.more;
}

void remote_read_end(struct remote_read *read, aster_status status, const struct aster_error *error)
{
    pthread_mutex_lock(&read->mutex);
    read->status = status;
    if (error != NULL) {
        read->error = *error;
    }
    read->done = true;
    pthread_cond_signal(&read->done_changed);
    pthread_mutex_unlock(&read->mutex);
}

/* Send the call and wait for all of its answer. The deadline of the entry bounds the wait. */
static aster_status perform(struct remote *remote, struct remote_read *read, struct aster_error *error)
{
    struct remote_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a request to the grantor");
    }
    entry->remote = remote;
    entry->read = read;
    entry->deadline_ns = aster_add_saturated(aster_clock_now_ns(&remote->clock), READ_TIMEOUT_NS);
    read->done = read->no_memory = false;
    remote_read_restart(read);
    aster_status status = remote_enqueue(remote, entry, error);
    if (status != ASTER_OK) {
        free(entry);
        return status;
    }
    pthread_mutex_lock(&read->mutex);
    while (!read->done) {
        pthread_cond_wait(&read->done_changed, &read->mutex);
    }
    pthread_mutex_unlock(&read->mutex);
    if (read->status != ASTER_OK && error != NULL) {
        *error = read->error;
    }
    if (read->status == ASTER_OK && read->no_memory) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the grantor's answer");
    }
    return read->status;
}

static aster_status read_init(struct remote_read *read, struct aster_scratch *scratch, struct aster_error *error)
{
    memset(read, 0, sizeof *read);
    read->last = &read->first;
    scratch->data = malloc(ASTER_SCRATCH_SIZE);
    scratch->size = ASTER_SCRATCH_SIZE;
    if (scratch->data == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the grantor's answer");
    }
    pthread_mutex_init(&read->mutex, NULL);
    pthread_cond_init(&read->done_changed, NULL);
    return ASTER_OK;
}

static void read_fini(struct remote_read *read, struct aster_scratch *scratch)
{
    remote_read_restart(read);
    pthread_cond_destroy(&read->done_changed);
    pthread_mutex_destroy(&read->mutex);
    free(scratch->data);
}

static aster_status decode(const struct message *message, struct aster_scratch *scratch, struct aster_answer *answer,
                           struct aster_error *error)
{
    scratch->used = 0;
    return aster_answer_decode((struct aster_bytes){message->payload, message->size}, scratch, answer, error);
}

/* What a list has shown so far. */
struct showing {
    aster_visit_row visit;
    void *user;
    size_t limit; /* 0 = none */
    size_t shown;
};

/* One page. *after is where the next one begins; it borrows from `name`. */
static aster_status list_page(struct remote *remote, struct remote_read *read, struct aster_scratch *scratch,
                              struct showing *showing, char name[ASTER_RESOURCE_MAX], bool *more,
                              struct aster_error *error)
{
    struct aster_answer answer;
    *more = false;
    aster_status status = perform(remote, read, error);
    if (status == ASTER_OK) {
        status = decode(read->first, scratch, &answer, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    if (answer.kind != ASTER_ANSWER_ROWS) {
        return aster_error_set(error, ASTER_ERR_VERSION,
                               "the grantor answers a listing with something else: update Aster");
    }
    for (size_t i = 0; i < answer.rows.count; i++) {
        if (!showing->visit(&answer.rows.rows[i], showing->user) || ++showing->shown == showing->limit) {
            return ASTER_OK;
        }
    }
    *more = answer.rows.more && answer.rows.count > 0;
    if (*more) {
        struct aster_bytes last = answer.rows.rows[answer.rows.count - 1].resource;
        memcpy(name, last.data, last.size);
        read->call.list.after = (struct aster_bytes){name, last.size};
    }
    return ASTER_OK;
}

aster_status remote_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                         struct aster_error *error)
{
    struct remote_read read;
    struct showing showing = {visit, user, query->limit, 0};
    struct aster_scratch scratch = {NULL, 0, 0};
    char name[ASTER_RESOURCE_MAX];
    bool more = true;
    aster_status status = read_init(&read, &scratch, error);
    if (status != ASTER_OK) {
        return status;
    }
    read.call.kind = ASTER_CALL_LIST;
    read.call.list.prefix = query->prefix;
    read.call.list.after = query->after;
    while (status == ASTER_OK && more) {
        size_t left = query->limit > 0 ? query->limit - showing.shown : 0;
        read.call.list.limit = left < ASTER_WIRE_ROWS_MAX ? (uint32_t)left : 0; /* 0 = as many as fit */
        status = list_page(self, &read, &scratch, &showing, name, &more, error);
    }
    read_fini(&read, &scratch);
    return status;
}

/* What a history has told so far. */
struct telling {
    aster_visit_event visit;
    void *user;
    size_t limit; /* 0 = none */
    size_t told;
    bool ended;       /* the visitor has seen enough, or the grantor has no more */
    int64_t revision; /* else: ask again after it */
};

static void tell(struct telling *telling, const struct aster_answer *answer)
{
    telling->ended = !answer->events.more && !answer->events.cut;
    telling->revision = answer->events.revision;
    for (size_t i = 0; i < answer->events.count; i++) {
        if (!telling->visit(&answer->events.events[i], telling->user) || ++telling->told == telling->limit) {
            telling->ended = true;
            return;
        }
    }
}

static aster_status visit_events(const struct remote_read *read, struct aster_scratch *scratch, struct telling *telling,
                                 struct aster_error *error)
{
    telling->ended = false;
    for (const struct message *message = read->first; message != NULL && !telling->ended; message = message->next) {
        struct aster_answer answer;
        aster_status status = decode(message, scratch, &answer, error);
        if (status != ASTER_OK) {
            return status;
        }
        if (answer.kind != ASTER_ANSWER_EVENTS) {
            return aster_error_set(error, ASTER_ERR_VERSION,
                                   "the grantor answers a history with something else: update Aster");
        }
        tell(telling, &answer);
    }
    return ASTER_OK;
}

aster_status remote_history(void *self, const struct aster_history_query *query, aster_visit_event visit, void *user,
                            struct aster_error *error)
{
    struct remote_read read;
    struct aster_scratch scratch = {NULL, 0, 0};
    struct telling telling = {visit, user, query->limit, 0, false, query->after_revision};
    aster_status status = read_init(&read, &scratch, error);
    if (status != ASTER_OK) {
        return status;
    }
    read.call.kind = ASTER_CALL_HISTORY;
    read.call.events.resource = query->resource;
    read.call.events.limit = query->limit < UINT32_MAX ? (uint32_t)query->limit : UINT32_MAX;
    while (status == ASTER_OK && !telling.ended) {
        int64_t after = read.call.events.after_revision = telling.revision;
        status = perform(self, &read, error);
        if (status == ASTER_OK) {
            status = visit_events(&read, &scratch, &telling, error);
        }
        read.call.events.limit = 0; /* the newest were chosen by the first question */
        telling.ended = telling.ended || telling.revision <= after;
    }
    read_fini(&read, &scratch);
    return status;
}

aster_status remote_nodes_ask(struct aster_serializer *serializer, const struct aster_call *call,
                              void (*visit)(const struct aster_answer *answer, void *user), void *user,
                              struct aster_error *error)
{
    struct remote_read read;
    struct aster_scratch scratch = {NULL, 0, 0};
    struct aster_answer answer;
    struct remote *remote = remote_of(serializer);
    enum aster_answer_kind wanted = call->kind == ASTER_CALL_NODE_LIST ? ASTER_ANSWER_NODES : ASTER_ANSWER_CHANGED;
    if (remote == NULL) {
        return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                               "only grantors admit nodes: name one, aster://ID@HOST:PORT");
    }
    aster_status status = read_init(&read, &scratch, error);
    if (status != ASTER_OK) {
        return status;
    }
    read.call = *call;
    status = perform(remote, &read, error);
    if (status == ASTER_OK) {
        status = decode(read.first, &scratch, &answer, error);
    }
    if (status == ASTER_OK && answer.kind != wanted) {
        status = aster_error_set(error, ASTER_ERR_VERSION,
                                 "the grantor answers an order about nodes with something else: update Aster");
    }
    if (status == ASTER_OK) {
        visit(&answer, user);
    }
    read_fini(&read, &scratch);
    return status;
}
