#include "grantor/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "grantor/audit_log.h"
#include "grantor/log.h"
#include "grantor/read_jobs.h"
#include "grantor/session.h"
#include "platform/files.h"
#include "platform/thread.h"

#define IDLE_NS INT64_C(100000000) /* expiries happen without a request */
#define GAP_NS INT64_C(2000000)    /* between two looks: what is decided meanwhile is read together */

struct grantor_reader {
    struct grantor_state *state;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct grantor_job *jobs; /* under the lock from here on */
    struct grantor_job **jobs_end;
    bool poked;
    bool stopping;
    size_t watches;
    int64_t revision; /* the thread's own from here on: up to where the history has been followed */
    bool quiet;       /* the first look only learns where the history ends */
    bool failing;
    struct grantor_news *news; /* of this look; NULL when nobody watches */
    struct grantor_page *page;
    struct grantor_ahead *ahead;
    struct grantor_gathering lines; /* of one look */
};

static void run_job(struct aster_task *task)
{
    grantor_session_read((struct grantor_job *)(void *)task);
}

static void run_news(struct aster_task *task)
{
    struct grantor_news *news = (struct grantor_news *)(void *)task;
    grantor_sessions_tell(news->state, news);
    while (news->first != NULL) {
        struct grantor_happening *next = news->first->next;
        free(news->first);
        news->first = next;
    }
    free(news);
}

static void keep(struct aster_bytes *bytes, char **to)
{
    if (bytes->size > 0) {
        memcpy(*to, bytes->data, bytes->size);
    }
    bytes->data = *to;
    *to += bytes->size;
}

static void add_news(struct grantor_news *news, const struct aster_event *event)
{
    struct grantor_happening *happening =
        malloc(sizeof *happening + event->resource.size + event->actor.size + event->previous.size);
    if (happening == NULL) {
        news->lost = true;
        return;
    }
    char *to = happening->bytes;
    happening->next = NULL;
    happening->event = *event;
    keep(&happening->event.resource, &to);
    keep(&happening->event.actor, &to);
    keep(&happening->event.previous, &to);
    *news->end = happening;
    news->end = &happening->next;
}

static bool follow(const struct aster_event *event, void *user)
{
    struct grantor_reader *reader = user;
    reader->revision = event->revision;
    if (!reader->quiet) {
        grantor_count_event(&reader->state->counters, event);
        grantor_audit_log(event);
    }
    if (reader->news != NULL) {
        add_news(reader->news, event);
    }
    return true;
}

static struct grantor_news *news_create(struct grantor_state *state)
{
    struct grantor_news *news = calloc(1, sizeof *news);
    if (news != NULL) {
        news->task.run = run_news;
        news->state = state;
        news->end = &news->first;
    }
    return news;
}

static void report(struct grantor_reader *reader, aster_status status, const struct aster_error *error)
{
    struct grantor_line line;
    if (status != ASTER_OK && status != ASTER_ERR_CLOSED && !reader->failing) { /* once, not at every look */
        grantor_line_init(&line, GRANTOR_ERROR, "history-unreadable");
        grantor_line_text(&line, "error", error->message);
        grantor_line_end(&line);
    }
    if (status != ASTER_OK && status != ASTER_ERR_CLOSED) {
        grantor_store_failed(&reader->state->counters);
    }
    reader->failing = status != ASTER_OK;
}

static void look(struct grantor_reader *reader, bool watched)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    query.after_revision = reader->revision;
    reader->news = watched ? news_create(reader->state) : NULL;
    grantor_log_gather(&reader->lines);
    aster_status status = aster_history(reader->state->serializer, &query, follow, reader, &error);
    grantor_log_gather(NULL);
    report(reader, status, &error);
    if (reader->news != NULL && reader->news->first != NULL) {
        aster_loop_post(reader->state->loop, &reader->news->task);
    } else {
        free(reader->news);
    }
    reader->news = NULL;
}

static void do_job(struct grantor_reader *reader, struct grantor_job *job)
{
    grantor_job_do(job, reader->page, reader->ahead, reader->revision);
    if (job->kind == ASTER_CALL_WATCH && job->status == ASTER_OK) {
        pthread_mutex_lock(&reader->lock);
        reader->watches++;
        pthread_mutex_unlock(&reader->lock);
    }
    aster_loop_post(reader->state->loop, &job->task);
}

/* Under the lock: wait for work, or for the time of a look without any. */
static void rest(struct grantor_reader *reader)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + IDLE_NS;
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int code = 0;
    while (reader->jobs == NULL && !reader->poked && !reader->stopping && code == 0) {
        code = pthread_cond_timedwait(&reader->changed, &reader->lock, &until);
    }
}

static void *run(void *argument)
{
    struct grantor_reader *reader = argument;
    bool stopping = false;
    look(reader, false);
    reader->quiet = false;
    while (!stopping) {
        pthread_mutex_lock(&reader->lock);
        rest(reader);
        struct grantor_job *job = reader->jobs;
        if (job != NULL) {
            reader->jobs = job->next;
            reader->jobs_end = reader->jobs == NULL ? &reader->jobs : reader->jobs_end;
        }
        reader->poked = false;
        stopping = reader->stopping && job == NULL;
        bool watched = reader->watches > 0;
        pthread_mutex_unlock(&reader->lock);
        look(reader, watched);
        if (job != NULL) {
            do_job(reader, job);
        } else if (!stopping) {
            aster_pause_ns(GAP_NS);
        }
    }
    return NULL;
}

static void destroy(struct grantor_reader *reader)
{
    grantor_ahead_destroy(reader->ahead);
    grantor_page_destroy(reader->page);
    pthread_cond_destroy(&reader->changed);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

aster_status grantor_reader_create(struct grantor_state *state, struct grantor_reader **reader,
                                   struct aster_error *error)
{
    struct grantor_reader *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the reader");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&made->lock, NULL);
    made->state = state;
    made->jobs_end = &made->jobs;
    made->quiet = true;
    made->page = grantor_page_create();
    made->ahead = grantor_ahead_create();
    int code = made->page == NULL || made->ahead == NULL ? ENOMEM : aster_thread_start(&made->thread, run, made);
    if (code != 0) {
        destroy(made);
        return aster_error_set_os(error, ASTER_ERR_IO, code, "the reader's thread cannot be started");
    }
    *reader = made;
    return ASTER_OK;
}

void grantor_reader_destroy(struct grantor_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    pthread_mutex_lock(&reader->lock);
    reader->stopping = true;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    destroy(reader);
}

void grantor_reader_submit(struct grantor_reader *reader, struct grantor_job *job)
{
    job->task.run = run_job;
    job->next = NULL;
    pthread_mutex_lock(&reader->lock);
    *reader->jobs_end = job;
    reader->jobs_end = &job->next;
    pthread_cond_signal(&reader->changed);
    pthread_mutex_unlock(&reader->lock);
}

void grantor_reader_poke(struct grantor_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    pthread_mutex_lock(&reader->lock);
    bool first = !reader->poked;
    reader->poked = true;
    if (first) {
        pthread_cond_signal(&reader->changed);
    }
    pthread_mutex_unlock(&reader->lock);
}

void grantor_reader_unwatch(struct grantor_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    pthread_mutex_lock(&reader->lock);
    reader->watches--;
    pthread_mutex_unlock(&reader->lock);
}
