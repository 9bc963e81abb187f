/* List, history and watch: the reader does the work, and what it found leaves when there is room, after the decisions.
 */
#include <stdlib.h>

#include "base/error.h"
#include "grantor/limits.h"
#include "grantor/session.h"

#define READS_MAX 8
#define WATCHERS_MAX 64
#define BACKLOG_MAX 1048576 /* bytes of news that wait for a slow reader */
#define LINK_ROOM 131072    /* decisions always find room beside what reads have sent */

static struct aster_bytes keep(struct aster_bytes bytes, char **to)
{
    struct aster_bytes kept = {*to, bytes.size};
    if (bytes.size > 0) {
        memcpy(*to, bytes.data, bytes.size);
        *to += bytes.size;
    }
    return kept;
}

static struct grantor_job *job_create(struct grantor_session *session, const struct aster_call *call)
{
    struct aster_bytes identity = aster_link_identity(session->link);
    struct aster_bytes name = call->kind == ASTER_CALL_LIST ? call->list.prefix : call->events.resource;
    struct aster_bytes after = call->kind == ASTER_CALL_LIST ? call->list.after : (struct aster_bytes){NULL, 0};
    struct grantor_job *job = calloc(1, sizeof *job + identity.size + name.size + after.size);
    if (job == NULL) {
        return NULL;
    }
    char *to = job->bytes;
    job->identity = keep(identity, &to);
    job->name = keep(name, &to);
    job->after = keep(after, &to);
    job->state = session->state;
    job->session = session;
    job->peer = session->peer;
    job->id = call->id;
    job->kind = call->kind;
    job->after_revision = call->kind == ASTER_CALL_LIST ? 0 : call->events.after_revision;
    job->limit = call->kind == ASTER_CALL_LIST ? call->list.limit : call->events.limit;
    job->chunks_end = &job->chunks;
    return job;
}

static int verb_of(enum aster_call_kind kind)
{
    return kind == ASTER_CALL_LIST      ? ASTER_VERB_LIST
           : kind == ASTER_CALL_HISTORY ? ASTER_VERB_HISTORY
                                        : ASTER_VERB_WATCH;
}

static bool may_watch(const struct grantor_session *session, struct aster_bytes resource)
{
    struct grantor_admission *admission = session->state->admission;
    struct aster_bytes identity = aster_link_identity(session->link);
    return grantor_admission_may(admission, identity, ASTER_VERB_WATCH) &&
           (resource.size == 0 || grantor_admission_reaches(admission, identity, resource));
}

bool grantor_session_begin_read(struct grantor_session *session, uint64_t id)
{
    struct aster_error error;
    if (session->reads >= READS_MAX || session->watcher_count >= WATCHERS_MAX || session->chunk_bytes > BACKLOG_MAX) {
        aster_error_set(&error, ASTER_ERR_LIMIT,
                        "%d reads at once and %d watches are the limit of a connection: wait for some", READS_MAX,
                        WATCHERS_MAX);
        grantor_session_fail(session, id, error.status, error.message);
        return false;
    }
    session->reads++;
    return true;
}

void grantor_session_end_read(struct grantor_session *session)
{
    session->reads--;
    grantor_session_release(session);
}

void grantor_session_ask(struct grantor_session *session, const struct aster_call *call)
{
    struct grantor_state *state = session->state;
    int verb = verb_of(call->kind);
    struct aster_error error;
    if (verb == ASTER_VERB_WATCH ? !may_watch(session, call->events.resource)
                                 : !grantor_admission_may(state->admission, aster_link_identity(session->link), verb)) {
        grantor_session_deny(session, call->id, aster_verb_name(verb));
        return;
    }
    if (!grantor_session_begin_read(session, call->id)) {
        return;
    }
    if (!grantor_limits_take_read(state, session->peer, call->kind == ASTER_CALL_WATCH, &error)) {
        grantor_session_end_read(session);
        grantor_session_fail(session, call->id, error.status, error.message);
        return;
    }
    struct grantor_job *job = job_create(session, call);
    if (job == NULL) {
        grantor_session_end_read(session);
        grantor_session_fail(session, call->id, ASTER_ERR_NOMEM, "no memory for the read");
        return;
    }
    session->peer->reads++;
    session->peer->watches += call->kind == ASTER_CALL_WATCH;
    state->reads++;
    grantor_reader_submit(state->reader, job);
}

