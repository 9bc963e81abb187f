/* What the files of the SQLite journal share. */
#ifndef JOURNAL_SQLITE_INTERNAL_H
#define JOURNAL_SQLITE_INTERNAL_H

#include "engine/codec.h"
#include "engine/siphash.h"
#include "journal/entry_fold.h"
#include "journal/sqlite/journal.h"
#include "serializer/sqlite/connection.h"

struct aster_opened;

enum sqlite_journal_statement {
    JOURNAL_META_GET = ASTER_STATEMENT_OWN,
    JOURNAL_META_PUT,
    JOURNAL_ENTRY_PUT,
    JOURNAL_ENTRY_LIST,
    JOURNAL_ENTRY_DROP,
    JOURNAL_ROW_PUT,
    JOURNAL_ROW_GET,
    JOURNAL_ROW_DROP,
    JOURNAL_ROW_LIST,
    JOURNAL_EVENTS_PUT,
    JOURNAL_EVENTS_LIST,
    JOURNAL_EVENTS_DROP,
    JOURNAL_EVENTS_NEWEST,
    JOURNAL_STATEMENT_COUNT
};

struct sqlite_journal {
    struct aster_sqlite_journal_options options;
    char *path;
    struct aster_opened *opened;
    struct aster_connection connection;
    bool needs_rescue;
    bool loaded;
    int64_t last;   /* position of the last entry */
    int64_t folded; /* what is at or before it is in rows and events */
    size_t piled;   /* bytes of entries behind it */
    int log_pages;  /* of SQLite's log that are in use */
    struct aster_hash_key key;
    unsigned char row_bytes[ASTER_ROW_ENCODED_MAX];
    unsigned char value_bytes[ASTER_VALUE_MAX];
};

/* journal.c: begin to write. Errors: as aster_connection_begin_write(). */
aster_status aster_sqlite_journal_begin(struct sqlite_journal *journal, struct aster_error *error);

/* schema.c */
extern const char aster_sqlite_journal_schema[]; /* sql/sqlite/journal.sql */
aster_status aster_sqlite_journal_accept(struct aster_connection *connection, struct aster_error *error);
aster_status aster_sqlite_journal_prepare(struct aster_connection *connection, struct aster_error *error);
struct sqlite_journal_meta {
    int64_t folded;
    int64_t floor;
};
aster_status aster_sqlite_journal_meta_get(struct sqlite_journal *journal, struct sqlite_journal_meta *meta,
                                           struct aster_error *error);
aster_status aster_sqlite_journal_meta_put(struct sqlite_journal *journal, const struct sqlite_journal_meta *meta,
                                           struct aster_error *error);

/* log.c: SQLite's write-ahead log, whose space is written before it is needed and used again, so that a sync waits for
 * the data only and not for a longer file. */
void aster_sqlite_journal_watch_log(struct sqlite_journal *journal);
/* Write the space, as far as there is room on the disk. */
void aster_sqlite_journal_reserve_log(struct sqlite_journal *journal);
bool aster_sqlite_journal_log_is_full(const struct sqlite_journal *journal);
/* Copy the log into the tables, so that it begins anew. */
aster_status aster_sqlite_journal_empty_log(struct sqlite_journal *journal, struct aster_error *error);

/* read.c: inside of the caller's transaction. */
/* Visit entries from the first that is not folded, checking that none is missing, until `visit` fails or ends it by
 * *more = false. */
typedef aster_status (*sqlite_journal_visit_entry)(void *user, int64_t position, struct aster_bytes entry, bool *more,
                                                   struct aster_error *error);
aster_status aster_sqlite_journal_entries(struct sqlite_journal *journal, int64_t folded,
                                          sqlite_journal_visit_entry visit, void *user, struct aster_error *error);
/* Visit the records of one sealed entry. */
typedef aster_status (*sqlite_journal_visit_record)(void *user, const struct aster_record *record,
                                                    struct aster_error *error);
aster_status aster_sqlite_journal_records(int64_t position, struct aster_bytes entry, sqlite_journal_visit_record visit,
                                          void *user, struct aster_error *error);
/* The whole row of a folded image; its views live until the next call. */
aster_status aster_sqlite_journal_whole_row(struct sqlite_journal *journal, const struct aster_folded *folded,
                                            struct aster_row *row, struct aster_error *error);
/* Decode the row of a statement's columns resource and row; views borrow from the columns. */
aster_status aster_sqlite_journal_read_row(sqlite3_stmt *statement, struct aster_bytes *resource, struct aster_row *row,
                                           struct aster_error *error);

/* load.c, checkpoint.c: slots of the vtable. */
aster_status aster_sqlite_journal_load(void *self, const struct aster_journal_loading *into, int64_t *last_position,
                                       struct aster_error *error);
aster_status aster_sqlite_journal_checkpoint(void *self, bool *more, struct aster_error *error);

static inline struct aster_bytes sqlite_journal_blob(sqlite3_stmt *statement, int column)
{
    const void *data = sqlite3_column_blob(statement, column);
    return (struct aster_bytes){data, (size_t)sqlite3_column_bytes(statement, column)};
}

static inline void sqlite_journal_bind(sqlite3_stmt *statement, int index, struct aster_bytes bytes)
{
    sqlite3_bind_blob64(statement, index, bytes.size > 0 ? bytes.data : "", bytes.size, SQLITE_STATIC);
}

#endif
