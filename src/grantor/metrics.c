#include "grantor/metrics.h"

#include <inttypes.h>
#include <time.h>

#include "aster/version.h"

#define FAILURE_REMEMBERED_S 60 /* so that a store nobody dares to use any more is tried again */

static void count(_Atomic(uint64_t) *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static int64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1; /* 0 means never */
}

static bool is_fault(aster_status status)
{
    return status == ASTER_ERR_IO || status == ASTER_ERR_CORRUPT || status == ASTER_ERR_VERSION ||
           status == ASTER_ERR_BUSY || status == ASTER_ERR_INDETERMINATE;
}

void grantor_store_failed(struct grantor_counters *counters)
{
    count(&counters->store_failures);
    atomic_store_explicit(&counters->failed_s, now_s(), memory_order_relaxed);
}

bool grantor_store_fails(const struct grantor_counters *counters)
{
    int64_t failed_s = atomic_load_explicit(&counters->failed_s, memory_order_relaxed);
    return failed_s != 0 && now_s() - failed_s < FAILURE_REMEMBERED_S;
}

void grantor_count_decision(struct grantor_counters *counters, enum aster_operation_kind kind, aster_status status,
                            const struct aster_decision *decision)
{
    enum grantor_result result = status != ASTER_OK                   ? GRANTOR_FAILED
                                 : decision->outcome == ASTER_GRANTED ? GRANTOR_GRANTED
                                                                      : GRANTOR_DENIED;
    if ((unsigned)kind < GRANTOR_METRIC_KINDS) {
        count(&counters->decisions[kind][result]);
    }
    if (is_fault(status)) {
        grantor_store_failed(counters);
    } else if (result == GRANTOR_GRANTED && kind != ASTER_OP_RENEW && kind != ASTER_OP_INSPECT) {
        atomic_store_explicit(&counters->failed_s, 0, memory_order_relaxed); /* it has been written to again */
    }
}

void grantor_count_event(struct grantor_counters *counters, const struct aster_event *event)
{
    if ((unsigned)event->kind < GRANTOR_METRIC_KINDS) {
        count(&counters->events[event->kind]);
    }
    if (event->reason == ASTER_REASON_FUTURE_EPOCH) {
        count(&counters->future_epochs);
    }
}

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_one(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    write_head(out, name, type, help);
    fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void write_counters(FILE *out, const struct grantor_counters *counters)
{
    static const char *const results[] = {"granted", "denied", "failed"};
    write_head(out, "aster_decisions_total", "counter", "Answered operations by verb and outcome.");
    for (int kind = ASTER_OP_ACQUIRE; kind < GRANTOR_METRIC_KINDS; kind++) {
        for (int result = 0; result < GRANTOR_RESULTS && kind != ASTER_OP_EXPIRE; result++) {
            fprintf(out, "aster_decisions_total{verb=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                    aster_operation_name((enum aster_operation_kind)kind), results[result],
                    atomic_load_explicit(&counters->decisions[kind][result], memory_order_relaxed));
        }
    }
    write_head(out, "aster_events_total", "counter", "Lines of the audit history by kind.");
    for (int kind = ASTER_EVENT_GRANTED; kind < GRANTOR_METRIC_KINDS; kind++) {
        fprintf(out, "aster_events_total{kind=\"%s\"} %" PRIu64 "\n", aster_event_name((enum aster_event_kind)kind),
                atomic_load_explicit(&counters->events[kind], memory_order_relaxed));
    }
    write_one(out, "aster_future_epochs_total", "counter", "Fences from the future: an integrity alarm.",
              atomic_load_explicit(&counters->future_epochs, memory_order_relaxed));
    write_one(out, "aster_store_failures_total", "counter", "Operations and reads that the store failed.",
              atomic_load_explicit(&counters->store_failures, memory_order_relaxed));
}

static void write_gauges(FILE *out, const struct grantor_gauges *gauges)
{
    write_one(out, "aster_connections", "gauge", "Open connections.", gauges->connections);
    write_one(out, "aster_handshakes", "gauge", "Unfinished handshakes.", gauges->handshakes);
    write_one(out, "aster_operations_in_flight", "gauge", "Unanswered operations, waiters included.",
              gauges->in_flight);
    write_one(out, "aster_handshakes_refused_total", "counter", "Handshakes that failed.", gauges->refused);
}

static void write_journal(FILE *out, const struct aster_journalled_counts *journal)
{
    write_one(out, "aster_journal_appends_total", "counter", "Appends to the journal, one sync each.",
              journal->batches);
    write_one(out, "aster_journal_changes_total", "counter", "Changed rows that were appended.", journal->changes);
    write_one(out, "aster_journal_written_bytes_total", "counter", "Bytes appended.", journal->bytes);
    write_head(out, "aster_journal_append_seconds_total", "counter", "Time spent in appends.");
    fprintf(out, "aster_journal_append_seconds_total %.9f\n", (double)journal->append_ns / 1e9);
    write_head(out, "aster_journal_failures_total", "counter", "Appends that failed, by what is known of them.");
    fprintf(out, "aster_journal_failures_total{outcome=\"not-applied\"} %" PRIu64 "\n", journal->failures);
    fprintf(out, "aster_journal_failures_total{outcome=\"unknown\"} %" PRIu64 "\n", journal->unknown);
    write_one(out, "aster_journal_undone_total", "counter", "Changed rows that were taken back.", journal->undone);
    write_one(out, "aster_journal_lost_events_total", "counter", "Refusals that a failing journal did not keep.",
              journal->lost_events);
    write_one(out, "aster_journal_waiting", "gauge", "Changes and answers that wait for an append.", journal->waiting);
    write_one(out, "aster_journal_failing", "gauge", "1 while the last append failed.", journal->failing);
}

void grantor_metrics_write(FILE *out, const struct grantor_counters *counters, const struct grantor_gauges *gauges)
{
    write_head(out, "aster_build_info", "gauge", "The version that runs; always 1.");
    fputs("aster_build_info{version=\"" ASTER_VERSION_TEXT "\"} 1\n", out);
    write_counters(out, counters);
    write_gauges(out, gauges);
    write_one(out, "aster_durable", "gauge", "0 when nothing survives the process: journal is none.", !gauges->forgets);
    write_journal(out, &gauges->journal);
    write_one(out, "aster_ready", "gauge", "1 while new requests are served: what /readyz says.",
              !gauges->draining && !grantor_store_fails(counters));
}
