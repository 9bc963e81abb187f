/* bench_remote ADDRESS NODE: leases of a running grantor through the library, one client and one connection. ADDRESS is
 * IDENTITY@HOST:PORT, NODE the directory of a node that is admitted there. The reference is bench_quic's UDP ping-pong.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "aster/aster.h"
#include "aster/grantor.h"
#include "aster/sys/serializer.h"

#define LEASES 10000
#define HALVES 2
#define SINGLES 5000
#define RUN_NS INT64_C(3000000000)

struct lease {
    struct aster_request request;
    char name[24];
};

static struct lease leases[LEASES];
static struct aster_request *requests[LEASES];
static atomic_size_t left[HALVES];
static atomic_size_t failures;

static int64_t now_ns(void)
{
    return aster_clock_now_ns(aster_clock_system());
}

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_remote: %s: %s\n", what, why);
    exit(2);
}

static void answered(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    size_t index = (size_t)((struct lease *)request - leases);
    if (status != ASTER_OK || decision->outcome != ASTER_GRANTED) {
        if (atomic_fetch_add(&failures, 1) == 0 && error != NULL) {
            fprintf(stderr, "bench_remote: %s\n", error->message);
        }
    } else {
        request->operation.epoch = decision->epoch;
    }
    atomic_fetch_sub(&left[index / (LEASES / HALVES)], 1);
}

static void submit(struct aster_serializer *serializer, size_t half, enum aster_operation_kind kind)
{
    size_t count = LEASES / HALVES;
    int64_t deadline_ns = now_ns() + INT64_C(30000000000);
    for (size_t i = half * count; i < (half + 1) * count; i++) {
        leases[i].request.operation.kind = kind;
        leases[i].request.operation.ttl_ms = kind == ASTER_OP_ACQUIRE ? 60000 : 0;
        leases[i].request.deadline_ns = deadline_ns;
    }
    atomic_store(&left[half], count);
    aster_serializer_submit_many(serializer, requests + half * count, count);
}

static void await(size_t half)
{
    while (atomic_load(&left[half]) > 0) {
        usleep(50);
    }
}

static void all(struct aster_serializer *serializer, enum aster_operation_kind kind, const char *what)
{
    int64_t start_ns = now_ns();
    for (size_t half = 0; half < HALVES; half++) {
        submit(serializer, half, kind);
    }
    for (size_t half = 0; half < HALVES; half++) {
        await(half);
    }
    printf("%-28s %10.0f /s\n", what, LEASES * 1e9 / (double)(now_ns() - start_ns));
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void one_in_flight(struct aster_serializer *serializer)
{
    static int64_t samples[SINGLES];
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    for (size_t i = 0; i < SINGLES; i++) {
        struct aster_operation operation = leases[i % LEASES].request.operation;
        int64_t start_ns = now_ns();
        if (aster_serializer_call(serializer, &operation, 0, &reply, &error) != ASTER_OK) {
            fail("renew", error.message);
        }
        samples[i] = now_ns() - start_ns;
    }
    qsort(samples, SINGLES, sizeof samples[0], compare);
    printf("%-28s %10.1f us p50, %.1f us p99\n", "renew, one in flight", (double)samples[SINGLES / 2] / 1e3,
           (double)samples[SINGLES * 99 / 100] / 1e3);
    aster_reply_fini(&reply);
}

static void renew_in_batches(struct aster_serializer *serializer)
{
    uint64_t done = 0;
    int64_t start_ns = now_ns();
    submit(serializer, 0, ASTER_OP_RENEW);
    for (size_t half = 1; now_ns() - start_ns < RUN_NS; half = 1 - half) {
        submit(serializer, half, ASTER_OP_RENEW);
        await(1 - half);
        done += LEASES / HALVES;
    }
    await(0);
    await(1);
    done += LEASES / HALVES;
    printf("%-28s %10.0f /s\n", "renew, in batches", (double)done * 1e9 / (double)(now_ns() - start_ns));
}

int main(int count, char **arguments)
{
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (count != 3) {
        fail("usage", "bench_remote IDENTITY@HOST:PORT NODE");
    }
    options.addresses = arguments[1];
    options.node = arguments[2];
    if (aster_grantor_open(&options, &serializer, &error) != ASTER_OK) {
        fail("open", error.message);
    }
    for (size_t i = 0; i < LEASES; i++) {
        leases[i].request = (struct aster_request)ASTER_REQUEST_INIT;
        snprintf(leases[i].name, sizeof leases[i].name, "bench/%d/%zu", (int)getpid(), i);
        leases[i].request.operation.resource = aster_text(leases[i].name);
        leases[i].request.operation.caller = aster_grantor_identity(serializer);
        leases[i].request.complete = answered;
        requests[i] = &leases[i].request;
    }
    all(serializer, ASTER_OP_ACQUIRE, "acquire, pipelined");
    for (size_t i = 0; i < LEASES; i++) {
        leases[i].request.operation.kind = ASTER_OP_RENEW;
        leases[i].request.operation.ttl_ms = 0;
    }
    one_in_flight(serializer);
    renew_in_batches(serializer);
    all(serializer, ASTER_OP_RELEASE, "release, pipelined");
    aster_serializer_destroy(serializer);
    if (atomic_load(&failures) > 0) {
        fprintf(stderr, "bench_remote: %zu requests failed\n", (size_t)atomic_load(&failures));
        return 1;
    }
    return 0;
}
