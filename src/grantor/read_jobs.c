#include "grantor/read_jobs.h"

#include <stdlib.h>

#include "base/error.h"
#include "grantor/limits.h"
#include "grantor/session.h"

/* Messages of one reply, which bound what a read may cost: a longer history is asked for again, a watch that begins too
 * far back is told that it lost events. */
#define HISTORY_CHUNKS_MAX 16
#define WATCH_CHUNKS_MAX 256

/* One walk over rows or events. */
struct walk {
    struct grantor_job *job;
    struct grantor_page *page;
    size_t chunks;
    size_t chunks_max;
    int64_t last; /* revision of the last event that was seen */
    int64_t stop; /* and the last that is wanted */
    int64_t skip; /* HISTORY with a limit: so many are too old */
    int64_t matching;
    bool counting;
    bool more;
    bool lost;
    bool failed;
    bool full; /* too much of what was found waits to be sent */
};

/* Nobody waits for the answer any more. */
static bool is_moot(const struct walk *walk)
{
    return atomic_load_explicit(&walk->job->session->gone, memory_order_relaxed);
}

static bool visit_row(const struct aster_snapshot *row, void *user)
{
    struct walk *walk = user;
    struct grantor_job *job = walk->job;
    if (is_moot(walk)) {
        walk->more = true; /* and that is the end */
        return false;
    }
    if (!grantor_admission_reaches(job->state->admission, job->identity, row->resource)) {
        return true;
    }
    if ((job->limit > 0 && walk->page->count == job->limit) || !grantor_page_add_row(walk->page, row)) {
        walk->more = true;
        return false;
    }
    return true;
}

static void add_chunk(struct walk *walk, struct grantor_chunk *chunk)
{
    struct grantor_job *job = walk->job;
    if (chunk == NULL) {
        walk->failed = true;
        return;
    }
    job->state->read_bytes += chunk->size;
    job->peer->read_bytes += chunk->size;
    walk->full = !grantor_limits_have_room_for_reads(job->state, job->peer);
    *walk->job->chunks_end = chunk;
    walk->job->chunks_end = &chunk->next;
    walk->chunks++;
    walk->lost = false;
    grantor_page_clear(walk->page);
}

static bool wanted(const struct walk *walk, const struct aster_event *event)
{
    const struct grantor_job *job = walk->job;
    return (job->name.size == 0 || aster_bytes_equal(job->name, event->resource)) &&
           grantor_admission_reaches(job->state->admission, job->identity, event->resource);
}

static bool visit_event(const struct aster_event *event, void *user)
{
    struct walk *walk = user;
    if (event->revision > walk->stop || is_moot(walk)) {
        return false;
    }
    if (walk->last == 0 && walk->job->after_revision > 0 && event->revision > walk->job->after_revision + 1) {
        walk->lost = true; /* what came between is no longer kept */
    }
    int64_t before = walk->last;
    walk->last = event->revision;
    if (!wanted(walk, event)) {
        return true;
    }
    if (walk->counting) {
        walk->matching++;
        return true;
    }
    if (walk->skip > 0) {
        walk->skip--;
        return true;
    }
    if (grantor_page_add_event(walk->page, event)) {
        return true;
    }
    const struct grantor_page_end end = {.revision = before, .more = true, .lost = walk->lost};
    add_chunk(walk, grantor_page_events(walk->page, walk->job->id, &end));
    if (walk->chunks >= walk->chunks_max || walk->failed || walk->full) {
        walk->last = before;
        return false;
    }
    return grantor_page_add_event(walk->page, event);
}

static aster_status walk_history(struct walk *walk, struct aster_error *error)
{
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.after_revision = walk->job->after_revision;
    walk->last = 0;
    return aster_history(walk->job->state->serializer, &query, visit_event, walk, error);
}

/* The store filters by name, but not by what the caller may see: so the newest `limit` are counted here. */
static aster_status skip_old(struct walk *walk, struct aster_error *error)
{
    if (walk->job->kind != ASTER_CALL_HISTORY || walk->job->limit == 0) {
        return ASTER_OK;
    }
    walk->counting = true;
    aster_status status = walk_history(walk, error);
    walk->counting = false;
    walk->skip = walk->matching > walk->job->limit ? walk->matching - (int64_t)walk->job->limit : 0;
    walk->lost = false;
    return status;
}

static aster_status read_events(struct walk *walk, int64_t revision, struct aster_error *error)
{
    struct grantor_job *job = walk->job;
    bool watch = job->kind == ASTER_CALL_WATCH;
    walk->stop = watch ? revision : INT64_MAX;
    walk->chunks_max = watch ? WATCH_CHUNKS_MAX : HISTORY_CHUNKS_MAX;
    aster_status status = skip_old(walk, error);
    if (status == ASTER_OK) {
        status = walk_history(walk, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    bool cut = walk->chunks >= walk->chunks_max;
    int64_t reached = walk->last > job->after_revision ? walk->last : job->after_revision;
    job->revision = watch && !cut ? revision : reached;
    const struct grantor_page_end end = {
        .revision = job->revision, .more = watch, .lost = walk->lost || (watch && cut), .cut = cut && !watch};
    add_chunk(walk, grantor_page_events(walk->page, job->id, &end));
    return ASTER_OK;
}

void grantor_job_do(struct grantor_job *job, struct grantor_page *page, struct grantor_ahead *ahead, int64_t revision)
{
    struct walk walk = {.job = job, .page = page};
    grantor_page_clear(page);
    if (job->kind == ASTER_CALL_LIST) {
        size_t count = job->limit > 0 && job->limit < GRANTOR_PAGE_MAX ? job->limit : GRANTOR_PAGE_MAX;
        job->status = grantor_ahead_list(ahead, job->state->serializer, job->name, job->after, count + 1, visit_row,
                                         &walk, &job->error);
        if (job->status == ASTER_OK) {
            add_chunk(&walk, grantor_page_rows(page, job->id, walk.more));
        }
    } else {
        job->status = read_events(&walk, revision, &job->error);
    }
    if (job->status == ASTER_OK && walk.failed) {
        job->status = aster_error_set(&job->error, ASTER_ERR_NOMEM, "no memory for the answer: ask for less");
    } else if (job->status == ASTER_OK && walk.full) {
        job->status = aster_error_set(&job->error, ASTER_ERR_LIMIT,
                                      "too many replies wait to be read: read them before asking more");
    }
}
