#include "journal/journalled.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/options.h"
#include "journal/writer.h"

struct journalled {
    struct memory *memory;
    struct aster_writer *writer;
    struct aster_journal journal;
    size_t rows_loaded;
};

static void journalled_submit(void *self, struct aster_request *request)
{
    const struct journalled *journalled = self;
    aster_memory_submit(journalled->memory, request);
}

/* What came together shares an append. */
static void journalled_submit_many(void *self, struct aster_request **requests, size_t count)
{
    const struct journalled *journalled = self;
    aster_writer_hold(journalled->writer);
    for (size_t i = 0; i < count; i++) {
        aster_memory_submit(journalled->memory, requests[i]);
    }
    aster_writer_release(journalled->writer);
}

static void journalled_cancel(void *self, struct aster_request *request)
{
    const struct journalled *journalled = self;
    aster_memory_cancel(journalled->memory, request);
}

static void journalled_close(void *self)
{
    const struct journalled *journalled = self;
    aster_memory_close(journalled->memory);
}

static aster_status journalled_wait(void *self, int64_t timeout_ms)
{
    const struct journalled *journalled = self;
    return aster_memory_wait(journalled->memory, timeout_ms);
}

static void journalled_destroy(void *self)
{
    struct journalled *journalled = self;
    aster_writer_stop(journalled->writer);
    aster_memory_destroy(journalled->memory);
    aster_writer_destroy(journalled->writer);
    journalled->journal.ops->destroy(journalled->journal.self);
    free(journalled);
}

static aster_status journalled_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                                    struct aster_error *error)
{
    const struct journalled *journalled = self;
    return aster_memory_list(journalled->memory, query, visit, user, error);
}

static aster_status journalled_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                       void *user, struct aster_error *error)
{
    const struct journalled *journalled = self;
    return aster_memory_history(journalled->memory, query, visit, user, error);
}

static const struct aster_serializer_ops ops = {
    .struct_size = sizeof ops,
    .name = "journalled",
    .traits = ASTER_SERIALIZER_QUEUES_WAITERS,
    .submit = journalled_submit,
    .submit_many = journalled_submit_many,
    .cancel = journalled_cancel,
    .close = journalled_close,
    .wait = journalled_wait,
    .destroy = journalled_destroy,
    .list_page = journalled_list,
    .history = journalled_history,
};

struct loading {
    struct journalled *journalled;
    int64_t revision;
};

static aster_status load_floor(void *user, int64_t floor, struct aster_error *error)
{
    const struct loading *loading = user;
    (void)error;
    aster_memory_load_floor(loading->journalled->memory, floor);
    return ASTER_OK;
}

static aster_status load_row(void *user, struct aster_bytes resource, const struct aster_row *row,
                             struct aster_error *error)
{
    const struct loading *loading = user;
    loading->journalled->rows_loaded++;
    return aster_memory_load_row(loading->journalled->memory, resource, row, error);
}

static aster_status load_event(void *user, const struct aster_event *event, struct aster_error *error)
{
    struct loading *loading = user;
    (void)error;
    loading->revision = event->revision;
    aster_memory_load_event(loading->journalled->memory, event);
    return ASTER_OK;
}

static aster_status load_and_start(struct journalled *journalled, struct aster_error *error)
{
    struct loading loading = {journalled, 0};
    const struct aster_journal_loading into = {&loading, load_floor, load_row, load_event};
    int64_t position = 0;
    aster_status status = journalled->journal.ops->load(journalled->journal.self, &into, &position, error);
    if (status == ASTER_OK) {
        status = aster_writer_start(journalled->writer, journalled->memory, &journalled->journal, position,
                                    loading.revision, error);
    }
    return status;
}

static aster_status create(const struct aster_journalled_options *options, const struct aster_journal *journal,
                           struct journalled **made, struct aster_error *error)
{
    struct journalled *journalled = calloc(1, sizeof *journalled);
    if (journalled == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a journalled serializer");
    }
    journalled->journal = *journal;
    aster_status status = aster_writer_create(options, &journalled->writer, error);
    if (status == ASTER_OK) {
        const struct memory_committer committer = aster_writer_committer(journalled->writer);
        status = aster_memory_create(&options->memory, &committer, &journalled->memory, error);
    }
    if (status == ASTER_OK) {
        status = load_and_start(journalled, error);
    }
    if (status != ASTER_OK) {
        if (journalled->memory != NULL) {
            aster_memory_destroy(journalled->memory);
        }
        aster_writer_destroy(journalled->writer);
        free(journalled);
        return status;
    }
    *made = journalled;
    return ASTER_OK;
}

aster_status aster_journalled_open(const struct aster_journalled_options *options, const struct aster_journal *journal,
                                   struct aster_serializer **serializer, struct aster_error *error)
{
    struct aster_journalled_options known = ASTER_JOURNALLED_OPTIONS_INIT;
    struct journalled *journalled = NULL;
    aster_status status = aster_options_read(&known, options, "ASTER_JOURNALLED_OPTIONS_INIT", error);
    if (status == ASTER_OK) {
        status = create(&known, journal, &journalled, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_serializer_create(&ops, journalled, known.memory.clock, serializer, error);
    if (status != ASTER_OK) {
        aster_writer_stop(journalled->writer);
        aster_memory_destroy(journalled->memory);
        aster_writer_destroy(journalled->writer);
        free(journalled);
    }
    return status;
}

struct aster_journalled_counts aster_journalled_counts(struct aster_serializer *serializer)
{
    const struct journalled *journalled = aster_serializer_self(serializer, &ops);
    if (journalled == NULL) {
        return (struct aster_journalled_counts){0};
    }
    struct aster_journalled_counts counts = aster_writer_counts(journalled->writer);
    counts.rows_loaded = journalled->rows_loaded;
    return counts;
}

bool aster_journalled_step(struct aster_serializer *serializer)
{
    const struct journalled *journalled = aster_serializer_self(serializer, &ops);
    return journalled != NULL && aster_writer_step(journalled->writer);
}
