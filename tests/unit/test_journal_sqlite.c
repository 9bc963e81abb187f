#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "serializer/sqlite/filesystem.h"
#include "support/journal_sqlite.h"
#include "support/unit.h"

struct fixture {
    struct journal_file file;
    struct journal_world world;
};

static int set_up(void **state)
{
    struct fixture *fixture = malloc(sizeof *fixture);
    assert_non_null(fixture);
    journal_file_init(&fixture->file);
    journal_world_init(&fixture->world, &fixture->file.subject, 1000);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    journal_world_fini(&fixture->world);
    journal_file_fini(&fixture->file);
    free(fixture);
    return 0;
}

static aster_status open_again(const struct fixture *fixture, struct aster_error *error)
{
    struct aster_journal journal;
    aster_status status = aster_sqlite_journal_open(fixture->file.path, NULL, &journal, error);
    if (status == ASTER_OK) {
        journal.ops->destroy(journal.self);
    }
    return status;
}

static void append_row(struct fixture *fixture, const char *resource, int64_t epoch)
{
    journal_world_row(&fixture->world, resource, epoch, 0, "");
    journal_world_event(&fixture->world, resource, epoch);
    journal_world_append(&fixture->world);
}

static void a_second_owner_in_the_process_is_refused_and_the_first_goes_on(void **state)
{
    struct fixture *fixture = *state;
    struct aster_error error = ASTER_ERROR_INIT;
    append_row(fixture, "r", 1);
    assert_int_equal(open_again(fixture, &error), ASTER_ERR_BUSY);
    append_row(fixture, "r", 2);
    journal_world_close(&fixture->world);
    assert_int_equal(open_again(fixture, &error), ASTER_OK);
    journal_world_open(&fixture->world);
    assert_int_equal(journal_told_find(&fixture->world.told, "r")->epoch, 2);
}

/* In another process than the owner: the journal's answer, or that of a store on the same file. */
static int in_another_process(const struct fixture *fixture, bool as_store, const char *expected)
{
    char self[512];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(size > 0);
    self[size] = '\0';
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, as_store ? "store" : "journal", fixture->file.path, expected, (char *)NULL);
        _exit(100);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static int other_process(const char *what, const char *path, const char *expected)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_journal journal;
    struct aster_serializer *store = NULL;
    struct aster_sqlite_options options = ASTER_SQLITE_OPTIONS_INIT;
    options.busy_timeout_ms = 100;
    aster_status status = strcmp(what, "store") == 0 ? aster_sqlite_open(path, &options, &store, &error)
                                                     : aster_sqlite_journal_open(path, NULL, &journal, &error);
    if (status != ASTER_ERR_BUSY || strstr(error.message, expected) == NULL) {
        fprintf(stderr, "expected BUSY and \"%s\", got %d: %s\n", expected, status, error.message);
        return 1;
    }
    return 0;
}

static void another_process_is_refused_with_the_owners_number_and_the_next_step(void **state)
{
    struct fixture *fixture = *state;
    char owner[64];
    snprintf(owner, sizeof owner, "process %ld (test_journal_s", (long)getpid());
    append_row(fixture, "r", 1);
    assert_int_equal(in_another_process(fixture, false, owner), 0);
    assert_int_equal(in_another_process(fixture, false, "name another file"), 0);
    assert_int_equal(in_another_process(fixture, true, owner), 0);
    append_row(fixture, "r", 2);
}

static void a_child_of_fork_cannot_open_what_its_parent_owns(void **state)
{
    struct fixture *fixture = *state;
    append_row(fixture, "r", 1);
    pid_t child = fork();
    if (child == 0) {
        _exit(open_again(fixture, NULL) == ASTER_ERR_FORKED ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    append_row(fixture, "r", 2);
    assert_int_equal(in_another_process(fixture, false, "locked for itself"), 0);
}

static void a_store_of_leases_is_no_journal_and_a_journal_is_no_store(void **state)
{
    struct fixture *fixture = *state;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_serializer *store = NULL;
    struct aster_journal journal;
    char path[128];
    append_row(fixture, "r", 1);
    journal_world_close(&fixture->world);
    assert_int_equal(aster_sqlite_open(fixture->file.path, NULL, &store, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "journal of a grantor"));
    assert_non_null(strstr(error.message, "aster://"));
    journal_world_open(&fixture->world);
    assert_int_equal(journal_told_find(&fixture->world.told, "r")->epoch, 1);

    snprintf(path, sizeof path, "%s/store.db", fixture->file.directory);
    assert_int_equal(aster_sqlite_open(path, NULL, &store, &error), ASTER_OK);
    aster_serializer_destroy(store);
    assert_int_equal(aster_sqlite_journal_open(path, NULL, &journal, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "store = \"sqlite:PATH\""));
    assert_int_equal(aster_sqlite_open(path, NULL, &store, &error), ASTER_OK);
    aster_serializer_destroy(store);
    unlink(path);
}

static void what_is_no_database_is_left_alone(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = "these are somebody's notes, and long enough to be looked at as a database header .....";
    char path[128];
    char back[sizeof text];
    struct aster_journal journal;
    struct aster_error error = ASTER_ERROR_INIT;
    snprintf(path, sizeof path, "%s/notes", fixture->file.directory);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, sizeof text, file), sizeof text);
    fclose(file);
    assert_int_equal(aster_sqlite_journal_open(path, NULL, &journal, &error), ASTER_ERR_CORRUPT);
    assert_non_null(strstr(error.message, "name another file"));
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(back, 1, sizeof back, file), sizeof back);
    fclose(file);
    assert_memory_equal(back, text, sizeof text);
    unlink(path);
    assert_int_equal(aster_sqlite_journal_open(fixture->file.directory, NULL, &journal, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_sqlite_journal_open("", NULL, &journal, &error), ASTER_ERR_INVALID);
    snprintf(path, sizeof path, "%s/absent/j.db", fixture->file.directory);
    assert_int_equal(aster_sqlite_journal_open(path, NULL, &journal, &error), ASTER_ERR_IO);
    assert_non_null(strstr(error.message, "make its directory first"));
}

