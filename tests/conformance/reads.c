/* The advisory reads: list and history, where they are offered. */
#include <stdio.h>

#include "kit.h"

#define SEEN_MAX 32

struct seen {
    int count;
    int stop_after;
    bool ordered;
    char last[64];
    enum aster_event_kind kinds[SEEN_MAX];
    int64_t epochs[SEEN_MAX];
    int64_t revisions[SEEN_MAX];
    enum aster_reason reason;
    int64_t carried_epoch;
};

static bool see_row(const struct aster_snapshot *row, void *user)
{
    struct seen *seen = user;
    char name[64] = {0};
    memcpy(name, row->resource.data, row->resource.size < sizeof name ? row->resource.size : sizeof name - 1);
    seen->ordered = seen->ordered && strcmp(seen->last, name) < 0;
    memcpy(seen->last, name, sizeof name);
    seen->count++;
    return seen->count != seen->stop_after;
}

static void list_visits_the_rows_of_a_prefix_in_byte_order(struct scenario *s)
{
    static const char *const names[] = {"b/2", "a/1", "b/10", "c", "b/1", "B/1", "b"};
    struct seen seen = {.ordered = true};
    s->status = aster_list(s->serializer, aster_text(""), see_row, &seen, &s->error);
    SKIP_IF(s->status == ASTER_ERR_UNSUPPORTED, "the serializer offers no list");
    EXPECT(s->status == ASTER_OK && seen.count == 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        EXPECT(acquire(s, names[i], "a") == ASTER_REASON_NONE);
    }
    EXPECT(release(s, "b/1", "a", 1) == ASTER_REASON_NONE);
    EXPECT(aster_list(s->serializer, aster_text(""), see_row, &seen, &s->error) == ASTER_OK);
    EXPECT(seen.count == 7 && seen.ordered);
    seen = (struct seen){.ordered = true};
    EXPECT(aster_list(s->serializer, aster_text("b/"), see_row, &seen, &s->error) == ASTER_OK);
    EXPECT(seen.count == 3 && seen.ordered && strcmp(seen.last, "b/2") == 0);
    seen = (struct seen){.ordered = true, .stop_after = 2};
    EXPECT(aster_list(s->serializer, aster_text("b"), see_row, &seen, &s->error) == ASTER_OK && seen.count == 2);
}

static void list_goes_on_after_a_name(struct scenario *s)
{
    struct aster_list_query query = ASTER_LIST_QUERY_INIT;
    struct seen seen = {.ordered = true};
    char name[16];
    int total = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "p/%02d", i * 7 % 20);
        EXPECT(acquire(s, name, "a") == ASTER_REASON_NONE);
    }
    EXPECT(acquire(s, "a", "a") == ASTER_REASON_NONE && acquire(s, "q", "a") == ASTER_REASON_NONE);
    query.prefix = aster_text("p/");
    query.limit = 6;
    s->status = aster_list_page(s->serializer, &query, see_row, &seen, &s->error);
    SKIP_IF(s->status == ASTER_ERR_UNSUPPORTED, "the serializer offers no list");
    while (seen.count > 0) {
        EXPECT(s->status == ASTER_OK && seen.ordered && seen.count <= 6);
        total += seen.count;
        snprintf(name, sizeof name, "p/%02d", total - 1);
        EXPECT(strcmp(seen.last, name) == 0); /* the smallest come first, and none is left out */
        query.after = aster_text(name);
        seen = (struct seen){.ordered = true};
        s->status = aster_list_page(s->serializer, &query, see_row, &seen, &s->error);
    }
    EXPECT(s->status == ASTER_OK && total == 20);
    query.after = aster_text("p/175"); /* a name between two, which need not exist */
    query.limit = 0;
    EXPECT(aster_list_page(s->serializer, &query, see_row, &seen, &s->error) == ASTER_OK && seen.count == 2);
    seen = (struct seen){.ordered = true};
    query.after = aster_text("z");
    EXPECT(aster_list_page(s->serializer, &query, see_row, &seen, &s->error) == ASTER_OK && seen.count == 0);
}

