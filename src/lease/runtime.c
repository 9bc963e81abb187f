/* The runtime: its threads, its mutex, and the one step that does everything that is due. */
#include "lease/handle.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "platform/entropy.h"
#include "platform/fork.h"
#include "platform/thread.h"

/* Renewals that are due this soon go along with the one that is due now; a 64th of the shortest interval. */
#define BATCH_SLACK_NS INT64_C(1000000)

void lease_runtime_lock(struct aster_runtime *runtime)
{
    pthread_mutex_lock(&runtime->mutex);
}

static struct aster_request *request_of(const struct outbox *outbox, size_t index)
{
    struct aster_lease *lease = outbox->send[index];
    return outbox->is_release[index] ? &lease->release.request : &lease->main.request;
}

/* Move the requests of the first one's serializer from the outbox to `batch`, keeping the order of the others. */
static size_t take_batch(struct outbox *outbox, struct aster_request *batch[OUTBOX_MAX])
{
    const struct aster_serializer *serializer = outbox->send[0]->serializer;
    size_t taken = 0;
    size_t kept = 0;
    for (size_t i = 0; i < outbox->send_count; i++) {
        if (outbox->send[i]->serializer == serializer) {
            batch[taken++] = request_of(outbox, i);
        } else {
            outbox->send[kept] = outbox->send[i];
            outbox->is_release[kept++] = outbox->is_release[i];
        }
    }
    outbox->send_count = kept;
    return taken;
}

/* A request that has been submitted may be answered, and its handle freed, at once: nothing of it is looked at again.
 */
static void submit_all(struct outbox *outbox)
{
    struct aster_request *batch[OUTBOX_MAX];
    while (outbox->send_count > 0) {
        struct aster_serializer *serializer = aster_serializer_ref(outbox->send[0]->serializer);
        size_t count = take_batch(outbox, batch);
        aster_serializer_submit_many(serializer, batch, count);
        aster_serializer_unref(serializer);
    }
}

static void give_back_all(struct aster_runtime *runtime, struct outbox *outbox)
{
    for (size_t i = 0; i < outbox->give_back_count; i++) {
        struct lease_request *request = outbox->give_back[i];
        aster_serializer_cancel(request->lease->serializer, &request->request);
    }
    if (outbox->give_back_count > 0) {
        lease_runtime_lock(runtime);
        for (size_t i = 0; i < outbox->give_back_count; i++) {
            lease_unref(outbox->give_back[i]->lease);
        }
        lease_runtime_unlock_leaving_dead(runtime, NULL);
    }
}

static void free_dead(struct aster_lease *dead)
{
    while (dead != NULL) {
        struct aster_lease *next = dead->next_dead;
        lease_free(dead);
        dead = next;
    }
}

static struct aster_lease *take_dead(struct aster_runtime *runtime)
{
    struct aster_lease *dead = runtime->dead;
    runtime->dead = NULL;
    return dead;
}

/* Locked, because a runtime whose last handle is gone may be freed as soon as it is unlocked. */
static void wake_renewer(struct aster_runtime *runtime)
{
    if (!runtime->is_virtual && !runtime->stopping && runtime->timer_count > 0 &&
        runtime->timers[0]->next_ns < runtime->sleeping_until_ns) {
        runtime->sleeping_until_ns = runtime->timers[0]->next_ns;
        aster_sleeper_wake(&runtime->sleeper);
    }
}

static void release_memory(struct aster_runtime *runtime)
{
    pthread_cond_destroy(&runtime->called);
    pthread_cond_destroy(&runtime->callbacks_changed);
    pthread_mutex_destroy(&runtime->mutex);
    free(runtime->timers);
    free(runtime);
}

/* An orphan is not looked at again once it is unlocked: another thread may free it. */
static void unlock(struct aster_runtime *runtime, struct outbox *outbox, struct aster_lease *dead)
{
    wake_renewer(runtime);
    bool drain = runtime->is_virtual && !runtime->orphaned;
    bool last = runtime->orphaned && runtime->handles == 0;
    pthread_mutex_unlock(&runtime->mutex);
    if (outbox != NULL && outbox->send_count > 0) {
        submit_all(outbox);
    }
    if (outbox != NULL) {
        give_back_all(runtime, outbox);
    }
    free_dead(dead);
    if (drain) {
        pthread_mutex_lock(&runtime->mutex);
        lease_dispatcher_drain(runtime);
        dead = take_dead(runtime);
        pthread_mutex_unlock(&runtime->mutex);
        free_dead(dead);
    }
    if (last) {
        release_memory(runtime);
    }
}

