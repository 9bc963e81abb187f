#include "journal/writer.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "journal/batch.h"
#include "platform/thread.h"

#define RETRY_NS INT64_C(1000000000) /* a failing journal with nothing but events to append */
#define KEPT_EVENTS_MAX 4096
#define EVENTS_WAITING_MAX 65536      /* nobody waits for them, so nothing else bounds them while an append hangs */
#define SETTLE_NS INT64_C(3000000000) /* longer than a disk takes that works */
#define LINGER_NS INT64_C(150000)     /* about what a lone client takes to ask again */

struct counters {
    _Atomic(uint64_t) batches;
    _Atomic(uint64_t) changes;
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) append_ns;
    _Atomic(uint64_t) failures;
    _Atomic(uint64_t) unknown;
    _Atomic(uint64_t) undone;
    _Atomic(uint64_t) lost_events;
    _Atomic(bool) failing;
};

struct aster_writer {
    struct aster_journal journal;
    struct memory *memory;
    void (*answering)(bool begin, void *user);
    void (*failing)(aster_status status, const struct aster_error *error, void *user);
    void *user;
    bool stepped;
    bool folding; /* the thread's own: a checkpoint has more to do */
    int64_t position;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work;
    pthread_cond_t settled;
    struct journal_batches batches; /* under the mutex from here on */
    int64_t revision;
    size_t waiting; /* changes in the batches and in the append under way */
    size_t holds;
    bool fresh; /* something was taken since the last append failed */
    bool stopping;
    _Atomic(bool) lingering; /* looks for work by itself */
    _Atomic(bool) wanted;
    struct counters counters;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wake(struct aster_writer *writer)
{
    atomic_store_explicit(&writer->wanted, true, memory_order_relaxed);
    if (!atomic_load_explicit(&writer->lingering, memory_order_relaxed)) {
        pthread_cond_signal(&writer->work);
    }
}

static aster_status take(void *self, struct memory_change *change, const struct aster_row *row, bool same_value,
                         struct aster_error *error)
{
    struct aster_writer *writer = self;
    pthread_mutex_lock(&writer->mutex);
    if (change->request == NULL && writer->waiting >= EVENTS_WAITING_MAX) {
        pthread_mutex_unlock(&writer->mutex);
        atomic_fetch_add(&writer->counters.lost_events, 1);
        return aster_error_set(error, ASTER_ERR_LIMIT, "%d changes wait for the journal: the event is lost",
                               EVENTS_WAITING_MAX);
    }
    if (change->event.kind != 0) {
        change->event.revision = writer->revision + 1;
    }
    aster_status status = journal_batches_add(&writer->batches, change, row, same_value, error);
    if (status == ASTER_OK) {
        writer->revision += change->event.kind != 0;
        writer->waiting++;
        writer->fresh = true;
        if (writer->holds == 0) {
            wake(writer);
        }
    }
    pthread_mutex_unlock(&writer->mutex);
    return status;
}

static bool settle(void *self)
{
    struct aster_writer *writer = self;
    const int64_t until_ns = now_ns() + SETTLE_NS;
    const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
    int code = 0;
    pthread_mutex_lock(&writer->mutex);
    uint64_t last = writer->batches.newest;
    while (writer->batches.settled < last && code == 0) {
        if (writer->stepped) {
            pthread_mutex_unlock(&writer->mutex);
            aster_writer_step(writer);
            pthread_mutex_lock(&writer->mutex);
        } else {
            code = pthread_cond_timedwait(&writer->settled, &writer->mutex, &until);
        }
    }
    bool settled = writer->batches.settled >= last;
    pthread_mutex_unlock(&writer->mutex);
    return settled;
}

struct memory_committer aster_writer_committer(struct aster_writer *writer)
{
    return (struct memory_committer){writer, take, settle};
}

static void count_settled(struct aster_writer *writer, uint64_t batch, size_t changes)
{
    writer->batches.settled = batch;
    writer->waiting -= changes;
    pthread_cond_broadcast(&writer->settled);
}

static void answer_all(struct aster_writer *writer, struct journal_batch *batch)
{
    for (struct memory_change *change = batch->first; change != NULL; change = change->next) {
        atomic_fetch_add(&writer->counters.changes, memory_change_has_row(change));
        aster_memory_durable(writer->memory, change);
    }
    pthread_mutex_lock(&writer->mutex);
    count_settled(writer, batch->number, batch->count);
    pthread_mutex_unlock(&writer->mutex);
    if (writer->answering != NULL) {
        writer->answering(true, writer->user);
    }
    for (struct memory_change *change = batch->first; change != NULL;) {
        struct memory_change *next = change->next;
        aster_memory_answer(change);
        change = next;
    }
    if (writer->answering != NULL) {
        writer->answering(false, writer->user);
    }
}

/* Everything that is not durable, newest first; what was in the append that failed is marked. */
static struct memory_change *reverse_all(struct aster_writer *writer, struct journal_batch *tried)
{
    struct memory_change *newest = NULL;
    for (struct journal_batch *batch = tried; batch != NULL; batch = writer->batches.first) {
        if (batch != tried) {
            journal_batches_pop(&writer->batches);
        }
        for (struct memory_change *change = batch->first; change != NULL;) {
            struct memory_change *next = change->next;
            change->tried = batch == tried;
            if (memory_change_has_row(change)) { /* before anybody learns that it is settled */
                aster_memory_count_undone(writer->memory);
            }
            change->next = newest;
            newest = change;
            change = next;
        }
        count_settled(writer, batch->number, batch->count);
        if (batch != tried) {
            journal_batches_recycle(&writer->batches, batch);
        }
    }
    return newest;
}

/* Events that nobody waits for, and that were not decided on top of what is taken back, stay in front of what comes. */
static void keep_events(struct aster_writer *writer, struct memory_change *oldest)
{
    for (size_t kept = 0; oldest != NULL; kept++) {
        struct memory_change *change = oldest;
        oldest = change->next;
        if (kept < KEPT_EVENTS_MAX && journal_batches_add(&writer->batches, change, NULL, false, NULL) == ASTER_OK) {
            writer->waiting++;
        } else {
            aster_memory_change_destroy(change);
            atomic_fetch_add(&writer->counters.lost_events, 1);
        }
    }
}

/* With the memory frozen. Returns those to be refused, oldest first. */
static struct memory_change *take_back(struct aster_writer *writer, struct memory_change *newest)
{
    struct memory_change *refused = NULL;
    struct memory_change *events = NULL;
    for (struct memory_change *change = newest; change != NULL; change = change->next) {
        atomic_fetch_add(&writer->counters.undone, memory_change_has_row(change));
        change->tried = change->tried && memory_change_has_row(change);
        aster_memory_undo(writer->memory, change);
    }
    while (newest != NULL) {
        struct memory_change *change = newest;
        newest = change->next;
        if (change->request != NULL && !change->tried) {
            aster_memory_redo(writer->memory, change);
        } else if (change->request == NULL && change->on_top) {
            aster_memory_change_destroy(change); /* what it tells of never was; whoever asked is decided anew */
        } else {
            struct memory_change **list = change->request != NULL ? &refused : &events;
            change->next = *list;
            *list = change;
        }
    }
    pthread_mutex_lock(&writer->mutex);
    keep_events(writer, events);
    writer->fresh = false;
    pthread_mutex_unlock(&writer->mutex);
    return refused;
}

static void give_up(struct aster_writer *writer, struct journal_batch *batch, aster_status status,
                    const struct aster_error *cause)
{
    bool unknown = status == ASTER_ERR_INDETERMINATE;
    struct aster_error error;
    aster_error_set(&error, unknown ? ASTER_ERR_INDETERMINATE : ASTER_ERR_IO, "%s: %s",
                    unknown ? "the journal does not say whether it was applied; repeat it under the same id"
                            : "nothing was applied because the journal cannot be written; leases held are renewed",
                    cause->message);
    atomic_fetch_add(unknown ? &writer->counters.unknown : &writer->counters.failures, 1);
    aster_memory_freeze(writer->memory);
    pthread_mutex_lock(&writer->mutex);
    struct memory_change *newest = reverse_all(writer, batch);
    pthread_mutex_unlock(&writer->mutex);
    struct memory_change *refused = take_back(writer, newest);
    aster_memory_thaw(writer->memory);
    while (refused != NULL) {
        struct memory_change *next = refused->next;
        aster_memory_refuse(refused, error.status, &error);
        refused = next;
    }
}

static void tell_failing(struct aster_writer *writer, aster_status status, const struct aster_error *error)
{
    if (atomic_exchange(&writer->counters.failing, status != ASTER_OK) != (status != ASTER_OK) &&
        writer->failing != NULL) {
        writer->failing(status, error, writer->user);
    }
}

static aster_status append(struct aster_writer *writer, struct journal_batch *batch, struct aster_error *error)
{
    struct aster_bytes entry;
    if (batch->builder.records == 0) { /* only answers that waited for what is durable by now */
        return ASTER_OK;
    }
    aster_status status = aster_entry_seal(&batch->builder, &entry, error);
    if (status == ASTER_OK) {
        int64_t begin_ns = now_ns();
        status = writer->journal.ops->append(writer->journal.self, writer->position + 1, entry, error);
        atomic_fetch_add(&writer->counters.append_ns, (uint64_t)(now_ns() - begin_ns));
    }
    if (status == ASTER_OK) {
        writer->position++;
        atomic_fetch_add(&writer->counters.batches, 1);
        atomic_fetch_add(&writer->counters.bytes, entry.size);
    }
    tell_failing(writer, status, error);
    return status;
}

/* A checkpoint that fails is tried again: only the next start takes longer for it. */
static void fold(struct aster_writer *writer)
{
    bool more = false;
    aster_status status = writer->journal.ops->checkpoint(writer->journal.self, &more, NULL);
    writer->folding = status == ASTER_OK && more;
}

bool aster_writer_step(struct aster_writer *writer)
{
    struct aster_error error = ASTER_ERROR_INIT;
    pthread_mutex_lock(&writer->mutex);
    struct journal_batch *batch = journal_batches_pop(&writer->batches);
    pthread_mutex_unlock(&writer->mutex);
    if (batch == NULL) {
        return false;
    }
    bool appends = batch->builder.records > 0;
    aster_status status = append(writer, batch, &error);
    if (status == ASTER_OK) {
        answer_all(writer, batch);
    } else {
        give_up(writer, batch, status, &error);
    }
    pthread_mutex_lock(&writer->mutex);
    journal_batches_recycle(&writer->batches, batch);
    pthread_mutex_unlock(&writer->mutex);
    if (appends && status == ASTER_OK) {
        fold(writer);
    }
    return true;
}

/* Under the mutex: a client who waits for each answer asks again at once, and being woken takes as long as that. */
static void linger(struct aster_writer *writer)
{
    int64_t until_ns = now_ns() + LINGER_NS;
    atomic_store_explicit(&writer->wanted, false, memory_order_relaxed);
    atomic_store_explicit(&writer->lingering, true, memory_order_relaxed);
    pthread_mutex_unlock(&writer->mutex);
    while (!atomic_load_explicit(&writer->wanted, memory_order_relaxed) && now_ns() < until_ns) {
        sched_yield();
    }
    pthread_mutex_lock(&writer->mutex);
    atomic_store_explicit(&writer->lingering, false, memory_order_relaxed);
}

/* Under the mutex: until there is something to append, or it is time to try again. */
static void rest(struct aster_writer *writer)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += RETRY_NS / 1000000000;
    int code = 0;
    if (writer->batches.first == NULL && !writer->stopping) {
        linger(writer);
    }
    while (writer->batches.first == NULL && !writer->stopping) {
        pthread_cond_wait(&writer->work, &writer->mutex);
    }
    while (atomic_load(&writer->counters.failing) && !writer->fresh && !writer->stopping && code == 0) {
        code = pthread_cond_timedwait(&writer->work, &writer->mutex, &until);
    }
}

