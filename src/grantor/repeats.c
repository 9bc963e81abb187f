#include "grantor/repeats.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/siphash.h"
#include "grantor/parking.h"
#include "grantor/session.h"
#include "platform/entropy.h"

#define BUCKETS 4096

struct grantor_repeats {
    struct aster_hash_key key;
    struct grantor_flight *buckets[BUCKETS];
};

aster_status grantor_repeats_create(struct grantor_repeats **repeats, struct aster_error *error)
{
    struct grantor_repeats *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the table of requests");
    }
    aster_status status = aster_entropy_fill(&made->key, sizeof made->key, error);
    if (status != ASTER_OK) {
        free(made);
        return status;
    }
    *repeats = made;
    return ASTER_OK;
}

void grantor_repeats_destroy(struct grantor_repeats *repeats)
{
    free(repeats);
}

static bool is_listed(const struct aster_operation *operation)
{
    static const unsigned char none[ASTER_REQUEST_ID_SIZE];
    return operation->kind == ASTER_OP_ACQUIRE && memcmp(operation->request_id, none, sizeof none) != 0;
}

static size_t bucket_of(const struct grantor_repeats *repeats, const struct aster_operation *operation)
{
    struct aster_bytes id = {operation->request_id, ASTER_REQUEST_ID_SIZE};
    /* with the resource: one client may use one id for all of its requests */
    return (aster_siphash(&repeats->key, id) ^ aster_siphash(&repeats->key, operation->resource)) % BUCKETS;
}

void grantor_repeats_add(struct grantor_repeats *repeats, struct grantor_flight *flight)
{
    if (!is_listed(&flight->request.operation)) {
        return;
    }
    struct grantor_flight **bucket = &repeats->buckets[bucket_of(repeats, &flight->request.operation)];
    flight->repeat_next = *bucket;
    if (flight->repeat_next != NULL) {
        flight->repeat_next->repeat_previous = flight;
    }
    *bucket = flight;
}

void grantor_repeats_remove(struct grantor_repeats *repeats, struct grantor_flight *flight)
{
    if (!is_listed(&flight->request.operation)) {
        return;
    }
    struct grantor_flight **bucket = &repeats->buckets[bucket_of(repeats, &flight->request.operation)];
    *(flight->repeat_previous != NULL ? &flight->repeat_previous->repeat_next : bucket) = flight->repeat_next;
    if (flight->repeat_next != NULL) {
        flight->repeat_next->repeat_previous = flight->repeat_previous;
    }
}

static bool is_same(const struct aster_operation *one, const struct aster_operation *other)
{
    return memcmp(one->request_id, other->request_id, ASTER_REQUEST_ID_SIZE) == 0 &&
           aster_bytes_equal(one->caller, other->caller) && aster_bytes_equal(one->resource, other->resource);
}

/* One that is parked asks again later, and finds the resource free. */
static bool will_be_told(const struct grantor_flight *flight)
{
    return flight->session != NULL && !flight->session->failed && !flight->cancelled &&
           !grantor_parking_is_parked(flight);
}

bool grantor_repeats_has_another(const struct grantor_repeats *repeats, const struct grantor_flight *flight)
{
    const struct aster_operation *operation = &flight->request.operation;
    const struct grantor_flight *other = is_listed(operation) ? repeats->buckets[bucket_of(repeats, operation)] : NULL;
    while (other != NULL &&
           (other == flight || !is_same(&other->request.operation, operation) || !will_be_told(other))) {
        other = other->repeat_next;
    }
    return other != NULL;
}
