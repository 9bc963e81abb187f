#include "grantor/registrar.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "grantor/changes_file.h"
#include "grantor/leases.h"
#include "grantor/log.h"
#include "grantor/session.h"
#include "platform/thread.h"

#define SWEEPS_MAX 8 /* after the first: whoever acquired while its admission was withdrawn */

struct grantor_registrar {
    struct grantor_registrar_options options;
    struct grantor_changes_file file; /* under `changing` */
    struct aster_scratch scratch;     /* the thread's */
    pthread_t thread;
    pthread_mutex_t changing; /* held from reading what counts until the change counts */
    pthread_mutex_t lock;
    pthread_cond_t ordered;
    struct grantor_order *orders; /* under the lock from here on */
    struct grantor_order **orders_end;
    bool stopping;
};

/* What one order has come to. Under `changing`. */
struct work {
    struct grantor_registrar *registrar;
    struct grantor_order *order;
    struct aster_call call;
    struct grantor_overlay *overlay; /* what shall count; NULL = it is so already */
    bool drafted;
};

static aster_status understand(struct work *work)
{
    struct grantor_order *order = work->order;
    struct aster_scratch *scratch = &work->registrar->scratch;
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    uint64_t id;
    scratch->used = 0;
    if (!grantor_admission_is_operator(order->state->admission, order->actor)) { /* any more */
        return aster_error_set(&order->error, ASTER_ERR_REFUSED,
                               "UNAUTHORIZED: this needs a role that this identity does not have");
    }
    return aster_call_decode(order->request, order->actor, &limits, scratch, &work->call, &id, &order->error);
}

static aster_status draft(struct work *work)
{
    struct grantor_order *order = work->order;
    aster_status status = grantor_admission_change(order->state->admission, &work->call, &work->overlay, &order->error);
    if (status == ASTER_OK && work->overlay != NULL) {
        status = grantor_changes_file_draft(&work->registrar->file, work->overlay, &order->error);
        work->drafted = status == ASTER_OK;
    }
    return status;
}

/* Is every lease to be taken away from the node? */
static bool fences(const struct work *work)
{
    return work->call.kind == ASTER_CALL_NODE_REMOVE && work->call.node.revoke;
}

static aster_status fence(struct work *work)
{
    struct grantor_order *order = work->order;
    return grantor_leases_revoke(order->state, order->node, order->actor, &order->revoked, &order->error);
}

static aster_status run_apply(void *argument)
{
    struct work *work = argument;
    const struct grantor_registrar_options *options = &work->registrar->options;
    work->order->links_ended = options->apply(work->overlay, options->user);
    work->overlay = NULL;
    return ASTER_OK;
}

static aster_status run_nothing(void *argument)
{
    (void)argument;
    return ASTER_OK;
}

static aster_status place(struct work *work)
{
    struct grantor_order *order = work->order;
    struct aster_error cause = ASTER_ERROR_INIT;
    aster_status status = grantor_changes_file_place(&work->registrar->file, &cause);
    work->drafted = false;
    if (status != ASTER_OK) {
        return aster_error_set(&order->error, status, "%s%.380s; %s",
                               order->revoked > 0 ? "its leases were revoked, but " : "", cause.message,
                               "admission is as before");
    }
    aster_loop_call(order->state->loop, run_apply, work);
    aster_loop_call(order->state->loop, run_nothing, NULL); /* the links that it ended are gone with that round */
    order->changed = true;
    return ASTER_OK;
}

/* Whoever acquired between the first sweep and the end of its links. */
static aster_status fence_rest(struct work *work)
{
    struct grantor_order *order = work->order;
    struct aster_error cause = ASTER_ERROR_INIT;
    uint64_t before = order->revoked + 1;
    aster_status status = ASTER_OK;
    for (int i = 0; status == ASTER_OK && order->revoked != before && i < SWEEPS_MAX; i++) {
        before = order->revoked;
        status = grantor_leases_revoke(order->state, order->node, order->actor, &order->revoked, &cause);
    }
    return status == ASTER_OK
               ? status
               : aster_error_set(&order->error, status, "it is no longer admitted, but %.400s", cause.message);
}

/* Advisory: not knowing it is no reason to fail. */
static void count_held(struct work *work)
{
    struct grantor_order *order = work->order;
    struct grantor_leases leases = {0, 0};
    if (work->call.kind != ASTER_CALL_REQUIRE &&
        grantor_leases_count(order->state, order->node, &leases, NULL) == ASTER_OK) {
        order->held = leases.count;
        order->held_ns = leases.remaining_ns;
    }
}

static aster_status carry_out(struct work *work)
{
    aster_status status = understand(work);
    if (status == ASTER_OK) {
        status = draft(work); /* first of all: with it on disk the rest can hardly fail */
    }
    if (status == ASTER_OK && fences(work)) {
        status = fence(work);
    }
    if (status == ASTER_OK && work->drafted) {
        status = place(work);
    }
    if (status == ASTER_OK && fences(work)) {
        status = fence_rest(work);
    }
    if (work->drafted) {
        grantor_changes_file_discard(&work->registrar->file);
    }
    grantor_overlay_destroy(work->overlay);
    if (status == ASTER_OK) {
        count_held(work);
    }
    return status;
}