void lease_runtime_unlock(struct aster_runtime *runtime, struct outbox *outbox)
{
    unlock(runtime, outbox, take_dead(runtime));
}

void lease_runtime_unlock_leaving_dead(struct aster_runtime *runtime, struct outbox *outbox)
{
    bool has_threads = !runtime->is_virtual && !runtime->stopping;
    if (has_threads && runtime->dead != NULL) {
        pthread_cond_signal(&runtime->callbacks_changed); /* the dispatcher buries them */
    }
    unlock(runtime, outbox, has_threads ? NULL : take_dead(runtime));
}

static void on_timer(struct aster_lease *lease, int64_t now_ns, struct outbox *outbox)
{
    switch (lease->phase) {
    case PHASE_ACQUIRE:
    case PHASE_CONFIRM:
        lease_acquire_timer(lease, now_ns, outbox);
        break;
    case PHASE_HOLD:
        lease_renew_timer(lease, now_ns, outbox);
        break;
    case PHASE_RELEASE:
        lease_release_timer(lease, now_ns, outbox);
        break;
    case PHASE_ENDED:
        lease_timer_set(lease, NEVER);
        break;
    }
}

static bool is_due(const struct aster_runtime *runtime, int64_t now_ns, bool batching)
{
    if (runtime->timer_count == 0) {
        return false;
    }
    const struct aster_lease *lease = runtime->timers[0];
    bool may_be_early =
        batching && lease->phase == PHASE_HOLD && !lease->main.in_flight && lease->plan.renew_interval_ms >= 64;
    return lease->next_ns <= now_ns + (may_be_early ? BATCH_SLACK_NS : 0);
}

/* Run every timer that is due; the instant of the next one. */
static int64_t step(struct aster_runtime *runtime)
{
    for (;;) {
        struct outbox outbox;
        outbox_init(&outbox);
        lease_runtime_lock(runtime);
        int64_t now_ns = aster_clock_now_ns(runtime->clock);
        bool batching = false;
        while (is_due(runtime, now_ns, batching) && !outbox_is_full(&outbox)) {
            on_timer(runtime->timers[0], now_ns, &outbox);
            batching = outbox.send_count > 0 && !runtime->is_virtual;
        }
        bool more = outbox_is_full(&outbox);
        int64_t next_ns = runtime->timer_count > 0 ? runtime->timers[0]->next_ns : NEVER;
        runtime->sleeping_until_ns = next_ns;
        lease_runtime_unlock_leaving_dead(runtime, &outbox);
        if (!more) {
            return next_ns;
        }
    }
}

static int64_t wake_virtual(void *user)
{
    struct aster_runtime *runtime = user;
    int64_t next_ns = step(runtime);
    lease_runtime_lock(runtime);
    if (runtime->timer_count > 0 && runtime->timers[0]->next_ns < next_ns) {
        next_ns = runtime->timers[0]->next_ns; /* an answer came from inside submit() */
    }
    lease_runtime_unlock(runtime, NULL);
    return next_ns;
}

static void *renewer_main(void *argument)
{
    struct aster_runtime *runtime = argument;
    for (;;) {
        int64_t next_ns = step(runtime);
        lease_runtime_lock(runtime);
        bool stopping = runtime->stopping;
        lease_runtime_unlock_leaving_dead(runtime, NULL);
        if (stopping) {
            return NULL;
        }
        aster_sleeper_sleep(&runtime->sleeper, next_ns);
    }
}

static void stop_threads(struct aster_runtime *runtime, bool renewer, bool dispatcher)
{
    lease_runtime_lock(runtime);
    runtime->stopping = true;
    pthread_cond_broadcast(&runtime->callbacks_changed);
    lease_runtime_unlock(runtime, NULL);
    aster_sleeper_wake(&runtime->sleeper);
    if (renewer) {
        pthread_join(runtime->renewer, NULL);
    }
    if (dispatcher) {
        pthread_join(runtime->dispatcher, NULL);
    }
}

static aster_status start_threads(struct aster_runtime *runtime, struct aster_error *error)
{
    aster_status status = aster_sleeper_init(&runtime->sleeper, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = aster_thread_start(&runtime->renewer, renewer_main, runtime);
    bool renewer = code == 0;
    if (code == 0) {
        code = aster_thread_start(&runtime->dispatcher, lease_dispatcher_main, runtime);
    }
    if (code != 0) {
        stop_threads(runtime, renewer, false);
        aster_sleeper_fini(&runtime->sleeper);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "cannot start the renewing threads");
    }
    return ASTER_OK;
}

