#include "base/error.h"
#include "engine/codec.h"
#include "journal/sqlite/internal.h"

/* A step costs a sync. It is worth it once there is much to fold, and what it takes is bounded because appends wait. */
#define FOLD_BYTES ((size_t)512 << 10)
#define STEP_BYTES ((size_t)256 << 10)
#define STEP_RESOURCES 512

struct step {
    struct sqlite_journal *journal;
    struct aster_entry_fold *fold;
    struct aster_entry_builder events;
    int64_t newest_revision;
    int64_t position; /* of the last entry taken */
    size_t bytes;
};

static aster_status store_events(struct step *step, struct aster_error *error)
{
    struct aster_connection *connection = &step->journal->connection;
    struct aster_bytes entry;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_entry_seal(&step->events, &entry, error);
    if (status == ASTER_OK) {
        status = aster_connection_statement(connection, JOURNAL_EVENTS_PUT, &statement, error);
    }
    if (status == ASTER_OK) {
        sqlite3_bind_int64(statement, 1, step->newest_revision);
        sqlite_journal_bind(statement, 2, entry);
        status = aster_connection_run(connection, JOURNAL_EVENTS_PUT, error);
        sqlite3_clear_bindings(statement);
    }
    aster_entry_builder_reset(&step->events);
    return status;
}

static aster_status take_event(struct step *step, const struct aster_record *record, struct aster_error *error)
{
    if (step->journal->options.history_max == 0) {
        return ASTER_OK;
    }
    aster_status status = aster_entry_add(&step->events, record, error);
    if (status == ASTER_ERR_LIMIT) {
        status = store_events(step, error);
        if (status == ASTER_OK) {
            status = aster_entry_add(&step->events, record, error);
        }
    }
    if (status == ASTER_OK) {
        step->newest_revision = record->event.revision;
    }
    return status;
}

static aster_status take_record(void *user, const struct aster_record *record, struct aster_error *error)
{
    struct step *step = user;
    return record->kind == ASTER_RECORD_EVENT ? take_event(step, record, error)
                                              : aster_entry_fold_add(step->fold, record, error);
}

static aster_status take_entry(void *user, int64_t position, struct aster_bytes entry, bool *more,
                               struct aster_error *error)
{
    struct step *step = user;
    step->position = position;
    step->bytes += entry.size;
    aster_status status = aster_sqlite_journal_records(position, entry, take_record, step, error);
    *more = step->bytes < STEP_BYTES && aster_entry_fold_count(step->fold) < STEP_RESOURCES;
    return status;
}

static aster_status put_row(struct sqlite_journal *journal, const struct aster_folded *folded,
                            struct aster_error *error)
{
    struct aster_row row;
    size_t size = 0;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_sqlite_journal_whole_row(journal, folded, &row, error);
    if (status == ASTER_OK) {
        status = aster_row_encode(folded->resource, &row, journal->row_bytes, ASTER_ROW_ENCODED_MAX, &size, error);
    }
    if (status == ASTER_OK) {
        status = aster_connection_statement(&journal->connection, JOURNAL_ROW_PUT, &statement, error);
    }
    if (status == ASTER_OK) {
        sqlite_journal_bind(statement, 1, folded->resource);
        sqlite_journal_bind(statement, 2, (struct aster_bytes){journal->row_bytes, size});
        status = aster_connection_run(&journal->connection, JOURNAL_ROW_PUT, error);
        sqlite3_clear_bindings(statement);
    }
    return status;
}

static aster_status drop_row(struct sqlite_journal *journal, struct aster_bytes resource, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_ROW_DROP, &statement, error);
    if (status == ASTER_OK) {
        sqlite_journal_bind(statement, 1, resource);
        status = aster_connection_run(&journal->connection, JOURNAL_ROW_DROP, error);
        sqlite3_clear_bindings(statement);
    }
    return status;
}

static aster_status store_rows(struct step *step, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < aster_entry_fold_count(step->fold); i++) {
        const struct aster_folded *folded = aster_entry_fold_at(step->fold, i);
        status =
            folded->removed ? drop_row(step->journal, folded->resource, error) : put_row(step->journal, folded, error);
    }
    return status;
}

/* Run a statement with one parameter: drop all up to a number. */
static aster_status drop_up_to(struct sqlite_journal *journal, int which, int64_t number, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, which, &statement, error);
    if (status == ASTER_OK) {
        sqlite3_bind_int64(statement, 1, number);
        status = aster_connection_run(&journal->connection, which, error);
    }
    return status;
}

static aster_status fold_entries(struct step *step, struct aster_error *error)
{
    struct sqlite_journal *journal = step->journal;
    struct sqlite_journal_meta meta;
    aster_status status = aster_sqlite_journal_meta_get(journal, &meta, error);
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_entries(journal, meta.folded, take_entry, step, error);
    }
    if (status == ASTER_OK) {
        status = store_rows(step, error);
    }
    if (status == ASTER_OK && step->events.records > 0) {
        status = store_events(step, error);
    }
    if (status == ASTER_OK && step->newest_revision > 0) {
        status = drop_up_to(journal, JOURNAL_EVENTS_DROP, step->newest_revision - journal->options.history_max, error);
    }
    if (status == ASTER_OK) {
        status = drop_up_to(journal, JOURNAL_ENTRY_DROP, step->position, error);
    }
    if (status == ASTER_OK) {
        int64_t removed = aster_entry_fold_floor(step->fold);
        meta.floor = removed > meta.floor ? removed : meta.floor;
        meta.folded = step->position;
        status = aster_sqlite_journal_meta_put(journal, &meta, error);
    }
    return status;
}

static aster_status fold(struct sqlite_journal *journal, struct aster_error *error)
{
    struct step step = {.journal = journal};
    aster_status status = aster_entry_fold_create(&journal->key, &step.fold, error);
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_begin(journal, error);
    }
    if (status != ASTER_OK) {
        goto done;
    }
    status = fold_entries(&step, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(&journal->connection);
        goto done;
    }
    /* Unknown is as good as failed here: both states say the same. */
    status = aster_connection_commit(&journal->connection, error);
    if (status == ASTER_OK) {
        journal->folded = step.position;
        journal->piled -= step.bytes;
    }
done:
    aster_entry_fold_destroy(step.fold);
    aster_entry_builder_fini(&step.events);
    return status;
}

aster_status aster_sqlite_journal_checkpoint(void *self, bool *more, struct aster_error *error)
{
    struct sqlite_journal *journal = self;
    aster_status status = ASTER_OK;
    if (aster_sqlite_journal_log_is_full(journal)) {
        status = aster_sqlite_journal_empty_log(journal, error);
    } else if (journal->piled >= FOLD_BYTES) {
        status = fold(journal, error);
    }
    if (status == ASTER_OK) {
        *more = journal->piled >= FOLD_BYTES || aster_sqlite_journal_log_is_full(journal);
    }
    return status;
}
