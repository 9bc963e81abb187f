/* The one door to every serializer: reference counts, the check for fork() and the guard against re-entry live here, so
 * that no back end can forget them. */
#include "aster/sys/serializer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/options.h"
#include "platform/fork.h"

#define DESTROY_WAIT_MS 10000

struct aster_serializer {
    struct aster_serializer_ops ops;
    const struct aster_serializer_ops *origin; /* identifies the kind for aster_serializer_self() */
    void *self;
    struct aster_clock clock;
    uint64_t generation;
    _Atomic(bool) closed;
    _Atomic(size_t) references;
};

/* The serializers whose mutation runs on this thread right now, innermost first. */
struct nesting {
    const struct aster_serializer *serializer;
    const struct nesting *outer;
};

/* initial-exec: one load in front of every fenced write instead of a call into the dynamic loader. */
static _Thread_local const struct nesting *innermost __attribute__((tls_model("initial-exec")));

static aster_status missing(const char *slot, struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_INVALID,
                           "serializer vtable has no %s: fill in name, submit, close, wait and destroy", slot);
}

static aster_status check_ops(const struct aster_serializer_ops *ops, struct aster_error *error)
{
    if (ops->name == NULL) {
        return missing("name", error);
    }
    if (ops->submit == NULL) {
        return missing("submit", error);
    }
    if (ops->close == NULL) {
        return missing("close", error);
    }
    if (ops->wait == NULL) {
        return missing("wait", error);
    }
    return ops->destroy == NULL ? missing("destroy", error) : ASTER_OK;
}

aster_status aster_serializer_create(const struct aster_serializer_ops *ops, void *self,
                                     const struct aster_clock *clock, struct aster_serializer **serializer,
                                     struct aster_error *error)
{
    struct aster_serializer_ops known = {0};
    size_t size = ops->struct_size < sizeof known ? ops->struct_size : sizeof known;
    memcpy(&known, ops, size);
    aster_status status = check_ops(&known, error);
    if (status != ASTER_OK) {
        return status;
    }
    uint64_t generation = aster_fork_generation(error);
    if (generation == 0) {
        return ASTER_ERR_IO;
    }
    struct aster_serializer *made = malloc(sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a serializer");
    }
    made->ops = known;
    made->origin = ops;
    made->self = self;
    made->clock = clock != NULL ? *clock : *aster_clock_system();
    made->generation = generation;
    atomic_init(&made->closed, false);
    atomic_init(&made->references, 1);
    *serializer = made;
    return ASTER_OK;
}

struct aster_serializer *aster_serializer_ref(struct aster_serializer *serializer)
{
    atomic_fetch_add_explicit(&serializer->references, 1, memory_order_relaxed);
    return serializer;
}

void aster_serializer_unref(struct aster_serializer *serializer)
{
    /* A child has copies of locks that nobody will unlock and of threads that do not run: it touches nothing. */
    if (serializer == NULL || !aster_fork_is_same(serializer->generation)) {
        return;
    }
    if (atomic_fetch_sub_explicit(&serializer->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    serializer->ops.close(serializer->self);
    serializer->ops.destroy(serializer->self);
    free(serializer);
}

void aster_serializer_close(struct aster_serializer *serializer)
{
    if (aster_fork_is_same(serializer->generation)) {
        atomic_store(&serializer->closed, true);
        serializer->ops.close(serializer->self);
    }
}

void aster_serializer_destroy(struct aster_serializer *serializer)
{
    if (serializer == NULL || !aster_fork_is_same(serializer->generation)) {
        return;
    }
    aster_serializer_close(serializer);
    serializer->ops.wait(serializer->self, DESTROY_WAIT_MS);
    aster_serializer_unref(serializer);
}

static bool is_inside(const struct aster_serializer *serializer)
{
    const struct nesting *at = innermost;
    while (at != NULL && at->serializer != serializer) {
        at = at->outer;
    }
    return at != NULL;
}

static aster_status refuse(const struct aster_serializer *serializer, struct aster_error *error)
{
    if (serializer == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID, "there is no serializer (NULL): was opening it refused?");
    }
    if (!aster_fork_is_same(serializer->generation)) {
        return aster_error_set(error, ASTER_ERR_FORKED,
                               "this %s serializer belongs to the parent process: open another one after fork()",
                               serializer->ops.name);
    }
    if (!is_inside(serializer)) {
        return aster_error_set(error, ASTER_ERR_CLOSED, "the %s serializer is closed: nothing was applied",
                               serializer->ops.name);
    }
    return aster_error_set(error, ASTER_ERR_REENTRANT,
                           "called from inside a mutation of the same %s serializer: return from the mutation first",
                           serializer->ops.name);
}

static inline bool is_usable(const struct aster_serializer *serializer)
{
    return serializer != NULL && aster_fork_is_same(serializer->generation) &&
           (innermost == NULL || !is_inside(serializer));
}

/* For what runs on the calling thread; requests are answered by the back end, which knows what it still has to. */
static inline bool is_open(const struct aster_serializer *serializer)
{
    return is_usable(serializer) && !atomic_load_explicit(&serializer->closed, memory_order_relaxed);
}

static aster_status unsupported(const struct aster_serializer *serializer, const char *slot, struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED, "the %s serializer does not offer %s", serializer->ops.name,
                           slot);
}

