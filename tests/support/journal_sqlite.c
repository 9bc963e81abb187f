#include "support/journal_sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/unit.h"

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

static aster_status open_journal(void *user, int64_t history_max, struct aster_journal *journal,
                                 struct aster_error *error)
{
    const struct journal_file *file = user;
    struct aster_sqlite_journal_options options = ASTER_SQLITE_JOURNAL_OPTIONS_INIT;
    options.history_max = history_max;
    return aster_sqlite_journal_open(file->path, &options, journal, error);
}

static void wipe(void *user)
{
    const struct journal_file *file = user;
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s%s", file->path, suffixes[i]);
        unlink(path);
    }
}

void journal_file_init(struct journal_file *file)
{
    snprintf(file->directory, sizeof file->directory, "/tmp/aster-test-XXXXXX");
    assert_non_null(mkdtemp(file->directory));
    snprintf(file->path, sizeof file->path, "%s/journal.db", file->directory);
    file->subject = (struct journal_subject){file, open_journal, wipe};
}

void journal_file_fini(struct journal_file *file)
{
    wipe(file);
    rmdir(file->directory);
}

static int64_t run(const struct journal_file *file, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open_v2(file->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    int code = sqlite3_step(statement);
    assert_true(code == SQLITE_ROW || code == SQLITE_DONE);
    int64_t answer = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return answer;
}

void journal_file_execute(const struct journal_file *file, const char *sql)
{
    run(file, sql);
}

int64_t journal_file_ask(const struct journal_file *file, const char *sql)
{
    return run(file, sql);
}
