#include "serializer/postgres/batch.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/error.h"
#include "serializer/postgres/lane_internal.h"

#define ANSWER_GRACE_MS 500 /* the server ends the statement first */
#define ATTEMPTS_MAX 5
#define SENDINGS_MAX 2 /* of what may have been applied already */
#define BACKOFF_FIRST_MS 25
#define BACKOFF_LAST_MS 1000
#define LISTEN_POLL_MS 5000 /* notifications come in between */

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

/* From half of `ms` to one and a half, in nanoseconds. */
static int64_t jittered_ns(struct aster_pg_lane *lane, int64_t ms)
{
    lane->jitter = lane->jitter * UINT64_C(6364136223846793005) + 1442695040888963407U;
    int64_t span_ns = aster_ms_to_ns(ms);
    return span_ns / 2 + (int64_t)((lane->jitter >> 11) % ((uint64_t)span_ns + 1));
}

static void fail(struct aster_pg_lane *lane, struct aster_request *request, const struct aster_error *error)
{
    aster_pg_answer(lane->store, request, error->status, NULL, error);
}

static void fail_all(struct aster_pg_lane *lane, struct aster_request **requests, size_t count,
                     const struct aster_error *error)
{
    for (size_t i = 0; i < count; i++) {
        fail(lane, requests[i], error);
    }
}

/* A server that cannot be reached is not tried by every request: they are told what the last attempt found. */
static aster_status connect(struct aster_pg_lane *lane, struct aster_error *error)
{
    if (lane->pg.conn != NULL) {
        return ASTER_OK;
    }
    if (now_ns() < lane->not_before_ns) {
        *error = lane->unreachable;
        return error->status;
    }
    const struct aster_pg_use use = aster_pg_lane_use(lane->kind, &lane->store->options);
    aster_status status = aster_pg_connect(&lane->pg, &lane->store->place, &use, error);
    if (status == ASTER_OK) {
        lane->failures = 0;
        return ASTER_OK;
    }
    int64_t pause_ms = lane->failures < 6 ? BACKOFF_FIRST_MS << lane->failures : BACKOFF_LAST_MS;
    lane->failures++;
    lane->not_before_ns = now_ns() + jittered_ns(lane, pause_ms);
    lane->unreachable = *error;
    return status;
}

/* The lease may be free when its ttl ends; or earlier, of which a notification tells, or the next look. */
static int64_t next_try_ns(struct aster_pg_lane *lane, int64_t remaining_ns)
{
    bool told = lane->pg.use.listens && !lane->pg.pooled;
    int64_t poll_ns = jittered_ns(lane, told && remaining_ns > 0 ? LISTEN_POLL_MS : lane->store->options.poll_ms);
    int64_t end_ns = remaining_ns > 0 ? remaining_ns + jittered_ns(lane, 2) : poll_ns;
    return aster_add_saturated(now_ns(), end_ns < poll_ns ? end_ns : poll_ns);
}

/* Let an acquire wait that may. False: it is to be answered. */
static bool let_wait(struct aster_pg_lane *lane, struct aster_request *request, int64_t remaining_ns)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (request->operation.kind != ASTER_OP_ACQUIRE || request->wait_until_ns <= now_ns()) {
        return false;
    }
    int64_t retry_ns = next_try_ns(lane, remaining_ns);
    retry_ns = retry_ns < request->wait_until_ns ? retry_ns : request->wait_until_ns;
    if (aster_pg_lane_park(lane->store->lanes[ASTER_PG_CHANGES], request, retry_ns, &error) != ASTER_OK) {
        fail(lane, request, &error);
    }
    return true;
}

static void answer_row(struct aster_pg_lane *lane, struct aster_request *request, const PGresult *rows, int row)
{
    struct aster_decision decision;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_pg_decision_read(rows, row, request, lane->pg.role, &decision, &error) != ASTER_OK) {
        error.status = ASTER_ERR_INDETERMINATE; /* it was committed */
        fail(lane, request, &error);
    } else if (decision.reason != ASTER_REASON_HELD_BY_OTHER ||
               !let_wait(lane, request, decision.snapshot.remaining_ns)) {
        aster_pg_answer(lane->store, request, ASTER_OK, &decision, NULL);
    }
}