static void free_chunk(struct grantor_state *state, struct grantor_peer *peer, struct grantor_chunk *chunk)
{
    state->read_bytes -= chunk->size;
    peer->read_bytes -= chunk->size;
    free(chunk);
}

static void free_chunks(struct grantor_state *state, struct grantor_peer *peer, struct grantor_chunk *chunk)
{
    while (chunk != NULL) {
        struct grantor_chunk *next = chunk->next;
        free_chunk(state, peer, chunk);
        chunk = next;
    }
}

static void append(struct grantor_session *session, struct grantor_chunk *chunk)
{
    *session->chunks_end = chunk;
    for (; chunk != NULL; chunk = chunk->next) {
        session->chunk_bytes += chunk->size;
        session->chunks_end = &chunk->next;
    }
}

static bool watch(struct grantor_session *session, const struct grantor_job *job)
{
    struct grantor_watcher *watcher = calloc(1, sizeof *watcher + job->name.size);
    if (watcher == NULL) {
        return false;
    }
    watcher->id = job->id;
    watcher->revision = job->revision;
    watcher->size = job->name.size;
    if (job->name.size > 0) {
        memcpy(watcher->resource, job->name.data, job->name.size);
    }
    watcher->next = session->watchers;
    session->watchers = watcher;
    session->watcher_count++;
    return true;
}

void grantor_session_release(struct grantor_session *session)
{
    if (session->link == NULL && session->reads == 0) {
        free(session);
    }
}

/* Its result was taken over or freed. */
static void count_down(struct grantor_job *job, bool watching)
{
    job->state->reads--;
    job->session->reads--;
    job->peer->reads--;
    job->peer->watches -= job->kind == ASTER_CALL_WATCH && !watching;
    grantor_peers_settle(job->state->peers, job->peer);
}

void grantor_session_read(struct grantor_job *job)
{
    struct grantor_session *session = job->session;
    bool counted = job->kind == ASTER_CALL_WATCH && job->status == ASTER_OK;
    bool may = counted && !session->failed && may_watch(session, job->name); /* still */
    bool watching = may && watch(session, job);
    if (counted && !watching) {
        grantor_reader_unwatch(job->state->reader);
    }
    if (session->failed) {
        free_chunks(job->state, job->peer, job->chunks);
    } else if (counted && !may) {
        free_chunks(job->state, job->peer, job->chunks);
        grantor_session_deny(session, job->id, aster_verb_name(ASTER_VERB_WATCH));
    } else if (job->status != ASTER_OK || (counted && !watching)) {
        free_chunks(job->state, job->peer, job->chunks);
        grantor_session_fail(session, job->id, job->status != ASTER_OK ? job->status : ASTER_ERR_NOMEM,
                             job->error.message);
    } else {
        append(session, job->chunks);
        grantor_session_pump(session);
    }
    count_down(job, watching);
    grantor_session_release(session);
    free(job);
}

static void unwatch(struct grantor_session *session, struct grantor_watcher **at)
{
    struct grantor_watcher *watcher = *at;
    *at = watcher->next;
    session->watcher_count--;
    session->peer->watches--;
    grantor_reader_unwatch(session->state->reader);
    free(watcher);
}

bool grantor_session_unwatch(struct grantor_session *session, uint64_t id)
{
    struct grantor_watcher **at = &session->watchers;
    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        return false;
    }
    unwatch(session, at);
    grantor_session_fail(session, id, ASTER_ERR_CANCELLED, "the client cancelled");
    return true;
}

void grantor_session_recheck(struct grantor_session *session)
{
    struct grantor_watcher **at = &session->watchers;
    while (*at != NULL && !session->failed) {
        if (may_watch(session, (struct aster_bytes){(*at)->resource, (*at)->size})) {
            at = &(*at)->next;
            continue;
        }
        uint64_t id = (*at)->id;
        unwatch(session, at);
        grantor_session_deny(session, id, aster_verb_name(ASTER_VERB_WATCH));
    }
}

