/* Callbacks, one after the other, on a thread that renews nothing (with a virtual clock: on the thread that caused
 * them, after everything else). */
#include "lease/handle.h"

void lease_dispatcher_queue(struct aster_lease *lease)
{
    struct aster_runtime *runtime = lease->runtime;
    if (lease->callback_queued) {
        return;
    }
    lease->callback_queued = true;
    lease->references++;
    lease->next_callback = NULL;
    *runtime->last_callback = lease;
    runtime->last_callback = &lease->next_callback;
    pthread_cond_signal(&runtime->callbacks_changed);
}

static struct aster_lease *pop(struct aster_runtime *runtime)
{
    struct aster_lease *lease = runtime->first_callback;
    runtime->first_callback = lease->next_callback;
    if (runtime->first_callback == NULL) {
        runtime->last_callback = &runtime->first_callback;
    }
    lease->callback_queued = false;
    return lease;
}

static void call(struct aster_runtime *runtime, struct aster_lease *lease)
{
    while (lease->change_count > 0 && !lease->destroyed) {
        enum aster_lease_status status = (enum aster_lease_status)lease->changes[0];
        lease->change_count--;
        memmove(lease->changes, lease->changes + 1, lease->change_count);
        runtime->calling = lease;
        runtime->calling_thread = pthread_self();
        pthread_mutex_unlock(&runtime->mutex);
        lease->on_status(lease, status, lease->user);
        pthread_mutex_lock(&runtime->mutex);
        runtime->calling = NULL;
        pthread_cond_broadcast(&runtime->called);
    }
}

void lease_dispatcher_drain(struct aster_runtime *runtime)
{
    if (runtime->dispatching) {
        return; /* a call from inside a callback, or another thread: whoever runs them sees what is new */
    }
    runtime->dispatching = true;
    while (runtime->first_callback != NULL) {
        struct aster_lease *lease = pop(runtime);
        call(runtime, lease);
        lease_unref(lease);
    }
    runtime->dispatching = false;
}

void lease_dispatcher_forget(struct aster_lease *lease)
{
    struct aster_runtime *runtime = lease->runtime;
    lease->destroyed = true;
    while (runtime->calling == lease && !pthread_equal(runtime->calling_thread, pthread_self())) {
        pthread_cond_wait(&runtime->called, &runtime->mutex);
    }
}

void *lease_dispatcher_main(void *argument)
{
    struct aster_runtime *runtime = argument;
    lease_runtime_lock(runtime);
    while (!runtime->stopping) {
        lease_dispatcher_drain(runtime);
        if (runtime->dead != NULL) {
            lease_runtime_unlock(runtime, NULL);
            lease_runtime_lock(runtime);
        } else if (!runtime->stopping && runtime->first_callback == NULL) {
            pthread_cond_wait(&runtime->callbacks_changed, &runtime->mutex);
        }
    }
    lease_runtime_unlock(runtime, NULL);
    return NULL;
}
