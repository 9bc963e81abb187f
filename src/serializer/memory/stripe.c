/* The door of a stripe. A closure keeps the lock for as long as it likes, and the renewing thread, which serves every
 * other lease of the process, must not wait for it. So whoever must not block leaves its work at the door, and whoever
 * unlocks looks for work left there. Work is counted before the lock is tried, and looked for after it was given up:
 * one of the two sees the other. */
#include <stdlib.h>

#include "serializer/memory/internal.h"

void aster_memory_stripe_lock(struct memory_stripe *stripe)
{
    pthread_mutex_lock(&stripe->mutex);
}

/* Move the mail, newest first, behind what is in the inbox, oldest first. */
static void take_mail_in(struct memory_stripe *stripe)
{
    struct aster_request *newest = atomic_exchange(&stripe->mail, NULL);
    struct aster_request *oldest = NULL;
    while (newest != NULL) {
        struct aster_request *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    struct aster_request **end = &stripe->inbox;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = oldest;
}

static struct aster_request *next_request(struct memory_stripe *stripe)
{
    if (stripe->inbox == NULL) {
        take_mail_in(stripe);
    }
    struct aster_request *request = stripe->inbox;
    if (request != NULL) {
        stripe->inbox = request->next;
    }
    return request;
}

static void do_cancels(struct memory *memory, struct memory_stripe *stripe, struct memory_outbox *outbox)
{
    struct memory_cancel *cancel = atomic_exchange(&stripe->cancels, NULL);
    while (cancel != NULL) {
        struct memory_cancel *next = cancel->next;
        aster_memory_cancel_locked(memory, stripe, cancel->request, outbox);
        free(cancel);
        atomic_fetch_sub(&stripe->work, 1);
        cancel = next;
    }
}

/* Everything but requests; locked. */
static void do_duties(struct memory *memory, struct memory_stripe *stripe, struct memory_outbox *outbox)
{
    do_cancels(memory, stripe, outbox);
    unsigned duties = atomic_exchange(&stripe->duties, 0);
    if ((duties & MEMORY_DUTY_TIMERS) != 0) {
        aster_memory_timers_run(memory, stripe, aster_clock_now_ns(&memory->clock), outbox);
        atomic_fetch_sub(&stripe->work, 1);
    }
    if ((duties & MEMORY_DUTY_CLOSE) != 0) {
        aster_memory_waiters_answer_all(memory, stripe, ASTER_ERR_CLOSED, outbox);
        atomic_fetch_sub(&stripe->work, 1);
    }
}

/* One thing that was left; locked on entry, unlocked on return. */
static void do_one(struct memory *memory, struct memory_stripe *stripe)
{
    struct aster_request *request = next_request(stripe);
    if (request != NULL) {
        atomic_fetch_sub(&stripe->work, 1);
        aster_memory_order(memory, stripe, request);
        return;
    }
    struct memory_outbox outbox;
    aster_memory_outbox_init(&outbox);
    do_duties(memory, stripe, &outbox);
    const struct memory_timer *first = aster_memory_timers_first(&stripe->timers);
    int64_t alarm_ns = first != NULL ? first->at_ns : INT64_MAX;
    pthread_mutex_unlock(&stripe->mutex);
    if (alarm_ns != INT64_MAX) {
        aster_memory_alarm_set(memory, alarm_ns);
    }
    aster_memory_outbox_send(stripe, &outbox);
}

/* Until nothing is left, or somebody else has the lock and will look after giving it up. */
static void do_work(struct memory *memory, struct memory_stripe *stripe)
{
    for (;;) {
        atomic_thread_fence(memory_order_seq_cst); /* the unlock above is seen before the work is looked for */
        if (atomic_load_explicit(&stripe->work, memory_order_relaxed) == 0 ||
            pthread_mutex_trylock(&stripe->mutex) != 0) {
            return;
        }
        do_one(memory, stripe);
    }
}

void aster_memory_stripe_unlock(struct memory *memory, struct memory_stripe *stripe)
{
    pthread_mutex_unlock(&stripe->mutex);
    do_work(memory, stripe);
}

void aster_memory_stripe_leave_request(struct memory *memory, struct memory_stripe *stripe,
                                       struct aster_request *request)
{
    if (atomic_load(&stripe->work) == 0 && pthread_mutex_trylock(&stripe->mutex) == 0) {
        aster_memory_order(memory, stripe, request); /* nobody is in the way, and nobody was first */
    } else {
        atomic_fetch_add(&stripe->work, 1);
        request->next = atomic_load(&stripe->mail);
        while (!atomic_compare_exchange_weak(&stripe->mail, &request->next, request)) {
        }
    }
    do_work(memory, stripe);
}

void aster_memory_stripe_leave_cancel(struct memory *memory, struct memory_stripe *stripe,
                                      const struct aster_request *request)
{
    struct memory_cancel *cancel = malloc(sizeof *cancel);
    if (cancel == NULL) {
        return; /* the request is answered at its deadline instead */
    }
    cancel->request = request;
    cancel->next = atomic_load(&stripe->cancels);
    atomic_fetch_add(&stripe->work, 1);
    while (!atomic_compare_exchange_weak(&stripe->cancels, &cancel->next, cancel)) {
    }
    do_work(memory, stripe);
}

static void leave_duty(struct memory *memory, struct memory_stripe *stripe, enum memory_duty duty)
{
    if ((atomic_fetch_or(&stripe->duties, duty) & duty) == 0) {
        atomic_fetch_add(&stripe->work, 1);
    }
    do_work(memory, stripe);
}

int64_t aster_memory_stripe_run_timers(struct memory *memory, struct memory_stripe *stripe)
{
    if (pthread_mutex_trylock(&stripe->mutex) != 0) {
        leave_duty(memory, stripe, MEMORY_DUTY_TIMERS);
        return INT64_MAX;
    }
    struct memory_outbox outbox;
    aster_memory_outbox_init(&outbox);
    aster_memory_timers_run(memory, stripe, aster_clock_now_ns(&memory->clock), &outbox);
    const struct memory_timer *first = aster_memory_timers_first(&stripe->timers);
    int64_t next_ns = first != NULL ? first->at_ns : INT64_MAX;
    aster_memory_stripe_unlock(memory, stripe);
    aster_memory_outbox_send(stripe, &outbox);
    return next_ns;
}

void aster_memory_stripe_close(struct memory *memory, struct memory_stripe *stripe)
{
    atomic_store(&stripe->closed, true);
    leave_duty(memory, stripe, MEMORY_DUTY_CLOSE);
}
