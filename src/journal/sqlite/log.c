#include "base/error.h"
#include "journal/sqlite/internal.h"

#define LOG_BYTES ((sqlite3_int64)4 << 20)
#define FRAME_BYTES (4096 + 24) /* a page and its header in the log */
/* Emptied before it would have to grow, by an append of the largest size or two. */
#define LOG_PAGES_MAX ((int)(LOG_BYTES / FRAME_BYTES * 3 / 4))

static int note_pages(void *user, sqlite3 *db, const char *schema, int pages)
{
    (void)db;
    (void)schema;
    struct sqlite_journal *journal = user;
    journal->log_pages = pages;
    return SQLITE_OK;
}

void aster_sqlite_journal_watch_log(struct sqlite_journal *journal)
{
    /* Takes the place of SQLite's own checkpoints, which would come inside of an append. */
    sqlite3_wal_hook(journal->connection.db, note_pages, journal);
}

void aster_sqlite_journal_reserve_log(struct sqlite_journal *journal)
{
    static const unsigned char zeros[1 << 16]; /* no frame of a log is all zeros: they end it, as the file's end does */
    sqlite3_file *log = NULL;
    sqlite3_int64 size = 0;
    sqlite3_file_control(journal->connection.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (log == NULL || log->pMethods == NULL || log->pMethods->xFileSize(log, &size) != SQLITE_OK) {
        return;
    }
    while (size < LOG_BYTES) {
        sqlite3_int64 left = LOG_BYTES - size;
        int part = left < (sqlite3_int64)sizeof zeros ? (int)left : (int)sizeof zeros;
        if (log->pMethods->xWrite(log, zeros, part, size) != SQLITE_OK) {
            break;
        }
        size += part;
    }
    /* Without it the first appends would wait for these writes. A failure shows again in the first append. */
    log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

bool aster_sqlite_journal_log_is_full(const struct sqlite_journal *journal)
{
    return journal->log_pages >= LOG_PAGES_MAX;
}

aster_status aster_sqlite_journal_empty_log(struct sqlite_journal *journal, struct aster_error *error)
{
    int pages = 0;
    int copied = 0;
    int code = sqlite3_wal_checkpoint_v2(journal->connection.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    if (code != SQLITE_OK) {
        return aster_connection_fault(&journal->connection, code, error);
    }
    if (copied == pages) {
        journal->log_pages = 0;
    }
    return ASTER_OK;
}
