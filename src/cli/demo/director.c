#include "cli/demo/director.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/narrator.h"
#include "cli/demo/process.h"
#include "cli/demo/signals.h"
#include "cli/demo/worker.h"

#define STEP_TIMEOUT_MS 15000 /* on one step of the choreography; generous, for busy machines */
#define LOOK_MS 20
#define LINGER_MS 300 /* B's invoice stays alone in the store for as long as a person needs to see it */

const char *const aster_demo_identity[DEMO_WORKERS] = {"worker-A", "worker-B"};

struct director {
    const struct demo_script *script;
    struct demo_act *act;
    struct demo_facts *facts;
    struct aster_error *error;
    struct demo_process process[DEMO_WORKERS];
    bool closed[DEMO_WORKERS]; /* its messages have ended */
    sqlite3 *db;
};

/* A grantor knows the workers by their keys; people do not. */
static void name_worker(const struct director *director, struct demo_message *message)
{
    for (int i = 0; i < DEMO_WORKERS; i++) {
        const char *holder = director->script->holder[i];
        if (holder != NULL && strcmp(message->text, holder) == 0) {
            snprintf(message->text, sizeof message->text, "%s", aster_demo_identity[i]);
        }
    }
}

static void hear(struct director *director, enum demo_worker worker)
{
    struct demo_message message;
    enum demo_listen result;
    while ((result = aster_demo_process_listen(&director->process[worker], &message)) == DEMO_LISTEN_MESSAGE) {
        name_worker(director, &message);
        director->facts->heard[worker][message.kind] = true;
        director->facts->said[worker][message.kind] = message;
        aster_demo_narrate(director->act, director->script, director->facts, worker, &message);
    }
    director->closed[worker] = result == DEMO_LISTEN_CLOSED;
}

/* Wait a moment for messages, show what is new. */
static aster_status look(struct director *director)
{
    struct pollfd fds[DEMO_WORKERS];
    for (int i = 0; i < DEMO_WORKERS; i++) {
        fds[i] = (struct pollfd){director->closed[i] ? -1 : director->process[i].from_fd, POLLIN, 0};
    }
    aster_demo_signals_poll(fds, DEMO_WORKERS, LOOK_MS);
    if (aster_demo_signal() != 0) {
        return aster_error_set(director->error, ASTER_ERR_CANCELLED, "interrupted by signal %d", aster_demo_signal());
    }
    for (int i = 0; i < DEMO_WORKERS; i++) {
        if (director->process[i].from_fd >= 0 && !director->closed[i]) {
            hear(director, (enum demo_worker)i);
        }
    }
    if (director->script->show != NULL) {
        director->script->show(director->act, director->script->show_user);
    }
    return ASTER_OK;
}

/* Wait until the worker has said `kind` or, when it is another, `or_kind`. */
static aster_status await_either(struct director *director, enum demo_worker worker, enum demo_message_kind kind,
                                 enum demo_message_kind or_kind)
{
    int64_t until_ns = aster_demo_now_ns() + aster_ms_to_ns(STEP_TIMEOUT_MS);
    const bool *heard = director->facts->heard[worker];
    while (!heard[kind] && !heard[or_kind]) {
        const char *name = aster_demo_message_name(kind);
        if (heard[DEMO_SAYS_FAILED]) {
            return aster_error_set(director->error, ASTER_ERR_IO, "%s failed before \"%s\": %s",
                                   aster_demo_identity[worker], name,
                                   director->facts->said[worker][DEMO_SAYS_FAILED].text);
        }
        if (director->closed[worker]) {
            return aster_error_set(director->error, ASTER_ERR_CLOSED, "%s ended before \"%s\"",
                                   aster_demo_identity[worker], name);
        }
        if (aster_demo_now_ns() > until_ns) {
            return aster_error_set(director->error, ASTER_ERR_TIMEOUT, "%s did not get to \"%s\" within %d ms",
                                   aster_demo_identity[worker], name, STEP_TIMEOUT_MS);
        }
        aster_status status = look(director);
        if (status != ASTER_OK) {
            return status;
        }
    }
    return ASTER_OK;
}

static aster_status await(struct director *director, enum demo_worker worker, enum demo_message_kind kind)
{
    return await_either(director, worker, kind, kind);
}

