#include <stdio.h>

#include "kit.h"

#define TTL_VIRTUAL_MS 10000
#define ATTEMPTS_MAX 4  /* of a scenario during which the machine stalled, each on a slower time scale */
#define TTL_REAL_MS 450 /* short, yet long enough that a loaded machine decides twice within a half of it */

static const struct scenario_entry *const lists[] = {
    aster_conformance_ownership, aster_conformance_time,    aster_conformance_values, aster_conformance_fences,
    aster_conformance_names,     aster_conformance_threads, aster_conformance_reads,
};

static void run_one(const struct scenario_entry *entry, struct scenario *s)
{
    aster_conformance_clock_init(&s->clock);
    const struct aster_clock *clock = s->subject->real_time ? aster_clock_system() : &s->clock.clock;
    s->status = s->subject->open(s->subject->user, clock, &s->serializer, &s->error);
    if (s->status != ASTER_OK) {
        aster_conformance_fail(s, __FILE__, __LINE__, "open() to succeed");
    } else {
        entry->run(s);
    }
    aster_reply_fini(&s->reply);
    aster_serializer_destroy(s->serializer);
    aster_conformance_clock_fini(&s->clock);
}

/* On a real clock a machine that stalls makes leases run out that a scenario counts on: that says nothing about the
 * serializer. Between two steps scenarios leave a quarter of a ttl. */
static bool says_nothing(const struct scenario *s)
{
    return s->failed && s->subject->real_time && s->unasked_ns > s->ttl_ms * 1000000 / 4;
}

static void report(const struct scenario_entry *entry, const struct scenario *s, FILE *out)
{
    if (out == NULL) {
        return;
    }
    if (s->failed) {
        fprintf(out, "FAIL %s: %s\n", entry->name, s->why);
    } else if (s->skipped != NULL) {
        fprintf(out, "skip %s: %s\n", entry->name, s->skipped);
    } else {
        fprintf(out, "ok   %s\n", entry->name);
    }
    fflush(out);
}

aster_status aster_conformance_run(const struct aster_conformance_subject *subject, FILE *out,
                                   struct aster_conformance_result *result)
{
    struct aster_conformance_subject known = {0};
    memcpy(&known, subject, subject->struct_size < sizeof known ? subject->struct_size : sizeof known);
    struct aster_conformance_result counts = {0, 0, 0};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const struct scenario_entry *entry = lists[i]; entry->name != NULL; entry++) {
            struct scenario s;
            int attempts = 0;
            do {
                s = (struct scenario){.subject = &known, .reply = ASTER_REPLY_INIT};
                s.ttl_ms = known.real_time ? (int64_t)TTL_REAL_MS << attempts : TTL_VIRTUAL_MS;
                run_one(entry, &s);
            } while (says_nothing(&s) && ++attempts < ATTEMPTS_MAX);
            report(entry, &s, out);
            counts.failed += s.failed;
            counts.skipped += !s.failed && s.skipped != NULL;
            counts.passed += !s.failed && s.skipped == NULL;
        }
    }
    if (out != NULL) {
        fprintf(out, "%s: %d passed, %d failed, %d skipped\n", known.name, counts.passed, counts.failed,
                counts.skipped);
    }
    if (result != NULL) {
        *result = counts;
    }
    return counts.failed == 0 ? ASTER_OK : ASTER_ERR_INVALID;
}