static bool see_event(const struct aster_event *event, void *user)
{
    struct seen *seen = user;
    if (seen->count < SEEN_MAX) {
        seen->kinds[seen->count] = event->kind;
        seen->epochs[seen->count] = event->epoch;
        seen->revisions[seen->count] = event->revision;
    }
    seen->reason = event->reason;
    seen->carried_epoch = event->carried_epoch;
    seen->count++;
    return seen->count != seen->stop_after;
}

static aster_status read_history(struct scenario *s, const char *resource, int64_t after, size_t limit,
                                 struct seen *seen)
{
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    *seen = (struct seen){0};
    query.resource = aster_text(resource);
    query.after_revision = after;
    query.limit = limit;
    return aster_history(s->serializer, &query, see_event, seen, &s->error);
}

static void history_tells_every_change_of_ownership_in_order(struct scenario *s)
{
    struct seen seen;
    s->status = read_history(s, "r", 0, 0, &seen);
    SKIP_IF(s->status == ASTER_ERR_UNSUPPORTED, "the serializer offers no history");
    EXPECT(s->status == ASTER_OK && seen.count == 0);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(acquire(s, "other", "a") == ASTER_REASON_NONE);
    EXPECT(renew(s, "r", "a", 1) == ASTER_REASON_NONE);
    pass_time(s, s->ttl_ms);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE);
    EXPECT(put(s, "r", "a", 1, 0, "x") == ASTER_REASON_STALE_EPOCH);
    EXPECT(release(s, "r", "b", 2) == ASTER_REASON_NONE);
    EXPECT(revoke(s, "r") == ASTER_REASON_NONE);
    EXPECT(forget(s, "r") == ASTER_REASON_NONE);
    static const enum aster_event_kind kinds[] = {ASTER_EVENT_GRANTED,        ASTER_EVENT_TAKEOVER,
                                                  ASTER_EVENT_FENCE_REJECTED, ASTER_EVENT_RELEASED,
                                                  ASTER_EVENT_REVOKED,        ASTER_EVENT_FORGOTTEN};
    static const int64_t epochs[] = {1, 2, 2, 3, 4, 4};
    EXPECT(read_history(s, "r", 0, 0, &seen) == ASTER_OK && seen.count == 6);
    for (int i = 0; i < 6; i++) {
        EXPECT(seen.kinds[i] == kinds[i] && seen.epochs[i] == epochs[i]);
        EXPECT(i == 0 || seen.revisions[i] > seen.revisions[i - 1]);
    }
    int64_t third = seen.revisions[2];
    EXPECT(read_history(s, "r", third - 1, 0, &seen) == ASTER_OK && seen.count == 4);
    EXPECT(read_history(s, "r", 0, 2, &seen) == ASTER_OK && seen.count == 2 && seen.kinds[0] == ASTER_EVENT_REVOKED);
    EXPECT(read_history(s, "", 0, 0, &seen) == ASTER_OK && seen.count == 7);
}

static void a_rejected_fence_is_in_the_history_with_what_it_carried(struct scenario *s)
{
    struct seen seen;
    s->status = read_history(s, "r", 0, 0, &seen);
    SKIP_IF(s->status == ASTER_ERR_UNSUPPORTED, "the serializer offers no history");
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    int runs = 0;
    enum aster_reason reason = write_as(s, "r", 9, "a", "a", &runs);
    SKIP_IF(reason == FAILED && s->status == ASTER_ERR_UNSUPPORTED, "the serializer offers no fenced write");
    EXPECT(reason == ASTER_REASON_FUTURE_EPOCH && runs == 0);
    EXPECT(read_history(s, "r", 0, 1, &seen) == ASTER_OK && seen.count == 1);
    EXPECT(seen.kinds[0] == ASTER_EVENT_FENCE_REJECTED && seen.reason == ASTER_REASON_FUTURE_EPOCH);
    EXPECT(seen.carried_epoch == 9 && seen.epochs[0] == 1);
}

const struct scenario_entry aster_conformance_reads[] = {
    {"list visits the rows of a prefix in byte order", list_visits_the_rows_of_a_prefix_in_byte_order},
    {"list goes on after a name", list_goes_on_after_a_name},
    {"history tells every change of ownership in order", history_tells_every_change_of_ownership_in_order},
    {"a rejected fence is in the history with what it carried",
     a_rejected_fence_is_in_the_history_with_what_it_carried},
    {NULL, NULL},
};