static void tell(const struct grantor_order *order)
{
    struct grantor_line line;
    grantor_line_init(&line, order->status == ASTER_OK ? GRANTOR_INFO : GRANTOR_WARNING,
                      order->status == ASTER_OK ? grantor_order_name(order->kind) : "order-refused");
    if (order->status != ASTER_OK) {
        grantor_line_text(&line, "order", grantor_order_name(order->kind));
        grantor_line_text(&line, "error", order->error.message);
    }
    grantor_line_bytes(&line, "actor", order->actor);
    if (order->kind == ASTER_CALL_REQUIRE) {
        grantor_line_text(&line, "verb", aster_verb_name(order->verb));
    } else {
        grantor_line_bytes(&line, "node", order->node);
    }
    grantor_line_number(&line, "changed", order->changed);
    grantor_line_number(&line, "links_ended", order->links_ended);
    grantor_line_number(&line, "revoked", (int64_t)order->revoked);
    grantor_line_number(&line, "held", (int64_t)order->held);
    grantor_line_end(&line);
}

static void run_back(struct aster_task *task)
{
    grantor_session_ordered((struct grantor_order *)(void *)task);
}

static void perform(struct grantor_registrar *registrar, struct grantor_order *order)
{
    struct work work = {.registrar = registrar, .order = order};
    pthread_mutex_lock(&registrar->changing);
    order->status = carry_out(&work);
    pthread_mutex_unlock(&registrar->changing);
    tell(order);
    order->task.run = run_back;
    aster_loop_post(order->state->loop, &order->task);
}

/* The next order; NULL at the end. */
static struct grantor_order *await_order(struct grantor_registrar *registrar)
{
    pthread_mutex_lock(&registrar->lock);
    while (registrar->orders == NULL && !registrar->stopping) {
        pthread_cond_wait(&registrar->ordered, &registrar->lock);
    }
    struct grantor_order *order = registrar->orders;
    if (order != NULL) {
        registrar->orders = order->next;
        registrar->orders_end = order->next == NULL ? &registrar->orders : registrar->orders_end;
    }
    pthread_mutex_unlock(&registrar->lock);
    return order;
}

static void *run(void *argument)
{
    struct grantor_registrar *registrar = argument;
    struct grantor_order *order;
    while ((order = await_order(registrar)) != NULL) {
        perform(registrar, order);
    }
    return NULL;
}

static void release(struct grantor_registrar *registrar)
{
    grantor_changes_file_fini(&registrar->file);
    pthread_cond_destroy(&registrar->ordered);
    pthread_mutex_destroy(&registrar->lock);
    pthread_mutex_destroy(&registrar->changing);
    free(registrar->scratch.data);
    free(registrar);
}

aster_status grantor_registrar_create(const struct grantor_registrar_options *options, const char *path,
                                      struct grantor_registrar **registrar, struct aster_error *error)
{
    struct grantor_registrar *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the registrar");
    }
    made->options = *options;
    made->orders_end = &made->orders;
    pthread_mutex_init(&made->changing, NULL);
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->ordered, NULL);
    made->scratch = (struct aster_scratch){malloc(ASTER_SCRATCH_SIZE), ASTER_SCRATCH_SIZE, 0};
    int code = made->scratch.data != NULL && grantor_changes_file_init(&made->file, path) ? 0 : ENOMEM;
    if (code == 0) {
        code = aster_thread_start(&made->thread, run, made);
    }
    if (code != 0) {
        release(made);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "the registrar's thread cannot be started");
    }
    *registrar = made;
    return ASTER_OK;
}

void grantor_registrar_destroy(struct grantor_registrar *registrar)
{
    if (registrar == NULL) {
        return;
    }
    pthread_mutex_lock(&registrar->lock);
    registrar->stopping = true;
    pthread_cond_signal(&registrar->ordered);
    pthread_mutex_unlock(&registrar->lock);
    pthread_join(registrar->thread, NULL);
    release(registrar);
}

void grantor_registrar_submit(struct grantor_registrar *registrar, struct grantor_order *order)
{
    order->next = NULL;
    pthread_mutex_lock(&registrar->lock);
    *registrar->orders_end = order;
    registrar->orders_end = &order->next;
    pthread_cond_signal(&registrar->ordered);
    pthread_mutex_unlock(&registrar->lock);
}

aster_status grantor_registrar_hold(struct grantor_registrar *registrar, const struct grantor_settings *settings,
                                    struct grantor_overlay **overlay, struct aster_error *error)
{
    pthread_mutex_lock(&registrar->changing);
    aster_status status = grantor_changes_file_read(&registrar->file, settings, overlay, error);
    if (status != ASTER_OK) {
        pthread_mutex_unlock(&registrar->changing);
    }
    return status;
}

void grantor_registrar_go_on(struct grantor_registrar *registrar)
{
    pthread_mutex_unlock(&registrar->changing);
}
