#include "grantor/parking.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/siphash.h"
#include "platform/entropy.h"

#define BUCKETS 4096
#define LOOK_AGAIN_NS INT64_C(1000000000)
#define LEAST_NS INT64_C(1000000) /* the serializer's clock may be a little behind the loop's */
#define SWEEP_NS INT64_C(5000000) /* between two walks through a long queue */

struct grantor_queue {
    struct aster_timer timer;
    struct grantor_parking *parking;
    struct grantor_queue *next; /* in the bucket */
    struct grantor_flight *first;
    struct grantor_flight *last;
    bool trying; /* the head is on its way through the serializer */
    int64_t retry_ns;
    int64_t sweep_ns; /* nobody's time is over before; may be too early, since leaving does not move it */
    int64_t swept_ns;
    size_t size;
    char name[];
};

struct grantor_parking {
    struct aster_loop *loop;
    bool closed;
    struct aster_hash_key key;
    struct grantor_queue *buckets[BUCKETS];
};

aster_status grantor_parking_create(struct aster_loop *loop, struct grantor_parking **parking,
                                    struct aster_error *error)
{
    struct grantor_parking *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the queues of waiters");
    }
    aster_status status = aster_entropy_fill(&made->key, sizeof made->key, error);
    if (status != ASTER_OK) {
        free(made);
        return status;
    }
    made->loop = loop;
    *parking = made;
    return ASTER_OK;
}

void grantor_parking_destroy(struct grantor_parking *parking)
{
    free(parking);
}

static struct grantor_queue **find(struct grantor_parking *parking, struct aster_bytes resource)
{
    struct grantor_queue **at = &parking->buckets[aster_siphash(&parking->key, resource) % BUCKETS];
    while (*at != NULL && !aster_bytes_equal((struct aster_bytes){(*at)->name, (*at)->size}, resource)) {
        at = &(*at)->next;
    }
    return at;
}

static int64_t next_sweep_ns(const struct grantor_queue *queue)
{
    int64_t least_ns = queue->swept_ns + SWEEP_NS;
    return queue->sweep_ns > least_ns ? queue->sweep_ns : least_ns;
}

static void arm(struct grantor_queue *queue)
{
    int64_t at_ns = next_sweep_ns(queue);
    if (!queue->trying && queue->retry_ns < at_ns) {
        at_ns = queue->retry_ns;
    }
    aster_timers_set(aster_loop_timers(queue->parking->loop), &queue->timer, at_ns);
}

static void take_out(struct grantor_flight *flight)
{
    struct grantor_queue *queue = flight->queue;
    *(flight->park_previous != NULL ? &flight->park_previous->park_next : &queue->first) = flight->park_next;
    *(flight->park_next != NULL ? &flight->park_next->park_previous : &queue->last) = flight->park_previous;
    flight->queue = NULL;
    flight->park_previous = NULL;
    flight->park_next = NULL;
}

/* Whoever takes somebody out calls this afterwards. */
static void settle(struct grantor_queue *queue)
{
    if (queue->first != NULL) {
        arm(queue);
        return;
    }
    struct aster_timers *timers = aster_loop_timers(queue->parking->loop);
    aster_timers_unset(timers, &queue->timer);
    aster_timers_unreserve(timers);
    struct grantor_queue **at = find(queue->parking, (struct aster_bytes){queue->name, queue->size});
    *at = queue->next;
    free(queue);
}

static void try_head(struct grantor_queue *queue)
{
    queue->trying = true;
    grantor_flight_launch(queue->first);
    arm(queue);
}

/* Whose time is over tries once more, outside the queue, and is told the outcome whatever it is. */
static void sweep(struct grantor_queue *queue, int64_t now_ns)
{
    queue->swept_ns = now_ns;
    queue->sweep_ns = INT64_MAX;
    struct grantor_flight *flight = queue->first;
    while (flight != NULL) {
        struct grantor_flight *next = flight->park_next;
        bool on_its_way = queue->trying && flight == queue->first; /* keep() looks at its time */
        if (flight->give_up_ns <= now_ns && !on_its_way) {
            take_out(flight);
            flight->give_up_ns = 0;
            grantor_flight_launch(flight);
        } else if (flight->give_up_ns < queue->sweep_ns && !on_its_way) {
            queue->sweep_ns = flight->give_up_ns;
        }
        flight = next;
    }
}

static void fire(struct aster_timer *timer, int64_t now_ns)
{
    struct grantor_queue *queue = (struct grantor_queue *)(void *)timer;
    if (next_sweep_ns(queue) <= now_ns) {
        sweep(queue, now_ns);
    }
    if (queue->first != NULL && !queue->trying && queue->retry_ns <= now_ns) {
        try_head(queue);
    } else {
        settle(queue);
    }
}

