/* What every journal must do, over those that are shipped. */
#include "support/journal_sqlite.h"
#include "support/journal_suite.h"

int main(void)
{
    struct journal_file file;
    journal_file_init(&file);
    int failures = journal_suite_run("journal over SQLite", &file.subject);
    journal_file_fini(&file);
    return failures;
}