void grantor_session_forget_reads(struct grantor_session *session)
{
    while (session->watchers != NULL) {
        unwatch(session, &session->watchers);
    }
    free_chunks(session->state, session->peer, session->chunks);
    session->chunk_bytes = 0;
    session->chunks = NULL;
    session->chunks_end = &session->chunks;
}

/* A reader that has caught up learns what it missed. */
static void confess(struct grantor_session *session)
{
    for (struct grantor_watcher *watcher = session->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->lost && !session->failed) {
            struct aster_answer answer = {.id = watcher->id, .kind = ASTER_ANSWER_EVENTS};
            answer.events.more = true;
            answer.events.revision = watcher->revision;
            answer.events.lost = true;
            watcher->lost = !grantor_session_send(session, &answer);
        }
    }
}

void grantor_session_pump(struct grantor_session *session)
{
    while (session->chunks != NULL && !session->failed && session->held == NULL &&
           aster_link_unacknowledged(session->link) < LINK_ROOM) {
        struct grantor_chunk *chunk = session->chunks;
        if (aster_link_send(session->link, (struct aster_bytes){chunk->payload, chunk->size}, NULL) != ASTER_OK) {
            return; /* the next round tries again */
        }
        session->chunks = chunk->next;
        session->chunks_end = session->chunks == NULL ? &session->chunks : session->chunks_end;
        session->chunk_bytes -= chunk->size;
        free_chunk(session->state, session->peer, chunk);
    }
    if (session->chunks == NULL && session->held == NULL && session->watchers != NULL) {
        confess(session);
    }
}

static bool sees(const struct grantor_session *session, const struct grantor_watcher *watcher,
                 const struct aster_event *event)
{
    struct aster_bytes resource = {watcher->resource, watcher->size};
    return event->revision > watcher->revision &&
           (watcher->size == 0 || aster_bytes_equal(resource, event->resource)) &&
           grantor_admission_reaches(session->state->admission, aster_link_identity(session->link), event->resource);
}

static void flush(struct grantor_session *session, struct grantor_watcher *watcher, struct grantor_page *page,
                  int64_t revision)
{
    struct grantor_chunk *chunk = NULL;
    if (page->count > 0 && session->chunk_bytes < BACKLOG_MAX &&
        grantor_limits_have_room_for_reads(session->state, session->peer)) {
        const struct grantor_page_end end = {.revision = revision, .more = true, .lost = watcher->lost};
        chunk = grantor_page_events(page, watcher->id, &end);
    }
    if (chunk != NULL) {
        session->state->read_bytes += chunk->size;
        session->peer->read_bytes += chunk->size;
        append(session, chunk);
        watcher->lost = false;
    } else if (page->count > 0) {
        watcher->lost = true;
    }
    grantor_page_clear(page);
}

static void tell(struct grantor_session *session, struct grantor_watcher *watcher, const struct grantor_news *news,
                 struct grantor_page *page)
{
    int64_t revision = watcher->revision;
    watcher->lost = watcher->lost || news->lost;
    grantor_page_clear(page);
    for (const struct grantor_happening *one = news->first; one != NULL; one = one->next) {
        if (sees(session, watcher, &one->event) && !grantor_page_add_event(page, &one->event)) {
            flush(session, watcher, page, revision);
            grantor_page_add_event(page, &one->event);
        }
        revision = one->event.revision > revision ? one->event.revision : revision;
    }
    flush(session, watcher, page, revision);
    watcher->revision = revision;
}

void grantor_sessions_tell(struct grantor_state *state, const struct grantor_news *news)
{
    for (struct grantor_session *session = state->sessions; session != NULL; session = session->next) {
        for (struct grantor_watcher *watcher = session->watchers; watcher != NULL && !session->failed;
             watcher = watcher->next) {
            tell(session, watcher, news, state->page);
        }
        if (!session->failed) {
            grantor_session_pump(session);
        }
    }
}
