/* What a scenario works with: a fresh serializer, a clock, one-line operations, and one way to fail. */
#ifndef CONFORMANCE_KIT_H
#define CONFORMANCE_KIT_H

#include "aster/sys/conformance.h"
#include "aster/sys/serializer.h"
#include "clock.h"

struct scenario {
    const struct aster_conformance_subject *subject;
    struct conformance_clock clock;
    struct aster_serializer *serializer;
    int64_t ttl_ms;       /* of this run: short on a real clock */
    int64_t looked_at_ns; /* real clock: when the last call began, and what was slept on purpose since */
    int64_t slept_ns;
    int64_t unasked_ns;  /* real clock: what passed besides that, in the whole scenario */
    aster_status status; /* of the last call */
    struct aster_reply reply;
    struct aster_error error;
    const char *skipped; /* why, or NULL */
    bool failed;
    char why[512];
};

typedef void (*scenario_run)(struct scenario *s);

struct scenario_entry {
    const char *name;
    scenario_run run;
};

/* Each file of scenarios gives its own list, ended by an entry without a name. */
extern const struct scenario_entry aster_conformance_ownership[];
extern const struct scenario_entry aster_conformance_time[];
extern const struct scenario_entry aster_conformance_values[];
extern const struct scenario_entry aster_conformance_fences[];
extern const struct scenario_entry aster_conformance_names[];
extern const struct scenario_entry aster_conformance_threads[];
extern const struct scenario_entry aster_conformance_reads[];

void aster_conformance_fail(struct scenario *s, const char *file, int line, const char *expected);

/* Leave the scenario as failed unless `condition` holds. */
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            aster_conformance_fail(s, __FILE__, __LINE__, #condition);                                                 \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

/* Leave it as skipped. */
#define SKIP_IF(condition, reason)                                                                                     \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            s->skipped = (reason);                                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)

/* The call failed: no reason at all. */
#define FAILED ((enum aster_reason)99)

struct aster_operation aster_conformance_op(enum aster_operation_kind kind, const char *resource, const char *caller,
                                            int64_t epoch);
/* Block for the decision; s->status, s->reply and s->error have the rest. */
enum aster_reason aster_conformance_decide(struct scenario *s, const struct aster_operation *operation);
enum aster_reason aster_conformance_acquire(struct scenario *s, const char *resource, const char *candidate);
enum aster_reason aster_conformance_renew(struct scenario *s, const char *resource, const char *holder, int64_t epoch);
enum aster_reason aster_conformance_release(struct scenario *s, const char *resource, const char *holder,
                                            int64_t epoch);
enum aster_reason aster_conformance_revoke(struct scenario *s, const char *resource);
enum aster_reason aster_conformance_forget(struct scenario *s, const char *resource);
enum aster_reason aster_conformance_put(struct scenario *s, const char *resource, const char *writer, int64_t epoch,
                                        int64_t revision, const char *value);
const struct aster_snapshot *aster_conformance_look(struct scenario *s, const char *resource); /* NULL when it failed */
void aster_conformance_pass_time(struct scenario *s, int64_t ms);

/* A fenced write whose closure counts its runs. FAILED with s->status when there was no verdict. */
enum aster_reason aster_conformance_write(struct scenario *s, const char *resource, int64_t epoch, const char *holder,
                                          const char *writer, int *runs);

/* Short names inside the scenarios; the long ones keep the installed library's symbols apart from the user's. */
#define op aster_conformance_op
#define decide aster_conformance_decide
#define acquire aster_conformance_acquire
#define renew aster_conformance_renew
#define release aster_conformance_release
#define revoke aster_conformance_revoke
#define forget aster_conformance_forget
#define put aster_conformance_put
#define look aster_conformance_look
#define pass_time aster_conformance_pass_time
#define write_as aster_conformance_write

static inline bool is_text(struct aster_bytes bytes, const char *text)
{
    return aster_bytes_equal(bytes, aster_text(text)) != 0;
}

#endif