static bool is_idle(const struct aster_writer *writer)
{
    return writer->batches.first == NULL && !writer->stopping;
}

static void *run(void *argument)
{
    struct aster_writer *writer = argument;
    pthread_mutex_lock(&writer->mutex);
    for (;;) {
        while (writer->folding && is_idle(writer)) {
            pthread_mutex_unlock(&writer->mutex);
            fold(writer);
            pthread_mutex_lock(&writer->mutex);
        }
        rest(writer);
        if (writer->batches.first == NULL) {
            break;
        }
        pthread_mutex_unlock(&writer->mutex);
        aster_writer_step(writer);
        pthread_mutex_lock(&writer->mutex);
        if (writer->stopping && !writer->fresh && atomic_load(&writer->counters.failing)) {
            break; /* only events are left, and their journal does not take them */
        }
    }
    pthread_mutex_unlock(&writer->mutex);
    return NULL;
}

aster_status aster_writer_create(const struct aster_journalled_options *options, struct aster_writer **writer,
                                 struct aster_error *error)
{
    struct aster_writer *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the journal's writer");
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->work, &attributes);
    pthread_cond_init(&made->settled, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&made->mutex, NULL);
    journal_batches_init(&made->batches);
    made->answering = options->answering;
    made->failing = options->failing;
    made->user = options->user;
    made->stepped = options->stepped;
    *writer = made;
    return ASTER_OK;
}

