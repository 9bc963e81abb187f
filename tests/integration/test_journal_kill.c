/* A process that appends to a SQLite journal is killed again and again: nothing that it acknowledged is lost. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/journal_count.h"
#include "support/journal_sqlite.h"
#include "support/seed.h"
#include "support/unit.h"

#define KILLS 30

/* Shared with the child. */
struct progress {
    _Atomic(int64_t) loaded;
    _Atomic(int64_t) acknowledged;
    _Atomic(bool) failed;
};

static void append_until_killed(const struct journal_file *file, struct progress *progress)
{
    struct aster_journal journal;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_entry_builder builder = {0};
    bool good = file->subject.open(file->subject.user, JOURNAL_COUNT_HISTORY, &journal, &error) == ASTER_OK;
    int64_t position = good ? journal_count_load(&journal) : 0;
    atomic_store(&progress->acknowledged, position);
    atomic_store(&progress->loaded, position);
    while (good) {
        position++;
        struct aster_bytes entry = journal_count_entry(&builder, position, position % 3 == 0 ? 20000 : 100);
        good = journal.ops->append(journal.self, position, entry, &error) == ASTER_OK;
        if (good) {
            atomic_store(&progress->acknowledged, position);
            bool more;
            good = journal.ops->checkpoint(journal.self, &more, &error) == ASTER_OK;
        }
    }
    fprintf(stderr, "the writer failed: %s\n", error.message);
    atomic_store(&progress->failed, true);
    _exit(1);
}

static void pause_us(int64_t us)
{
    const struct timespec pause = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&pause, NULL);
}

static int64_t position_on_disk(const struct journal_file *file)
{
    struct aster_journal journal;
    struct aster_error error = ASTER_ERROR_INIT;
    if (file->subject.open(file->subject.user, JOURNAL_COUNT_HISTORY, &journal, &error) != ASTER_OK) {
        fail_msg("the journal does not open after a kill: %s", error.message);
    }
    int64_t last = journal_count_load(&journal);
    journal.ops->destroy(journal.self);
    return last;
}

static void nothing_acknowledged_is_lost_when_the_process_is_killed(void **state)
{
    (void)state;
    struct journal_file file;
    uint64_t random = test_seed(3);
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(progress != MAP_FAILED);
    journal_file_init(&file);
    int64_t last = 0;
    for (int i = 0; i < KILLS; i++) {
        atomic_store(&progress->loaded, -1);
        pid_t child = fork();
        if (child == 0) {
            append_until_killed(&file, progress);
        }
        while (atomic_load(&progress->loaded) < 0 && !atomic_load(&progress->failed)) {
            pause_us(200);
        }
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        pause_us((int64_t)((random >> 33) % 30000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_false(atomic_load(&progress->failed));
        assert_int_equal(atomic_load(&progress->loaded), last);
        int64_t acknowledged = atomic_load(&progress->acknowledged);
        last = position_on_disk(&file);
        assert_in_range(last, acknowledged, acknowledged + 1);
    }
    assert_true(last > KILLS);
    journal_file_fini(&file);
    munmap(progress, sizeof *progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_when_the_process_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
