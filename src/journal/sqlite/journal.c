#include "journal/sqlite/journal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/options.h"
#include "journal/sqlite/internal.h"
#include "platform/entropy.h"
#include "platform/files.h"
#include "platform/fork.h"
#include "serializer/sqlite/file.h"
#include "serializer/sqlite/inherited.h"

/* The owner before may still be closing. */
#define WAIT_FOR_OWNER_MS 500

static const char *const statement_texts[JOURNAL_STATEMENT_COUNT] = {
    ASTER_SHARED_STATEMENT_TEXTS,
    [JOURNAL_META_GET] = "SELECT folded, floor FROM meta WHERE id = 1",
    [JOURNAL_META_PUT] = "UPDATE meta SET folded = ?1, floor = ?2 WHERE id = 1",
    [JOURNAL_ENTRY_PUT] = "INSERT OR REPLACE INTO entries VALUES (?1, ?2)",
    [JOURNAL_ENTRY_LIST] = "SELECT position, entry FROM entries ORDER BY position",
    [JOURNAL_ENTRY_DROP] = "DELETE FROM entries WHERE position <= ?1",
    [JOURNAL_ROW_PUT] = "INSERT OR REPLACE INTO rows VALUES (?1, ?2)",
    [JOURNAL_ROW_GET] = "SELECT resource, row FROM rows WHERE resource = ?1",
    [JOURNAL_ROW_DROP] = "DELETE FROM rows WHERE resource = ?1",
    [JOURNAL_ROW_LIST] = "SELECT resource, row FROM rows",
    [JOURNAL_EVENTS_PUT] = "INSERT OR REPLACE INTO events VALUES (?1, ?2)",
    [JOURNAL_EVENTS_LIST] = "SELECT revision, entry FROM events ORDER BY revision",
    [JOURNAL_EVENTS_DROP] = "DELETE FROM events WHERE revision <= ?1",
    [JOURNAL_EVENTS_NEWEST] = "SELECT max(revision) FROM events",
};

static aster_status check_append(const struct sqlite_journal *journal, int64_t position, size_t size,
                                 struct aster_error *error)
{
    if (!journal->loaded || position != journal->last + 1) {
        return aster_error_set(
            error, ASTER_ERR_INVALID, "the entry for position %" PRId64 " cannot be appended: %s %" PRId64, position,
            journal->loaded ? "the next one is" : "load the journal first, it was at", journal->last + 1);
    }
    if (size == 0 || size > ASTER_ENTRY_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "a journal entry of %zu bytes: it must have 1 to %zu", size,
                               ASTER_ENTRY_MAX);
    }
    return ASTER_OK;
}

aster_status aster_sqlite_journal_begin(struct sqlite_journal *journal, struct aster_error *error)
{
    bool empties_log = journal->needs_rescue; /* which cuts the file */
    aster_status status = aster_connection_begin_write(&journal->connection, true, error);
    if (status == ASTER_OK && empties_log) {
        aster_sqlite_journal_reserve_log(journal);
    }
    return status;
}

static aster_status put_entry(struct sqlite_journal *journal, int64_t position, struct aster_bytes entry,
                              struct aster_error *error)
{
    sqlite3_stmt *statement = NULL;
    aster_status status = aster_connection_statement(&journal->connection, JOURNAL_ENTRY_PUT, &statement, error);
    if (status == ASTER_OK) {
        sqlite3_bind_int64(statement, 1, position);
        sqlite_journal_bind(statement, 2, entry);
        status = aster_connection_run(&journal->connection, JOURNAL_ENTRY_PUT, error);
        sqlite3_clear_bindings(statement);
    }
    return status;
}

static aster_status append(void *self, int64_t position, struct aster_bytes entry, struct aster_error *error)
{
    struct sqlite_journal *journal = self;
    aster_status status = check_append(journal, position, entry.size, error);
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_begin(journal, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    status = put_entry(journal, position, entry, error);
    if (status != ASTER_OK) {
        aster_connection_rollback(&journal->connection);
        return status;
    }
    status = aster_connection_commit(&journal->connection, error);
    if (status == ASTER_OK) {
        journal->last = position;
        journal->piled += entry.size;
    }
    return status;
}

static void destroy(void *self)
{
    struct sqlite_journal *journal = self;
    if (journal != NULL) {
        aster_connection_fini(&journal->connection);
        aster_opened_forget(journal->opened);
        free(journal->path);
        free(journal);
    }
}

static const struct aster_journal_ops ops = {.struct_size = sizeof ops,
                                             .name = "sqlite",
                                             .load = aster_sqlite_journal_load,
                                             .append = append,
                                             .checkpoint = aster_sqlite_journal_checkpoint,
                                             .destroy = destroy};

static aster_status read_options(const struct aster_sqlite_journal_options *given,
                                 struct aster_sqlite_journal_options *options, struct aster_error *error)
{
    struct aster_sqlite_journal_options made = ASTER_SQLITE_JOURNAL_OPTIONS_INIT;
    aster_status status = aster_options_read(&made, given, "ASTER_SQLITE_JOURNAL_OPTIONS_INIT", error);
    if (status == ASTER_OK && made.history_max < 0) {
        status = aster_error_set(error, ASTER_ERR_INVALID, "history_max is %" PRId64 ": it must not be negative",
                                 made.history_max);
    }
    if (status == ASTER_OK) {
        *options = made;
    }
    return status;
}

static aster_status note_opened(struct sqlite_journal *journal, struct aster_error *error)
{
    struct aster_file_identity file;
    uint64_t generation = aster_fork_generation(error);
    if (generation == 0) {
        return ASTER_ERR_IO;
    }
    aster_status status = aster_file_identify(journal->path, &file, error);
    return status == ASTER_OK ? aster_opened_note(&file, generation, &journal->opened, error) : status;
}

static aster_status open_file(struct sqlite_journal *journal, struct aster_error *error)
{
    const struct aster_database_file file = {
        .path = journal->path, .create = true, .network_advice = "put the journal on a local disk"};
    const struct aster_connection_setup setup = {.path = journal->path,
                                                 .busy_timeout_ms = WAIT_FOR_OWNER_MS,
                                                 .needs_rescue = &journal->needs_rescue,
                                                 .texts = statement_texts,
                                                 .exclusive = true,
                                                 .accept = aster_sqlite_journal_accept};
    aster_status status = aster_database_file_prepare(&file, error);
    if (status == ASTER_OK) {
        status = note_opened(journal, error);
    }
    if (status == ASTER_OK) {
        status = aster_connection_open(&journal->connection, &setup, error);
    }
    if (status == ASTER_OK) {
        status = aster_sqlite_journal_prepare(&journal->connection, error);
    }
    if (status == ASTER_OK) {
        aster_sqlite_journal_watch_log(journal);
        aster_sqlite_journal_reserve_log(journal);
    }
    return status;
}

aster_status aster_sqlite_journal_open(const char *path, const struct aster_sqlite_journal_options *options,
                                       struct aster_journal *journal, struct aster_error *error)
{
    struct sqlite_journal *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "out of memory for a journal");
    }
    aster_status status = read_options(options, &made->options, error);
    if (status == ASTER_OK) {
        status = aster_entropy_fill(&made->key, sizeof made->key, error);
    }
    if (status == ASTER_OK) {
        status = aster_database_path(path, "journal", &made->path, error);
    }
    if (status == ASTER_OK) {
        status = open_file(made, error);
    }
    if (status != ASTER_OK) {
        destroy(made);
        return status;
    }
    *journal = (struct aster_journal){&ops, made};
    return ASTER_OK;
}