static struct grantor_queue *open_queue(struct grantor_parking *parking, struct aster_bytes resource)
{
    struct grantor_queue **at = find(parking, resource);
    if (*at != NULL) {
        return *at;
    }
    struct grantor_queue *queue = calloc(1, sizeof *queue + resource.size);
    if (queue == NULL || aster_timers_reserve(aster_loop_timers(parking->loop), NULL) != ASTER_OK) {
        free(queue);
        return NULL;
    }
    queue->timer.fire = fire;
    queue->parking = parking;
    queue->sweep_ns = INT64_MAX;
    queue->swept_ns = INT64_MIN / 2;
    queue->size = resource.size;
    memcpy(queue->name, resource.data, resource.size);
    *at = queue;
    return queue;
}

static void heed(struct grantor_queue *queue, const struct grantor_flight *flight)
{
    queue->sweep_ns = flight->give_up_ns < queue->sweep_ns ? flight->give_up_ns : queue->sweep_ns;
}

static void append(struct grantor_queue *queue, struct grantor_flight *flight)
{
    heed(queue, flight);
    flight->queue = queue;
    flight->park_previous = queue->last;
    flight->park_next = NULL;
    *(queue->last != NULL ? &queue->last->park_next : &queue->first) = flight;
    queue->last = flight;
}

bool grantor_parking_join(struct grantor_parking *parking, struct grantor_flight *flight)
{
    bool own = (flight->request.operation.flags & ASTER_OP_TAKE_OVER_OWN) != 0; /* may be granted while others wait */
    struct grantor_queue *queue = *find(parking, flight->request.operation.resource);
    if (flight->give_up_ns == 0 || own || queue == NULL || parking->closed) {
        return false;
    }
    append(queue, flight);
    arm(queue);
    return true;
}

static int64_t when_to_retry(int64_t now_ns, const struct aster_decision *decision)
{
    int64_t remaining_ns = decision != NULL ? decision->snapshot.remaining_ns : 0;
    remaining_ns = remaining_ns < LOOK_AGAIN_NS ? remaining_ns : LOOK_AGAIN_NS;
    return now_ns + LEAST_NS + remaining_ns;
}

bool grantor_parking_keep(struct grantor_parking *parking, struct grantor_flight *flight, aster_status status,
                          const struct aster_decision *decision)
{
    int64_t now_ns = aster_loop_now_ns(parking->loop);
    struct grantor_queue *queue = flight->queue;
    bool waits = flight->give_up_ns > now_ns && flight->session != NULL && !flight->cancelled && !parking->closed &&
                 status == ASTER_OK && decision->outcome == ASTER_DENIED &&
                 decision->reason == ASTER_REASON_HELD_BY_OTHER;
    if (!waits && queue == NULL) {
        return false;
    }
    if (queue == NULL) {
        queue = open_queue(parking, flight->request.operation.resource);
        if (queue == NULL) {
            return false;
        }
        append(queue, flight);
    } else {
        queue->trying = false;
        heed(queue, flight);
    }
    if (!queue->trying) {
        queue->retry_ns = when_to_retry(now_ns, decision);
    }
    if (!waits) {
        take_out(flight);
    }
    settle(queue);
    return waits;
}

bool grantor_parking_is_parked(const struct grantor_flight *flight)
{
    const struct grantor_queue *queue = flight->queue;
    return queue != NULL && !(queue->trying && queue->first == flight);
}

bool grantor_parking_leave(struct grantor_parking *parking, struct grantor_flight *flight)
{
    (void)parking;
    struct grantor_queue *queue = flight->queue;
    if (!grantor_parking_is_parked(flight)) {
        return false;
    }
    take_out(flight);
    settle(queue);
    return true;
}

void grantor_parking_wake(struct grantor_parking *parking, struct aster_bytes resource)
{
    struct grantor_queue *queue = *find(parking, resource);
    if (queue != NULL && !queue->trying) {
        try_head(queue);
    }
}

/* The first in the bucket who is not being tried. */
static struct grantor_flight *someone(const struct grantor_queue *queue)
{
    for (; queue != NULL; queue = queue->next) {
        struct grantor_flight *flight = queue->trying ? queue->first->park_next : queue->first;
        if (flight != NULL) {
            return flight;
        }
    }
    return NULL;
}

void grantor_parking_close(struct grantor_parking *parking)
{
    parking->closed = true;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct grantor_flight *flight;
        while ((flight = someone(parking->buckets[i])) != NULL) {
            struct grantor_queue *queue = flight->queue;
            take_out(flight);
            settle(queue);
            grantor_flight_answer(flight, ASTER_ERR_CLOSED, NULL,
                                  "the server is shutting down: try another one, or again");
        }
    }
}