static struct aster_runtime *allocate(const struct aster_runtime_options *options, uint64_t generation)
{
    struct aster_runtime *runtime = aster_alloc(sizeof *runtime);
    if (runtime == NULL) {
        return NULL;
    }
    memset(runtime, 0, sizeof *runtime);
    runtime->clock = options->clock != NULL ? options->clock : aster_clock_system();
    runtime->is_virtual = aster_clock_is_virtual(runtime->clock);
    runtime->handles_max = options->handles_max;
    runtime->generation = generation;
    runtime->last_callback = &runtime->first_callback;
    runtime->sleeping_until_ns = NEVER;
    pthread_mutex_init(&runtime->mutex, NULL);
    pthread_cond_init(&runtime->callbacks_changed, NULL);
    pthread_cond_init(&runtime->called, NULL);
    return runtime;
}

aster_status aster_runtime_create(const struct aster_runtime_options *options, struct aster_runtime **runtime,
                                  struct aster_error *error)
{
    struct aster_runtime_options known = ASTER_RUNTIME_OPTIONS_INIT;
    aster_status status = aster_options_read(&known, options, "ASTER_RUNTIME_OPTIONS_INIT", error);
    if (status != ASTER_OK) {
        return status;
    }
    uint64_t generation = aster_fork_generation(error);
    if (generation == 0) {
        return ASTER_ERR_IO;
    }
    struct aster_runtime *made = allocate(&known, generation);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a runtime");
    }
    status = aster_entropy_fill(made->random, sizeof made->random, error);
    if (status == ASTER_OK && made->is_virtual) {
        made->clock->ops->subscribe(made->clock->self, wake_virtual, made);
    } else if (status == ASTER_OK) {
        status = start_threads(made, error);
    }
    if (status != ASTER_OK) {
        release_memory(made);
        return status;
    }
    *runtime = made;
    return ASTER_OK;
}

void aster_runtime_destroy(struct aster_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    if (!aster_fork_is_same(runtime->generation)) {
        return; /* the parent's threads and locks: nothing here can be ended */
    }
    if (runtime->is_virtual) {
        runtime->clock->ops->unsubscribe(runtime->clock->self, runtime);
    } else {
        stop_threads(runtime, true, true);
        aster_sleeper_fini(&runtime->sleeper);
    }
    lease_runtime_lock(runtime);
    lease_dispatcher_drain(runtime); /* destroyed handles get no call, but give their references back */
    runtime->stopping = true;
    runtime->orphaned = true;
    while (runtime->timer_count > 0) {
        lease_timer_set(runtime->timers[0], NEVER);
    }
    lease_runtime_unlock(runtime, NULL); /* frees it, unless a serializer still owes an answer */
}

size_t aster_runtime_handles(const struct aster_runtime *runtime)
{
    struct aster_runtime *mutable_runtime = (struct aster_runtime *)(uintptr_t)runtime;
    pthread_mutex_lock(&mutable_runtime->mutex);
    size_t handles = runtime->handles;
    pthread_mutex_unlock(&mutable_runtime->mutex);
    return handles;
}

aster_status lease_runtime_default(struct aster_runtime **runtime, struct aster_error *error)
{
    static _Atomic(struct aster_runtime *) shared;
    struct aster_runtime *current = atomic_load(&shared);
    if (current != NULL && aster_fork_is_same(current->generation)) {
        *runtime = current;
        return ASTER_OK;
    }
    struct aster_runtime *made = NULL;
    aster_status status = aster_runtime_create(NULL, &made, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (!atomic_compare_exchange_strong(&shared, &current, made)) {
        aster_runtime_destroy(made);
        made = current; /* another thread was first */
    }
    *runtime = made;
    return ASTER_OK;
}

/* splitmix64 over two streams seeded by the kernel: unique, and cheap enough for 100,000 renewals in a burst. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void lease_runtime_random_id(struct aster_runtime *runtime, unsigned char id[ASTER_REQUEST_ID_SIZE])
{
    uint64_t words[2] = {next_random(&runtime->random[0]), next_random(&runtime->random[1]) | 1};
    memcpy(id, words, ASTER_REQUEST_ID_SIZE);
}

int64_t lease_runtime_jitter(struct aster_runtime *runtime, int64_t value)
{
    int64_t quarter = value / 4;
    if (quarter == 0) {
        return value;
    }
    uint64_t span = 2 * (uint64_t)quarter + 1;
    return value - quarter + (int64_t)(next_random(&runtime->random[0]) % span);
}
