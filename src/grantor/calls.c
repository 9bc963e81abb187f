#include "grantor/calls.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/siphash.h"
#include "platform/entropy.h"

#define BUCKETS 65536

struct grantor_calls {
    struct aster_hash_key key; /* ids are the client's choice */
    struct grantor_flight *buckets[BUCKETS];
};

aster_status grantor_calls_create(struct grantor_calls **calls, struct aster_error *error)
{
    struct grantor_calls *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the table of calls");
    }
    aster_status status = aster_entropy_fill(&made->key, sizeof made->key, error);
    if (status != ASTER_OK) {
        free(made);
        return status;
    }
    *calls = made;
    return ASTER_OK;
}

void grantor_calls_destroy(struct grantor_calls *calls)
{
    free(calls);
}

static size_t bucket_of(const struct grantor_calls *calls, const struct grantor_session *session, uint64_t id)
{
    const uint64_t name[2] = {(uint64_t)(uintptr_t)session, id};
    return aster_siphash(&calls->key, (struct aster_bytes){name, sizeof name}) % BUCKETS;
}

void grantor_calls_add(struct grantor_calls *calls, struct grantor_flight *flight)
{
    struct grantor_flight **bucket = &calls->buckets[bucket_of(calls, flight->session, flight->id)];
    flight->call_previous = NULL;
    flight->call_next = *bucket;
    if (flight->call_next != NULL) {
        flight->call_next->call_previous = flight;
    }
    *bucket = flight;
}

void grantor_calls_remove(struct grantor_calls *calls, struct grantor_flight *flight)
{
    struct grantor_flight **bucket = &calls->buckets[bucket_of(calls, flight->session, flight->id)];
    *(flight->call_previous != NULL ? &flight->call_previous->call_next : bucket) = flight->call_next;
    if (flight->call_next != NULL) {
        flight->call_next->call_previous = flight->call_previous;
    }
}

struct grantor_flight *grantor_calls_find(const struct grantor_calls *calls, const struct grantor_session *session,
                                          uint64_t id)
{
    struct grantor_flight *flight = calls->buckets[bucket_of(calls, session, id)];
    while (flight != NULL && (flight->session != session || flight->id != id)) {
        flight = flight->call_next;
    }
    return flight;
}