aster_status aster_writer_start(struct aster_writer *writer, struct memory *memory, const struct aster_journal *journal,
                                int64_t position, int64_t revision, struct aster_error *error)
{
    writer->memory = memory;
    writer->journal = *journal;
    writer->position = position;
    writer->revision = revision;
    int code = writer->stepped ? 0 : aster_thread_start(&writer->thread, run, writer);
    if (code != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, code, "the journal's thread cannot be started");
    }
    return ASTER_OK;
}

void aster_writer_stop(struct aster_writer *writer)
{
    if (writer->stepped) {
        while (aster_writer_step(writer) && !atomic_load(&writer->counters.failing)) {
        }
        return;
    }
    pthread_mutex_lock(&writer->mutex);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->mutex);
    pthread_join(writer->thread, NULL);
}

void aster_writer_destroy(struct aster_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    journal_batches_fini(&writer->batches);
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->settled);
    pthread_mutex_destroy(&writer->mutex);
    free(writer);
}

void aster_writer_hold(struct aster_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    writer->holds++;
    pthread_mutex_unlock(&writer->mutex);
}

void aster_writer_release(struct aster_writer *writer)
{
    pthread_mutex_lock(&writer->mutex);
    if (--writer->holds == 0 && writer->batches.first != NULL) {
        wake(writer);
    }
    pthread_mutex_unlock(&writer->mutex);
}

struct aster_journalled_counts aster_writer_counts(struct aster_writer *writer)
{
    const struct counters *counters = &writer->counters;
    struct aster_journalled_counts counts = {
        .batches = atomic_load(&counters->batches),
        .changes = atomic_load(&counters->changes),
        .bytes = atomic_load(&counters->bytes),
        .append_ns = atomic_load(&counters->append_ns),
        .failures = atomic_load(&counters->failures),
        .unknown = atomic_load(&counters->unknown),
        .undone = atomic_load(&counters->undone),
        .lost_events = atomic_load(&counters->lost_events),
        .failing = atomic_load(&counters->failing),
    };
    pthread_mutex_lock(&writer->mutex);
    counts.waiting = writer->waiting;
    pthread_mutex_unlock(&writer->mutex);
    return counts;
}
