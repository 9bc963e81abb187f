/* What is counted, and how Prometheus reads it. */
#ifndef GRANTOR_METRICS_H
#define GRANTOR_METRICS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "aster/serializer.h"
#include "journal/journalled.h"

#define GRANTOR_METRIC_KINDS 9 /* the numbers of aster_operation_kind and aster_event_kind are below it */
enum grantor_result { GRANTOR_GRANTED = 0, GRANTOR_DENIED = 1, GRANTOR_FAILED = 2, GRANTOR_RESULTS = 3 };

/* Counted from any thread. */
struct grantor_counters {
    _Atomic(uint64_t) decisions[GRANTOR_METRIC_KINDS][GRANTOR_RESULTS];
    _Atomic(uint64_t) events[GRANTOR_METRIC_KINDS];
    _Atomic(uint64_t) future_epochs;
    _Atomic(uint64_t) store_failures;
    _Atomic(int64_t) failed_s; /* when the last of them was; 0 = never, or it works again */
};

void grantor_count_decision(struct grantor_counters *counters, enum aster_operation_kind kind, aster_status status,
                            const struct aster_decision *decision);
void grantor_count_event(struct grantor_counters *counters, const struct aster_event *event);

/* The store failed to write or to read. */
void grantor_store_failed(struct grantor_counters *counters);
/* It failed within the last minute, and has not stored anything since. */
bool grantor_store_fails(const struct grantor_counters *counters);

/* What holds now. */
struct grantor_gauges {
    size_t connections;
    size_t handshakes;
    size_t in_flight; /* operations that are not answered, waiters included */
    uint64_t refused; /* handshakes */
    bool draining;
    bool forgets;                           /* nothing survives the process */
    struct aster_journalled_counts journal; /* all zero without one */
};

/* All of it in Prometheus' text format. */
void grantor_metrics_write(FILE *out, const struct grantor_counters *counters, const struct grantor_gauges *gauges);

#endif
