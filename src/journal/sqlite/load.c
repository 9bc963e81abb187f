/* Telling what the journal holds: the rows as they were folded, with the images of later entries in their place. */
#include "base/error.h"
#include "journal/sqlite/internal.h"

struct load {
    struct sqlite_journal *journal;
    const struct aster_journal_loading *into;
    struct aster_entry_fold *fold;
    int64_t last;
    size_t piled;
    int64_t newest_revision;
};

static aster_status take_record(void *user, const struct aster_record *record, struct aster_error *error)
{
    struct load *load = user;
    if (record->kind == ASTER_RECORD_EVENT && record->event.revision > load->newest_revision) {
        load->newest_revision = record->event.revision;
    }
    return aster_entry_fold_add(load->fold, record, error);
}

static aster_status take_entry(void *user, int64_t position, struct aster_bytes entry, bool *more,
                               struct aster_error *error)
{
    (void)more;
    struct load *load = user;
    load->last = position;
    load->piled += entry.size;
    return aster_sqlite_journal_records(position, entry, take_record, load, error);
}

static aster_status tell_images(struct load *load, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    for (size_t i = 0; status == ASTER_OK && i < aster_entry_fold_count(load->fold); i++) {
        const struct aster_folded *folded = aster_entry_fold_at(load->fold, i);
        struct aster_row row;
        if (folded->removed) {
            continue;
        }
        status = aster_sqlite_journal_whole_row(load->journal, folded, &row, error);
        if (status == ASTER_OK) {
            status = load->into->row(load->into->user, folded->resource, &row, error);
        }
    }
    return status;
}

/* The rows that no later entry mentions. */
static aster_status tell_rows(struct load *load, struct aster_error *error)
{
    struct aster_connection *connection = &load->journal->connection;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, JOURNAL_ROW_LIST, &statement, error);
    int code = SQLITE_DONE;
    while (status == ASTER_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct aster_bytes resource;
        struct aster_row row;
        status = aster_sqlite_journal_read_row(statement, &resource, &row, error);
        if (status == ASTER_OK && aster_entry_fold_find(load->fold, resource) == NULL) {
            status = load->into->row(load->into->user, resource, &row, error);
        }
    }
    if (status == ASTER_OK && code != SQLITE_DONE) {
        status = aster_connection_fault(connection, code, error);
    }
    sqlite3_reset(statement);
    return status;
}

static aster_status tell_event(void *user, const struct aster_record *record, struct aster_error *error)
{
    const struct load *load = user;
    if (record->kind != ASTER_RECORD_EVENT ||
        record->event.revision <= load->newest_revision - load->journal->options.history_max) {
        return ASTER_OK;
    }
    return load->into->event(load->into->user, &record->event, error);
}

static aster_status tell_events_of_entry(void *user, int64_t position, struct aster_bytes entry, bool *more,
                                         struct aster_error *error)
{
    (void)more;
    return aster_sqlite_journal_records(position, entry, tell_event, user, error);
}

static aster_status tell_folded_events(struct load *load, struct aster_error *error)
{
    struct aster_connection *connection = &load->journal->connection;
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(connection, JOURNAL_EVENTS_LIST, &statement, error);
    int code = SQLITE_DONE;
    while (status == ASTER_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        status = aster_sqlite_journal_records(sqlite3_column_int64(statement, 0), sqlite_journal_blob(statement, 1),
                                              tell_event, load, error);
    }
    if (status == ASTER_OK && code != SQLITE_DONE) {
        status = aster_connection_fault(connection, code, error);
    }
    sqlite3_reset(statement);
    return status;
}

static aster_status find_newest_folded(struct load *load, struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    struct aster_connection *connection = &load->journal->connection;
    aster_status status = aster_connection_statement(connection, JOURNAL_EVENTS_NEWEST, &statement, error);
    if (status != ASTER_OK) {
        return status;
    }
    int code = sqlite3_step(statement);
    load->newest_revision = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return code == SQLITE_ROW ? ASTER_OK : aster_connection_fault(connection, code, error);
}

static aster_status tell(struct load *load, struct sqlite_journal_meta meta, struct aster_error *error)
{
    const struct aster_journal_loading *into = load->into;
    aster_status status = find_newest_folded(load, error);
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_entries(load->journal, meta.folded, take_entry, load, error);
    }
    if (status == ASTER_OK) {
        int64_t removed = aster_entry_fold_floor(load->fold);
        status = into->floor(into->user, removed > meta.floor ? removed : meta.floor, error);
    }
    if (status == ASTER_OK) {
        status = tell_images(load, error);
    }
    if (status == ASTER_OK) {
        status = tell_rows(load, error);
    }
    if (status == ASTER_OK) {
        status = tell_folded_events(load, error);
    }
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_entries(load->journal, meta.folded, tell_events_of_entry, load, error);
    }
    return status;
}

aster_status aster_sqlite_journal_load(void *self, const struct aster_journal_loading *into, int64_t *last_position,
                                       struct aster_error *error)
{
    struct sqlite_journal *journal = self;
    struct load load = {.journal = journal, .into = into};
    struct sqlite_journal_meta meta;
    aster_status status = aster_connection_begin_read(&journal->connection, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_sqlite_journal_meta_get(journal, &meta, error);
    if (status == ASTER_OK) {
        load.last = meta.folded;
        status = aster_entry_fold_create(&journal->key, &load.fold, error);
    }
    if (status == ASTER_OK) {
        status = tell(&load, meta, error);
    }
    aster_connection_rollback(&journal->connection); /* it has read only */
    if (status == ASTER_OK) {
        journal->last = load.last;
        journal->folded = meta.folded;
        journal->piled = load.piled;
        journal->loaded = true;
        *last_position = load.last;
    }
    aster_entry_fold_destroy(load.fold);
    return status;
}
