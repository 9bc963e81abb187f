#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/options.h"
#include "platform/entropy.h"
#include "serializer/memory/internal.h"

#define STRIPES_MAX 4096
#define POLL_NS 1000000

void aster_memory_close(void *self)
{
    struct memory *memory = self;
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        aster_memory_stripe_close(memory, &memory->stripes[i]);
    }
}

static size_t unanswered(const struct memory *memory)
{
    size_t sum = 0;
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        sum += atomic_load(&memory->stripes[i].unanswered);
    }
    return sum;
}

/* Looking from time to time keeps a lock for this rare moment out of every request's way. */
aster_status aster_memory_wait(void *self, int64_t timeout_ms)
{
    const struct memory *memory = self;
    const struct timespec pause = {0, POLL_NS};
    for (int64_t left_ms = timeout_ms; unanswered(memory) > 0; left_ms--) {
        if (left_ms <= 0) {
            return ASTER_ERR_TIMEOUT;
        }
        nanosleep(&pause, NULL);
    }
    return ASTER_OK;
}

static void release_memory(struct memory *memory)
{
    for (size_t i = 0; memory->stripes != NULL && i <= memory->stripe_mask; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        aster_table_destroy(stripe->table);
        aster_memory_links_fini(&stripe->queues);
        aster_memory_links_fini(&stripe->requests);
        aster_memory_links_fini(&stripe->changes);
        aster_memory_timers_fini(&stripe->timers);
        pthread_mutex_destroy(&stripe->mutex);
    }
    free(memory->stripes);
    aster_memory_history_fini(&memory->history);
    pthread_mutex_destroy(&memory->alarm_mutex);
    free(memory);
}

void aster_memory_destroy(void *self)
{
    struct memory *memory = self;
    aster_memory_alarm_stop(memory);
    release_memory(memory);
}

aster_status aster_memory_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                  void *user, struct aster_error *error)
{
    struct memory *memory = self;
    return aster_memory_history_visit(&memory->history, query, visit, user, error);
}

const struct aster_serializer_ops aster_memory_ops = {
    .struct_size = sizeof aster_memory_ops,
    .name = "memory",
    .traits = ASTER_SERIALIZER_QUEUES_WAITERS,
    .submit = aster_memory_submit,
    .cancel = aster_memory_cancel,
    .close = aster_memory_close,
    .wait = aster_memory_wait,
    .destroy = aster_memory_destroy,
    .mutate_fenced = aster_memory_mutate_fenced,
    .list_page = aster_memory_list,
    .history = aster_memory_history,
};

static aster_status no_memory(struct aster_error *error, size_t stripes)
{
    return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a memory serializer of %zu stripes", stripes);
}

static aster_status create_stripes(struct memory *memory, size_t count, struct aster_error *error)
{
    struct memory_stripe *stripes = aligned_alloc(_Alignof(struct memory_stripe), count * sizeof stripes[0]);
    if (stripes == NULL) {
        return no_memory(error, count);
    }
    memset(stripes, 0, count * sizeof stripes[0]);
    for (size_t i = 0; i < count; i++) {
        pthread_mutex_init(&stripes[i].mutex, NULL);
    }
    memory->stripes = stripes;
    memory->stripe_mask = count - 1;
    /* The bound on rows is the sum's, not a stripe's: see decide.c. */
    struct aster_table_options options = {memory->key, memory->limits, false};
    options.limits.resources_max = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        aster_status status = aster_table_create(&options, &stripes[i].table, error);
        if (status != ASTER_OK) {
            return status;
        }
    }
    return ASTER_OK;
}

static aster_status create(const struct aster_memory_options *options, size_t stripes, struct memory **made,
                           struct aster_error *error)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return no_memory(error, stripes);
    }
    aster_status status = aster_memory_history_init(&memory->history, options->history_max, error);
    if (status != ASTER_OK) {
        free(memory);
        return status;
    }
    pthread_mutex_init(&memory->alarm_mutex, NULL);
    atomic_store(&memory->alarm_at_ns, INT64_MAX);
    memory->clock = options->clock != NULL ? *options->clock : *aster_clock_system();
    memory->limits = options->limits;
    memory->authorize = options->authorize;
    memory->authorize_user = options->authorize_user;
    status = aster_entropy_fill(&memory->key, sizeof memory->key, error);
    if (status == ASTER_OK) {
        status = create_stripes(memory, stripes, error);
    }
    if (status != ASTER_OK) {
        release_memory(memory);
        return status;
    }
    *made = memory;
    return ASTER_OK;
}

aster_status aster_memory_create(const struct aster_memory_options *options, const struct memory_committer *committer,
                                 struct memory **memory, struct aster_error *error)
{
    struct aster_memory_options known = ASTER_MEMORY_OPTIONS_INIT;
    aster_status status = aster_options_read(&known, options, "ASTER_MEMORY_OPTIONS_INIT", error);
    if (status != ASTER_OK) {
        return status;
    }
    if (known.stripes == 0 || known.stripes > STRIPES_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "stripes is %zu: give 1 to %d", known.stripes, STRIPES_MAX);
    }
    size_t stripes = 1;
    while (stripes < known.stripes) {
        stripes *= 2;
    }
    status = create(&known, stripes, memory, error);
    if (status == ASTER_OK && committer != NULL) {
        (*memory)->committer = *committer;
    }
    return status;
}

aster_status aster_memory_open(const struct aster_memory_options *options, struct aster_serializer **serializer,
                               struct aster_error *error)
{
    struct memory *memory = NULL;
    aster_status status = aster_memory_create(options, NULL, &memory, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_serializer_create(&aster_memory_ops, memory, &memory->clock, serializer, error);
    if (status != ASTER_OK) {
        aster_memory_destroy(memory);
    }
    return status;
}

aster_status aster_memory_restart(struct aster_serializer *serializer, struct aster_error *error)
{
    struct memory *memory = aster_serializer_self(serializer, &aster_memory_ops);
    if (memory == NULL) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "a %s serializer is no memory serializer: only that one can be "
                               "restarted in place",
                               aster_serializer_name(serializer));
    }
    for (size_t i = 0; i <= memory->stripe_mask; i++) {
        struct memory_stripe *stripe = &memory->stripes[i];
        struct memory_outbox outbox;
        aster_memory_outbox_init(&outbox);
        aster_memory_stripe_lock(stripe);
        aster_table_restart(stripe->table, aster_clock_now_ns(&memory->clock));
        aster_memory_waiters_answer_all(memory, stripe, ASTER_ERR_CLOSED, &outbox);
        aster_memory_stripe_unlock(memory, stripe);
        aster_memory_outbox_send(stripe, &outbox);
    }
    return ASTER_OK;
}