static void answer_rows(struct aster_pg_lane *lane, struct aster_request **requests, size_t count, PGresult *rows)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (PQntuples(rows) != (int)count || PQnfields(rows) != 18) {
        aster_error_set(&error, ASTER_ERR_INDETERMINATE, "PostgreSQL answered %d rows to %zu requests", PQntuples(rows),
                        count);
        fail_all(lane, requests, count, &error);
    } else {
        for (size_t i = 0; i < count; i++) {
            answer_row(lane, requests[i], rows, (int)i);
        }
    }
    PQclear(rows);
}

/* A row lock was not to be had: an open transaction of the holder's keeps it, or one of another's that is changing it.
 */
static void handle_locked(struct aster_pg_lane *lane, struct aster_request *request, const struct aster_error *error)
{
    struct aster_error refused = *error;
    bool again = lane->kind != ASTER_PG_BLOCKED ||
                 (request->wait_until_ns <= now_ns() && request->deadline_ns != 0 && now_ns() < request->deadline_ns);
    if (again && aster_pg_lane_push(lane->store->lanes[ASTER_PG_BLOCKED], request, &refused) == ASTER_OK) {
        return;
    }
    if (again) {
        fail(lane, request, &refused);
    } else if (!let_wait(lane, request, 0)) {
        aster_error_set(&refused, ASTER_ERR_BUSY,
                        "an open transaction keeps the lease's row locked: nothing was applied; retry");
        fail(lane, request, &refused);
    }
}

static bool may_repeat(const struct aster_request *request)
{
    static const unsigned char no_id[ASTER_REQUEST_ID_SIZE];
    return request->operation.kind == ASTER_OP_INSPECT || request->operation.kind == ASTER_OP_FORGET ||
           memcmp(request->operation.request_id, no_id, sizeof no_id) != 0;
}

/* What was sent may have been applied. Without an id, sending it again could apply it twice. */
static size_t keep_repeatable(struct aster_pg_lane *lane, struct aster_request **requests, size_t count,
                              const struct aster_error *error)
{
    struct aster_error unknown = *error;
    size_t kept = 0;
    unknown.status = ASTER_ERR_INDETERMINATE;
    for (size_t i = 0; i < count; i++) {
        if (may_repeat(requests[i])) {
            requests[kept++] = requests[i];
        } else {
            fail(lane, requests[i], &unknown);
        }
    }
    return kept;
}

/* One sending of a batch and what came of it. */
struct sending {
    aster_status status;
    PGresult *rows;
    bool known; /* whether it was applied */
    enum aster_pg_failure failure;
    struct aster_error error;
};

static struct sending send_once(struct aster_pg_lane *lane, struct aster_request **requests, size_t count)
{
    struct sending sending = {.known = !lane->pg.pooled, /* whose COMMIT may have left */
                              .failure = ASTER_PG_SESSION_OVER,
                              .error = ASTER_ERROR_INIT};
    sending.status = aster_pg_statement_send(&lane->statement, &lane->pg, requests, count,
                                             lane->kind != ASTER_PG_RENEWALS, &sending.error);
    if (sending.status == ASTER_ERR_NOMEM) {
        sending.known = true;
        sending.failure = ASTER_PG_OTHER;
        return sending;
    }
    if (sending.status == ASTER_OK) {
        int64_t until_ns = now_ns() + aster_ms_to_ns(lane->pg.use.statement_timeout_ms + ANSWER_GRACE_MS);
        sending.status = aster_pg_statement_receive(&lane->pg, until_ns, &sending.rows, &sending.known,
                                                    &sending.failure, &sending.error);
    }
    if (!sending.known || sending.failure == ASTER_PG_SESSION_OVER) {
        aster_pg_close(&lane->pg);
    }
    return sending;
}

static void pause_before_retry(struct aster_pg_lane *lane)
{
    int64_t pause_ns = jittered_ns(lane, 2);
    const struct timespec pause = {0, (long)pause_ns};
    nanosleep(&pause, NULL);
}