static aster_status on_nfs(const char *path, uint64_t *magic, struct aster_error *error)
{
    (void)path;
    (void)error;
    *magic = 0x6969;
    return ASTER_OK;
}

static void a_network_file_system_is_refused_by_name_and_no_file_is_left(void **state)
{
    struct fixture *fixture = *state;
    aster_status (*before)(const char *, uint64_t *, struct aster_error *) = aster_filesystem_probe;
    struct aster_journal journal;
    struct aster_error error = ASTER_ERROR_INIT;
    struct stat facts;
    char path[128];
    snprintf(path, sizeof path, "%s/nfs.db", fixture->file.directory);
    aster_filesystem_probe = on_nfs;
    aster_status status = aster_sqlite_journal_open(path, NULL, &journal, &error);
    aster_filesystem_probe = before;
    assert_int_equal(status, ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "nfs"));
    assert_non_null(strstr(error.message, "local disk"));
    assert_int_not_equal(stat(path, &facts), 0);
}

static void the_file_is_for_its_owner_only_and_alone_after_a_clean_end(void **state)
{
    struct fixture *fixture = *state;
    struct stat facts;
    char log[128];
    append_row(fixture, "r", 1);
    assert_int_equal(stat(fixture->file.path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    snprintf(log, sizeof log, "%s-wal", fixture->file.path);
    assert_int_equal(stat(log, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    journal_world_close(&fixture->world);
    assert_int_not_equal(stat(log, &facts), 0);
    journal_world_open(&fixture->world);
}

/* The log is as long from the start as it gets, so that a sync has no longer file to record. */
static void the_log_does_not_grow_however_much_is_appended(void **state)
{
    struct fixture *fixture = *state;
    static char value[4000];
    char log[128];
    struct stat before;
    struct stat after;
    memset(value, 'x', sizeof value - 1);
    snprintf(log, sizeof log, "%s-wal", fixture->file.path);
    assert_int_equal(stat(log, &before), 0);
    for (int64_t epoch = 1; epoch <= 2500; epoch++) {
        journal_world_row(&fixture->world, "r", epoch, epoch, value);
        journal_world_append(&fixture->world);
        bool more;
        assert_int_equal(fixture->world.journal.ops->checkpoint(fixture->world.journal.self, &more, NULL), ASTER_OK);
    }
    assert_int_equal(stat(log, &after), 0);
    assert_int_equal(before.st_size, (off_t)4 << 20);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(stat(fixture->file.path, &after), 0);
    assert_in_range(after.st_size, 1, 4 << 20);
}

static aster_status reload(struct fixture *fixture, struct aster_error *error)
{
    struct aster_journal journal;
    struct journal_told told = {0};
    aster_status status = aster_sqlite_journal_open(fixture->file.path, NULL, &journal, error);
    if (status == ASTER_OK) {
        status = journal_told_load(&told, &journal, error);
        journal.ops->destroy(journal.self);
        journal_told_fini(&told);
    }
    return status;
}

/* Enough that rows and events are folded, and entries remain. */
static void fill(struct fixture *fixture)
{
    static char value[30000];
    memset(value, 'x', sizeof value - 1);
    for (int64_t epoch = 1; epoch <= 30; epoch++) {
        journal_world_row(&fixture->world, "large", epoch, epoch, value);
        append_row(fixture, "r", epoch);
    }
    bool more;
    assert_int_equal(fixture->world.journal.ops->checkpoint(fixture->world.journal.self, &more, NULL), ASTER_OK);
    journal_world_close(&fixture->world);
    assert_true(journal_file_ask(&fixture->file, "SELECT count(*) FROM rows") == 2);
    assert_true(journal_file_ask(&fixture->file, "SELECT count(*) FROM events") == 1);
    assert_true(journal_file_ask(&fixture->file, "SELECT count(*) FROM entries") > 5);
}

/* Every kind of damage stops the load; nothing is skipped. After the last one the journal is as before. */
static void damage_stops_the_load_and_says_where(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *sql;
        const char *said;
    } damages[] = {
        {"UPDATE entries SET entry = substr(entry, 1, 40) WHERE position = 29", "entry 29"},
        {"UPDATE entries SET entry = x'00' || substr(entry, 2) WHERE position = 29", "entry 29"},
        {"DELETE FROM entries WHERE position = 29", "entry 30 where entry 29 should be"},
        {"UPDATE rows SET row = substr(row, 1, 40) WHERE resource = x'72'", "row of r"},
        {"UPDATE rows SET resource = x'73' WHERE resource = x'72'", "row of s"},
        {"UPDATE events SET entry = substr(entry, 1, 40)", "entry"},
        {"UPDATE meta SET folded = -1", "meta"},
        {"UPDATE meta SET folded = folded - 1", "should be"},
        {"DELETE FROM meta", "meta"},
    };
    fill(fixture);
    char copy[128];
    char command[400];
    snprintf(copy, sizeof copy, "%s/copy", fixture->file.directory);
    snprintf(command, sizeof command, "cp %s %s", fixture->file.path, copy);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "cp %s %s", copy, fixture->file.path);
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        struct aster_error error = ASTER_ERROR_INIT;
        journal_file_execute(&fixture->file, damages[i].sql);
        aster_status status = reload(fixture, &error);
        if (status != ASTER_ERR_CORRUPT || strstr(error.message, damages[i].said) == NULL) {
            fail_msg("%s: status %d, \"%s\"", damages[i].sql, status, error.message);
        }
        assert_int_equal(system(command), 0);
    }
    unlink(copy);
    journal_world_open(&fixture->world);
    assert_int_equal(journal_told_find(&fixture->world.told, "r")->epoch, 30);
}

static void a_journal_of_a_newer_version_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct aster_error error = ASTER_ERROR_INIT;
    append_row(fixture, "r", 1);
    journal_world_close(&fixture->world);
    journal_file_execute(&fixture->file, "PRAGMA user_version = 2");
    assert_int_equal(open_again(fixture, &error), ASTER_ERR_VERSION);
    assert_non_null(strstr(error.message, "newer Aster"));
    journal_file_execute(&fixture->file, "PRAGMA user_version = 1");
    journal_world_open(&fixture->world);
}