static aster_status start(struct director *director, enum demo_worker worker)
{
    const struct demo_script *script = director->script;
    char ttl[24];
    char step[24];
    snprintf(ttl, sizeof ttl, "%" PRId64, script->ttl_ms);
    snprintf(step, sizeof step, "%" PRId64, script->step_ms[worker]);
    char *arguments[] = {"aster",
                         "demo",
                         DEMO_WORKER_OPERAND,
                         (char *)script->mode,
                         (char *)aster_demo_identity[worker],
                         (char *)script->database,
                         ttl,
                         step,
                         (char *)script->pdf[worker],
                         (char *)(script->grantor[worker] != NULL ? script->grantor[worker] : ""),
                         (char *)(script->node[worker] != NULL ? script->node[worker] : ""),
                         NULL};
    return aster_demo_process_start(&director->process[worker], arguments, director->error);
}

static aster_status begin_incident(struct director *director)
{
    const struct demo_incident *incident = director->script->incident;
    for (;;) {
        aster_status status = incident->begin(incident->user, &director->process[DEMO_WORKER_A], director->db,
                                              &director->facts->interrupted, director->error);
        if (status != ASTER_OK || director->facts->interrupted) {
            return status;
        }
        status = look(director);
        if (status != ASTER_OK) {
            return status;
        }
    }
}

static aster_status read_store(struct director *director, struct demo_stored *stored)
{
    const struct demo_incident *incident = director->script->incident;
    return incident->read(incident->user, director->db, stored, director->error);
}

static aster_status correct_order(struct director *director)
{
    struct demo_invoice order;
    aster_status status = aster_demo_store_correct_order(director->db, director->error);
    if (status == ASTER_OK) {
        status = aster_demo_store_read_order(director->db, &order, director->error);
    }
    if (status == ASTER_OK) {
        director->facts->order_total_cents = aster_demo_invoice_total_cents(&order);
        char money[DEMO_MONEY_MAX];
        aster_demo_act_add(director->act, aster_demo_now_ns(), DEMO_LANE_STORE, DEMO_MARK_NOTE, 0,
                           "the customer corrects the order: it is now EUR %s",
                           aster_demo_money(director->facts->order_total_cents, money));
    }
    return status;
}

static aster_status first_gets_ready(struct director *director)
{
    aster_status status = start(director, DEMO_WORKER_A);
    if (status == ASTER_OK) {
        status = await(director, DEMO_WORKER_A, DEMO_SAYS_GRANTED);
    }
    if (status == ASTER_OK) {
        status = start(director, DEMO_WORKER_B);
    }
    if (status == ASTER_OK) {
        status = await(director, DEMO_WORKER_B, DEMO_SAYS_WAITING);
    }
    if (status == ASTER_OK) {
        status = await(director, DEMO_WORKER_A, DEMO_SAYS_ARMED);
    }
    return status;
}

static aster_status second_takes_over(struct director *director)
{
    aster_status status = await(director, DEMO_WORKER_B, DEMO_SAYS_GRANTED);
    if (status == ASTER_OK) {
        status = await(director, DEMO_WORKER_B, DEMO_SAYS_ARMED);
    }
    if (status == ASTER_OK) {
        status = aster_demo_process_tell(&director->process[DEMO_WORKER_B], DEMO_COMMAND_WRITE, director->error);
    }
    if (status == ASTER_OK) {
        status = await_either(director, DEMO_WORKER_B, DEMO_SAYS_PUBLISHED, DEMO_SAYS_REJECTED);
    }
    if (status == ASTER_OK) {
        status = read_store(director, &director->facts->before);
    }
    return status;
}

/* A goes on, and its write is on the way: it learns by itself that its lease is over. */
static aster_status first_is_cut_off(struct director *director)
{
    aster_status status =
        aster_demo_process_tell(&director->process[DEMO_WORKER_A], DEMO_COMMAND_WRITE, director->error);
    if (status == ASTER_OK) {
        status = await_either(director, DEMO_WORKER_A, DEMO_SAYS_ENDED, DEMO_SAYS_PUBLISHED);
    }
    if (status == ASTER_OK && director->facts->heard[DEMO_WORKER_A][DEMO_SAYS_PUBLISHED]) {
        status = aster_error_set(director->error, ASTER_ERR_IO, "%s's write went through: it was not cut off",
                                 aster_demo_identity[DEMO_WORKER_A]);
    }
    return status;
}

/* Until the lease has run out, and B's invoice has been there to be seen. */
static aster_status linger(struct director *director, int64_t began_ns)
{
    int64_t lapsed_ns = began_ns + aster_ms_to_ns(director->script->ttl_ms);
    int64_t seen_ns = aster_demo_now_ns() + aster_ms_to_ns(LINGER_MS);
    aster_status status = ASTER_OK;
    while (status == ASTER_OK && aster_demo_now_ns() <= (lapsed_ns > seen_ns ? lapsed_ns : seen_ns)) {
        status = look(director);
    }
    return status;
}