void aster_serializer_submit(struct aster_serializer *serializer, struct aster_request *request)
{
    if (!is_usable(serializer)) {
        struct aster_error error;
        aster_status status = refuse(serializer, &error);
        request->complete(request, status, NULL, &error);
        return;
    }
    serializer->ops.submit(serializer->self, request);
}

void aster_serializer_submit_many(struct aster_serializer *serializer, struct aster_request **requests, size_t count)
{
    if (serializer->ops.submit_many != NULL && is_usable(serializer)) {
        serializer->ops.submit_many(serializer->self, requests, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        aster_serializer_submit(serializer, requests[i]);
    }
}

void aster_serializer_cancel(struct aster_serializer *serializer, struct aster_request *request)
{
    if (serializer->ops.cancel != NULL && is_usable(serializer)) {
        serializer->ops.cancel(serializer->self, request);
    }
}

struct guarded {
    const struct aster_serializer *serializer;
    aster_mutation mutation;
    void *user;
};

/* "Inside" is the user's code only: what a serializer does before and after it may well submit. */
static aster_status run_guarded(void *tx, void *user)
{
    const struct guarded *guarded = user;
    const struct nesting frame = {guarded->serializer, innermost};
    innermost = &frame;
    aster_status status = guarded->mutation(tx, guarded->user);
    innermost = frame.outer;
    return status;
}

aster_status aster_mutate_fenced(struct aster_serializer *serializer, const struct aster_fence *fence,
                                 struct aster_bytes writer, aster_mutation mutation, void *user,
                                 struct aster_verdict *verdict, struct aster_error *error)
{
    if (!is_open(serializer)) {
        return refuse(serializer, error);
    }
    if (serializer->ops.mutate_fenced == NULL) {
        return unsupported(serializer, "a fenced write", error);
    }
    if (fence == NULL) { /* what aster_lease_fence() gives to a holder that must not act */
        *verdict = (struct aster_verdict){ASTER_REASON_NO_FENCE, 0, 0};
        return ASTER_OK;
    }
    if (fence->epoch < 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "epoch of the fence is %" PRId64 ": it must be 0 or more",
                               fence->epoch);
    }
    struct guarded guarded = {serializer, mutation, user};
    return serializer->ops.mutate_fenced(serializer->self, fence, writer, run_guarded, &guarded, verdict, error);
}

/* A page of a serializer that knows only whole lists. */
struct paging {
    const struct aster_list_query *query;
    aster_visit_row visit;
    void *user;
    size_t count;
};

static bool visit_page(const struct aster_snapshot *row, void *user)
{
    struct paging *paging = user;
    if (aster_bytes_compare(row->resource, paging->query->after) <= 0) {
        return true;
    }
    return paging->visit(row, paging->user) && ++paging->count != paging->query->limit;
}

aster_status aster_list_page(struct aster_serializer *serializer, const struct aster_list_query *query,
                             aster_visit_row visit, void *user, struct aster_error *error)
{
    if (!is_open(serializer)) {
        return refuse(serializer, error);
    }
    struct aster_list_query known = ASTER_LIST_QUERY_INIT;
    aster_status status = aster_options_read(&known, query, "ASTER_LIST_QUERY_INIT", error);
    if (status != ASTER_OK) {
        return status;
    }
    if (serializer->ops.list_page != NULL) {
        return serializer->ops.list_page(serializer->self, &known, visit, user, error);
    }
    if (serializer->ops.list == NULL) {
        return unsupported(serializer, "a list of its rows", error);
    }
    struct paging paging = {&known, visit, user, 0};
    return serializer->ops.list(serializer->self, known.prefix, visit_page, &paging, error);
}

aster_status aster_list(struct aster_serializer *serializer, struct aster_bytes prefix, aster_visit_row visit,
                        void *user, struct aster_error *error)
{
    struct aster_list_query query = ASTER_LIST_QUERY_INIT;
    query.prefix = prefix;
    return aster_list_page(serializer, &query, visit, user, error);
}

aster_status aster_history(struct aster_serializer *serializer, const struct aster_history_query *query,
                           aster_visit_event visit, void *user, struct aster_error *error)
{
    if (!is_open(serializer)) {
        return refuse(serializer, error);
    }
    if (serializer->ops.history == NULL) {
        return unsupported(serializer, "a history", error);
    }
    struct aster_history_query known = ASTER_HISTORY_QUERY_INIT;
    aster_status status = aster_options_read(&known, query, "ASTER_HISTORY_QUERY_INIT", error);
    return status == ASTER_OK ? serializer->ops.history(serializer->self, &known, visit, user, error) : status;
}

const char *aster_serializer_name(const struct aster_serializer *serializer)
{
    return serializer->ops.name;
}

uint32_t aster_serializer_traits_of(const struct aster_serializer *serializer)
{
    return serializer->ops.traits;
}

const struct aster_clock *aster_serializer_clock(const struct aster_serializer *serializer)
{
    return &serializer->clock;
}

void *aster_serializer_self(struct aster_serializer *serializer, const struct aster_serializer_ops *ops)
{
    return serializer->origin == ops ? serializer->self : NULL;
}