static void a_file_that_was_moved_away_takes_no_more_entries(void **state)
{
    struct fixture *fixture = *state;
    struct aster_error error = ASTER_ERROR_INIT;
    char moved[128];
    append_row(fixture, "r", 1);
    snprintf(moved, sizeof moved, "%s/moved", fixture->file.directory);
    assert_int_equal(rename(fixture->file.path, moved), 0);
    journal_world_row(&fixture->world, "r", 2, 0, "");
    assert_int_equal(journal_world_try(&fixture->world, &error), ASTER_ERR_IO);
    assert_non_null(strstr(error.message, "moved"));
    assert_int_equal(rename(moved, fixture->file.path), 0);
    journal_world_append(&fixture->world);
    journal_world_reopen(&fixture->world);
    assert_int_equal(journal_told_find(&fixture->world.told, "r")->epoch, 2);
}

static void options_are_checked(void **state)
{
    struct fixture *fixture = *state;
    struct aster_journal journal;
    struct aster_error error = ASTER_ERROR_INIT;
    char path[128];
    struct aster_sqlite_journal_options options = ASTER_SQLITE_JOURNAL_OPTIONS_INIT;
    options.history_max = -1;
    snprintf(path, sizeof path, "%s/other.db", fixture->file.directory);
    assert_int_equal(aster_sqlite_journal_open(path, &options, &journal, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "history_max"));
    struct stat facts;
    assert_int_not_equal(stat(path, &facts), 0);
}

int main(int argc, char **argv)
{
    if (argc == 4) {
        return other_process(argv[1], argv[2], argv[3]);
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_second_owner_in_the_process_is_refused_and_the_first_goes_on),
        TEST(another_process_is_refused_with_the_owners_number_and_the_next_step),
        TEST(a_child_of_fork_cannot_open_what_its_parent_owns),
        TEST(a_store_of_leases_is_no_journal_and_a_journal_is_no_store),
        TEST(what_is_no_database_is_left_alone),
        TEST(a_network_file_system_is_refused_by_name_and_no_file_is_left),
        TEST(the_file_is_for_its_owner_only_and_alone_after_a_clean_end),
        TEST(the_log_does_not_grow_however_much_is_appended),
        TEST(damage_stops_the_load_and_says_where),
        TEST(a_journal_of_a_newer_version_is_refused),
        TEST(a_file_that_was_moved_away_takes_no_more_entries),
        TEST(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
