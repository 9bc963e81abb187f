/* A SQLite journal in a directory of its own, for tests. */
#ifndef SUPPORT_JOURNAL_SQLITE_H
#define SUPPORT_JOURNAL_SQLITE_H

#include "journal/sqlite/journal.h"
#include "support/journal_world.h"

struct journal_file {
    char directory[64];
    char path[96];
    struct journal_subject subject; /* opens the file */
};

void journal_file_init(struct journal_file *file);
void journal_file_fini(struct journal_file *file); /* removes the directory */

/* Run SQL on the file while no journal has it open; asserts that it works. */
void journal_file_execute(const struct journal_file *file, const char *sql);
/* The first column of the first row, as an integer. */
int64_t journal_file_ask(const struct journal_file *file, const char *sql);

#endif