/* Send until it is known what came of it. Returns how many are left, of which *last says why. */
static size_t send_until_known(struct aster_pg_lane *lane, struct aster_request **requests, size_t count,
                               struct sending *last)
{
    bool ambiguous = false;
    int sendings = 0;
    for (int attempt = 0; count > 0 && attempt < ATTEMPTS_MAX && sendings < SENDINGS_MAX; attempt++) {
        struct sending sending = {.failure = ASTER_PG_SESSION_OVER, .known = true};
        sending.status = connect(lane, &sending.error);
        if (sending.status != ASTER_OK) {
            *last = sending;
            break;
        }
        sending = send_once(lane, requests, count);
        *last = sending;
        if (!sending.known) {
            ambiguous = true;
            sendings++;
            count = keep_repeatable(lane, requests, count, &sending.error);
        } else if (sending.failure == ASTER_PG_CONFLICT) {
            pause_before_retry(lane);
        } else if (sending.failure != ASTER_PG_SESSION_OVER) {
            return count;
        }
    }
    if (ambiguous) {
        last->error.status = ASTER_ERR_INDETERMINATE;
    }
    last->failure = last->failure == ASTER_PG_CONFLICT ? ASTER_PG_CONFLICT : ASTER_PG_SESSION_OVER;
    return count;
}

static void serve(struct aster_pg_lane *lane, struct aster_request **requests, size_t count)
{
    struct sending last = {.error = ASTER_ERROR_INIT};
    count = send_until_known(lane, requests, count, &last);
    if (count == 0) {
        return;
    }
    if (last.failure == ASTER_PG_NO_FAILURE) {
        answer_rows(lane, requests, count, last.rows);
    } else if (last.failure == ASTER_PG_SESSION_OVER) {
        fail_all(lane, requests, count, &last.error);
    } else if (count > 1) { /* one of them spoilt it for all */
        for (size_t i = 0; i < count; i++) {
            serve(lane, &requests[i], 1);
        }
    } else if (last.failure == ASTER_PG_LOCKED) {
        handle_locked(lane, requests[0], &last.error);
    } else {
        fail(lane, requests[0], &last.error);
    }
}

static size_t drop_overdue(struct aster_pg_lane *lane, struct aster_request **requests, size_t count)
{
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t now = now_ns();
    size_t kept = 0;
    aster_error_set(&error, ASTER_ERR_TIMEOUT,
                    "the deadline passed before the operation was ordered: nothing was applied; retry");
    for (size_t i = 0; i < count; i++) {
        if (requests[i]->deadline_ns != 0 && requests[i]->deadline_ns < now) {
            fail(lane, requests[i], &error);
        } else {
            requests[kept++] = requests[i];
        }
    }
    return kept;
}

/* Every process locks rows in the same order, so that two batches cannot wait for each other. What concerns one
 * resource keeps its order. */
struct placed {
    struct aster_request *request;
    size_t place;
};

static int compare(const void *a, const void *b)
{
    const struct placed *left = a;
    const struct placed *right = b;
    int order = aster_bytes_compare(left->request->operation.resource, right->request->operation.resource);
    return order != 0 ? order : (left->place > right->place) - (left->place < right->place);
}

static aster_status sort(struct aster_request **requests, size_t count)
{
    struct placed few[64];
    struct placed *placed = count <= 64 ? few : malloc(count * sizeof *placed);
    if (placed == NULL) {
        return ASTER_ERR_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        placed[i] = (struct placed){requests[i], i};
    }
    qsort(placed, count, sizeof *placed, compare);
    for (size_t i = 0; i < count; i++) {
        requests[i] = placed[i].request;
    }
    if (placed != few) {
        free(placed);
    }
    return ASTER_OK;
}

void aster_pg_batch_serve(struct aster_pg_lane *lane, struct aster_request **requests, size_t count)
{
    count = drop_overdue(lane, requests, count);
    if (count == 0) {
        return;
    }
    if (sort(requests, count) == ASTER_OK) {
        serve(lane, requests, count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        serve(lane, &requests[i], 1);
    }
}
