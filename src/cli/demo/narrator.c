#include "cli/demo/narrator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum demo_lane lane_of(enum demo_worker worker)
{
    return worker == DEMO_WORKER_A ? DEMO_LANE_A : DEMO_LANE_B;
}

static void narrate_grant(struct demo_act *act, const struct demo_script *script, enum demo_lane lane,
                          const struct demo_message *message)
{
    char label[32];
    snprintf(label, sizeof label, "%s %" PRId64, script->term, message->epoch);
    bool takeover = strcmp(message->word, "TAKEOVER") == 0;
    if (takeover) {
        aster_demo_act_span_close(act, DEMO_LANE_A, DEMO_SPAN_LEASE, message->at_ns);
        aster_demo_act_add(act, message->at_ns, lane, DEMO_MARK_GRANTED, message->epoch,
                           "the lease has run out: takes over from %s with %s", message->text, label);
    } else {
        aster_demo_act_add(act, message->at_ns, lane, DEMO_MARK_GRANTED, message->epoch,
                           "acquires " DEMO_RESOURCE ": %s, ttl %" PRId64 " ms", label, script->ttl_ms);
    }
    aster_demo_act_span_close(act, lane, DEMO_SPAN_WAITING, message->at_ns);
    aster_demo_act_span_open(act, lane, DEMO_SPAN_LEASE, message->epoch, message->at_ns, label);
}

static void narrate_publication(struct demo_act *act, const struct demo_facts *facts, enum demo_worker worker,
                                const struct demo_message *message)
{
    char label[64];
    bool over_newer = worker == DEMO_WORKER_A && facts->heard[DEMO_WORKER_B][DEMO_SAYS_PUBLISHED];
    snprintf(label, sizeof label, "EUR %.24s by %s", message->text, aster_demo_lane_name(act, lane_of(worker)));
    aster_demo_act_span_close(act, DEMO_LANE_STORE, DEMO_SPAN_CONTENT, message->at_ns);
    if (over_newer) {
        aster_demo_act_add(act, message->at_ns, DEMO_LANE_A, DEMO_MARK_CORRUPTED, message->epoch,
                           "late write ACCEPTED: EUR %s over B's %s", message->text,
                           facts->said[DEMO_WORKER_B][DEMO_SAYS_PUBLISHED].text);
        aster_demo_act_span_open(act, DEMO_LANE_STORE, DEMO_SPAN_STALE, message->epoch, message->at_ns, label);
    } else {
        aster_demo_act_add(act, message->at_ns, lane_of(worker), DEMO_MARK_WRITTEN, message->epoch,
                           "publishes its invoice of EUR %s (%" PRId64 " bytes of PDF)", message->text, message->count);
        aster_demo_act_span_open(act, DEMO_LANE_STORE, DEMO_SPAN_CONTENT, message->epoch, message->at_ns, label);
    }
}

static void narrate_rejection(struct demo_act *act, const struct demo_message *message)
{
    aster_demo_act_add(act, message->at_ns, DEMO_LANE_A, DEMO_MARK_REJECTED, message->epoch,
                       "late write REJECTED: %s, epoch %" PRId64 " against %" PRId64, message->word, message->epoch,
                       message->count);
}

/* A trigger's message is "...aster: REASON: explanation". */
static void narrate_guard(struct demo_act *act, enum demo_lane lane, const struct demo_message *message)
{
    static const char prefix[] = "aster: ";
    const char *reason = strstr(message->text, prefix);
    reason = reason != NULL ? reason + sizeof prefix - 1 : message->text;
    bool refused = strcmp(message->word, "refused") == 0;
    struct demo_event *event = aster_demo_act_add(
        act, message->at_ns, lane, refused ? DEMO_MARK_REJECTED : DEMO_MARK_CORRUPTED, message->epoch,
        "plain SQL under its old fence: %s %.*s", message->word, (int)strcspn(reason, ":"), reason);
    event->key = false;
}

void aster_demo_narrate(struct demo_act *act, const struct demo_script *script, const struct demo_facts *facts,
                        enum demo_worker worker, const struct demo_message *message)
{
    enum demo_lane lane = lane_of(worker);
    int64_t at_ns = message->at_ns;
    int64_t epoch = message->epoch;
    switch (message->kind) {
    case DEMO_SAYS_DENIED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_DENIED, epoch, "asks for the lease: %s (%s, %s %" PRId64 ")",
                           message->word, message->text, script->term, epoch);
        break;
    case DEMO_SAYS_WAITING:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_NOTE, 0, "waits for it");
        aster_demo_act_span_open(act, lane, DEMO_SPAN_WAITING, 0, at_ns, "waiting");
        break;
    case DEMO_SAYS_GRANTED:
        narrate_grant(act, script, lane, message);
        break;
    case DEMO_SAYS_RENEWED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_RENEWED, epoch, "renews (%" PRId64 ") while it renders",
                           message->count);
        break;
    case DEMO_SAYS_RENDERED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_NOTE, epoch, "has rendered EUR %s in %" PRId64 " ms",
                           message->text, message->count);
        break;
    case DEMO_SAYS_ARMED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_NOTE, epoch, "checks: %s %" PRId64 " is valid, so it writes",
                           script->term, epoch);
        break;
    case DEMO_SAYS_PUBLISHED:
        narrate_publication(act, facts, worker, message);
        break;
    case DEMO_SAYS_REJECTED:
        narrate_rejection(act, message);
        break;
    case DEMO_SAYS_GUARDED:
        narrate_guard(act, lane, message);
        break;
    case DEMO_SAYS_ENDED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_NOTE, 0, "its lease handle is %s and supplies %s", message->word,
                           message->count != 0 ? "A FENCE" : "no fence")
            ->key = script->incident->still_runs;
        break;
    case DEMO_SAYS_RELEASED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_RELEASED, epoch, "releases the lease");
        aster_demo_act_span_close(act, lane, DEMO_SPAN_LEASE, at_ns);
        break;
    case DEMO_SAYS_FAILED:
        aster_demo_act_add(act, at_ns, lane, DEMO_MARK_NOTE, 0, "FAILED: %s", message->text);
        break;
    case DEMO_SAYS_STEP:
    case DEMO_SAYS_KINDS:
        break;
    }
}

void aster_demo_narrate_begin(struct demo_act *act, const struct demo_incident *incident, int64_t at_ns)
{
    aster_demo_act_add(act, at_ns, DEMO_LANE_A, DEMO_MARK_STOPPED, 0, "%s", incident->begins);
    aster_demo_act_span_open(act, DEMO_LANE_A, DEMO_SPAN_PAUSED, 0, at_ns, "out");
}

void aster_demo_narrate_end(struct demo_act *act, const struct demo_incident *incident, int64_t at_ns)
{
    aster_demo_act_add(act, at_ns, DEMO_LANE_A, DEMO_MARK_CONTINUED, 0, "%s", incident->ends);
    aster_demo_act_span_close(act, DEMO_LANE_A, DEMO_SPAN_PAUSED, at_ns);
}
