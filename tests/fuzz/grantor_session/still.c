#include "grantor_session/still.h"

#include <stdlib.h>

#include "grantor/read_jobs.h"
#include "grantor/reader.h"
#include "grantor/session.h"

/* ---- the loop ---- */

struct aster_loop {
    struct aster_timers timers;
    struct aster_task *posted;
    struct aster_task **posted_end;
    int64_t now_ns;
};

static struct aster_loop loop;

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

aster_status aster_loop_create(const char *name, struct aster_loop **made, struct aster_error *error)
{
    (void)name;
    (void)error;
    *made = &loop;
    return ASTER_OK;
}

void aster_loop_destroy(struct aster_loop *unused)
{
    (void)unused;
}

void aster_loop_post(struct aster_loop *unused, struct aster_task *task)
{
    (void)unused;
    task->next = NULL;
    *loop.posted_end = task;
    loop.posted_end = &task->next;
}

aster_status aster_loop_call(struct aster_loop *unused, aster_status (*function)(void *argument), void *argument)
{
    (void)unused;
    return function(argument);
}

bool aster_loop_is_current(const struct aster_loop *unused)
{
    (void)unused;
    return true;
}

aster_status aster_loop_add(struct aster_loop *unused, struct aster_watch *watch, uint32_t events,
                            struct aster_error *error)
{
    (void)unused;
    (void)watch;
    (void)events;
    (void)error;
    abort(); /* there is no network here */
}

void aster_loop_change(struct aster_loop *unused, struct aster_watch *watch, uint32_t events)
{
    (void)unused;
    (void)watch;
    (void)events;
    abort();
}

void aster_loop_remove(struct aster_loop *unused, struct aster_watch *watch)
{
    (void)unused;
    (void)watch;
    abort();
}

struct aster_timers *aster_loop_timers(struct aster_loop *unused)
{
    (void)unused;
    return &loop.timers;
}

void aster_loop_round_add(struct aster_loop *unused, struct aster_round *round)
{
    (void)unused;
    (void)round;
}

void aster_loop_round_remove(struct aster_loop *unused, struct aster_round *round)
{
    (void)unused;
    (void)round;
}

int64_t aster_loop_now_ns(const struct aster_loop *unused)
{
    (void)unused;
    return loop.now_ns;
}

void still_run_posted(void)
{
    while (loop.posted != NULL) {
        struct aster_task *task = loop.posted;
        loop.posted = task->next;
        loop.posted_end = loop.posted == NULL ? &loop.posted : loop.posted_end;
        task->run(task);
    }
}

void still_advance_ns(int64_t ns)
{
    loop.now_ns += ns;
    aster_timers_fire(&loop.timers, loop.now_ns);
    still_run_posted();
}

/* ---- the reader ---- */

struct grantor_reader {
    struct grantor_state *state;
    struct grantor_page *page;
    struct grantor_ahead *ahead;
    struct grantor_job *jobs;
    struct grantor_job **jobs_end;
    int64_t revision;
    long watches;
};

static struct grantor_reader reader;

void grantor_reader_submit(struct grantor_reader *unused, struct grantor_job *job)
{
    (void)unused;
    job->next = NULL;
    *reader.jobs_end = job;
    reader.jobs_end = &job->next;
}

void grantor_reader_poke(struct grantor_reader *unused)
{
    (void)unused;
}

void grantor_reader_unwatch(struct grantor_reader *unused)
{
    (void)unused;
    must(--reader.watches >= 0);
}

/* Events borrow from the store during the visit only, so each is told at once. */
static bool tell(const struct aster_event *event, void *user)
{
    (void)user;
    struct grantor_happening happening = {NULL, *event};
    struct grantor_news news = {.state = reader.state, .first = &happening};
    reader.revision = event->revision;
    grantor_sessions_tell(reader.state, &news);
    return true;
}

void still_read(void)
{
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.after_revision = reader.revision;
    must(aster_history(reader.state->serializer, &query, tell, NULL, NULL) == ASTER_OK);
    struct grantor_job *job = reader.jobs;
    reader.jobs = NULL;
    reader.jobs_end = &reader.jobs;
    while (job != NULL) {
        struct grantor_job *next = job->next;
        grantor_job_do(job, reader.page, reader.ahead, reader.revision);
        reader.watches += job->kind == ASTER_CALL_WATCH && job->status == ASTER_OK;
        grantor_session_read(job);
        job = next;
    }
}

void still_init(struct grantor_state *state)
{
    loop = (struct aster_loop){.posted_end = &loop.posted, .now_ns = INT64_C(1000000000)};
    struct grantor_page *page = reader.page != NULL ? reader.page : grantor_page_create();
    must(page != NULL);
    struct grantor_ahead *ahead = grantor_ahead_create();
    must(ahead != NULL);
    reader = (struct grantor_reader){.state = state, .page = page, .ahead = ahead, .jobs_end = &reader.jobs};
    state->loop = &loop;
    state->reader = &reader;
}

void still_fini(void)
{
    must(loop.posted == NULL && reader.jobs == NULL && reader.watches == 0);
    must(aster_timers_next(&loop.timers) == INT64_MAX);
    aster_timers_fini(&loop.timers);
    grantor_ahead_destroy(reader.ahead);
}
