/* Counters, and the HTTP server on a loopback address that shows them: /metrics (Prometheus text), /livez, /readyz. */
#ifndef GRANTOR_METRICS_H
#define GRANTOR_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "aster/serializer.h"

#define GRANTOR_METRIC_KINDS 9 /* the numbers of aster_operation_kind and aster_event_kind are below it */
enum grantor_result { GRANTOR_GRANTED = 0, GRANTOR_DENIED = 1, GRANTOR_FAILED = 2, GRANTOR_RESULTS = 3 };

/* Counted from any thread. */
struct grantor_counters {
    _Atomic(uint64_t) decisions[GRANTOR_METRIC_KINDS][GRANTOR_RESULTS];
    _Atomic(uint64_t) events[GRANTOR_METRIC_KINDS];
    _Atomic(uint64_t) future_epochs;
};

void grantor_count_decision(struct grantor_counters *counters, enum aster_operation_kind kind, aster_status status,
                            const struct aster_decision *decision);
void grantor_count_event(struct grantor_counters *counters, const struct aster_event *event);

/* What holds now. */
struct grantor_gauges {
    size_t connections;
    size_t handshakes;
    size_t in_flight; /* operations that are not answered, waiters included */
    uint64_t refused; /* handshakes */
    bool draining;
};

struct grantor_http;

/* Listen at `address`, "127.0.0.1:9400" or another loopback address; requests are answered on a thread of its own,
 * which calls measure(gauges, user). Errors: ASTER_ERR_INVALID (not a loopback address), ASTER_ERR_IO. */
aster_status grantor_http_open(const char *address, const struct grantor_counters *counters,
                               void (*measure)(struct grantor_gauges *gauges, void *user), void *user,
                               struct grantor_http **http, struct aster_error *error);
void grantor_http_close(struct grantor_http *http); /* NULL is legal */

#endif