static aster_status end_incident(struct director *director, int64_t began_ns)
{
    const struct demo_incident *incident = director->script->incident;
    struct demo_process *first = &director->process[DEMO_WORKER_A];
    aster_status status = ASTER_OK;
    if (!incident->still_runs) { /* the write is already commanded when A wakes: nothing stands between that and it */
        status = aster_demo_process_tell(first, DEMO_COMMAND_WRITE, director->error);
    }
    if (status == ASTER_OK) {
        int64_t now_ns = aster_demo_now_ns();
        director->facts->interrupted_ms = (now_ns - began_ns) / ASTER_NS_PER_MS;
        aster_demo_narrate_end(director->act, incident, now_ns);
        status = incident->end(incident->user, first, director->error);
    }
    return status;
}

static aster_status interrupt_first(struct director *director)
{
    aster_status status = begin_incident(director);
    int64_t began_ns = aster_demo_now_ns();
    if (status == ASTER_OK) {
        aster_demo_narrate_begin(director->act, director->script->incident, began_ns);
        status = correct_order(director);
    }
    if (status == ASTER_OK && director->script->incident->still_runs) {
        status = first_is_cut_off(director);
    }
    if (status == ASTER_OK) {
        status = second_takes_over(director);
    }
    if (status == ASTER_OK) {
        status = linger(director, began_ns);
    }
    return status == ASTER_OK ? end_incident(director, began_ns) : status;
}

static aster_status first_writes(struct director *director)
{
    aster_status status = await_either(director, DEMO_WORKER_A, DEMO_SAYS_REJECTED, DEMO_SAYS_PUBLISHED);
    if (status == ASTER_OK && director->facts->heard[DEMO_WORKER_A][DEMO_SAYS_REJECTED]) {
        status = await(director, DEMO_WORKER_A, DEMO_SAYS_ENDED);
    }
    if (status == ASTER_OK) {
        status = read_store(director, &director->facts->after);
    }
    return status;
}

static aster_status finish(struct director *director)
{
    aster_status status = ASTER_OK;
    for (int i = 0; i < DEMO_WORKERS && status == ASTER_OK; i++) {
        if (director->facts->heard[i][DEMO_SAYS_PUBLISHED]) {
            status = aster_demo_process_tell(&director->process[i], DEMO_COMMAND_FINISH, director->error);
        }
        if (status == ASTER_OK && director->facts->heard[i][DEMO_SAYS_PUBLISHED]) {
            status = await(director, (enum demo_worker)i, DEMO_SAYS_RELEASED);
        }
    }
    int64_t until_ns = aster_demo_now_ns() + aster_ms_to_ns(STEP_TIMEOUT_MS);
    for (int i = 0; i < DEMO_WORKERS && status == ASTER_OK; i++) {
        while (status == ASTER_OK && !aster_demo_process_reap(&director->process[i])) {
            status = look(director);
            if (status == ASTER_OK && aster_demo_now_ns() > until_ns) {
                status = aster_error_set(director->error, ASTER_ERR_TIMEOUT, "%s did not exit within %d ms",
                                         aster_demo_identity[i], STEP_TIMEOUT_MS);
            }
        }
        director->facts->exit_code[i] = aster_demo_process_exit_code(&director->process[i]);
    }
    return status;
}

aster_status aster_demo_direct(const struct demo_script *script, struct demo_act *act, struct demo_facts *facts,
                               struct aster_error *error)
{
    *facts = (struct demo_facts){.exit_code = {-1, -1}};
    struct director director = {.script = script, .act = act, .facts = facts, .error = error};
    for (int i = 0; i < DEMO_WORKERS; i++) {
        director.process[i] = (struct demo_process)DEMO_PROCESS_INIT;
    }
    aster_status status = aster_demo_store_connect(script->database, &director.db, error);
    if (status == ASTER_OK) {
        status = first_gets_ready(&director);
    }
    if (status == ASTER_OK) {
        status = interrupt_first(&director);
    }
    if (status == ASTER_OK) {
        status = first_writes(&director);
    }
    if (status == ASTER_OK) {
        status = finish(&director);
    }
    for (int i = 0; i < DEMO_WORKERS; i++) {
        aster_demo_process_fini(&director.process[i]);
    }
    sqlite3_close(director.db);
    return status;
}

void aster_demo_facts_fini(struct demo_facts *facts)
{
    aster_demo_stored_fini(&facts->before);
    aster_demo_stored_fini(&facts->after);
}
