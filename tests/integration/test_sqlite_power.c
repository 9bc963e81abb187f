/* What survives: power cuts at every kind of moment, full disks and failing syncs. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "serializer/sqlite/boot.h"
#include "support/lossy_vfs.h"
#include "support/seed.h"
#include "support/sqlite_store.h"

#define RESOURCES 5

/* What the store has acknowledged about one resource. */
struct known {
    int64_t epoch;
    bool held;
    int64_t value_revision;
    int64_t writes; /* to the user's own table, through fenced writes */
};

struct fixture {
    struct sqlite_store store;
    struct store_call call;
    struct known known[RESOURCES];
    char cut_path[96];
    uint64_t seed;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.seed = test_seed(42)};
    sqlite_store_init(&fixture.store);
    fixture.call.serializer = fixture.store.serializer;
    snprintf(fixture.cut_path, sizeof fixture.cut_path, "%s/cut.db", fixture.store.directory);
    sqlite_store_execute(&fixture.store, "CREATE TABLE t (resource TEXT)");
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    struct fixture *fixture = *state;
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    store_call_fini(&fixture->call);
    for (size_t i = 0; i < 3; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s%s", fixture->cut_path, suffixes[i]);
        unlink(path);
    }
    sqlite_store_fini(&fixture->store);
    lossy_vfs_reset();
    return 0;
}

static uint64_t random_below(struct fixture *fixture, uint64_t bound)
{
    fixture->seed = fixture->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (fixture->seed >> 33) % bound;
}

static void name_of(size_t index, char name[8])
{
    snprintf(name, 8, "r%zu", index);
}

static aster_status write_row(void *tx, void *name)
{
    char sql[64];
    snprintf(sql, sizeof sql, "INSERT INTO t VALUES ('%s')", (const char *)name);
    return sqlite3_exec(tx, sql, NULL, NULL, NULL) == SQLITE_OK ? ASTER_OK : ASTER_ERR_IO;
}

/* Do one operation that must be granted, and say what is acknowledged afterwards. */
static void step(struct fixture *fixture, size_t index, struct known *after)
{
    struct known *known = &fixture->known[index];
    char name[8];
    name_of(index, name);
    *after = *known;
    const struct aster_fence fence = {aster_text(name), known->epoch, aster_text("w")};
    aster_status status;
    if (!known->held) {
        status = store_acquire(&fixture->call, name, "w", 60000);
        after->held = true;
        after->epoch++;
    } else {
        switch (random_below(fixture, 5)) {
        case 0:
            status = store_release(&fixture->call, name, "w", known->epoch);
            after->held = false;
            after->epoch++;
            break;
        case 1:
            status = aster_put(fixture->store.serializer, &fence, aster_text("w"), known->value_revision,
                               aster_text("some value"), &fixture->call.reply, &fixture->call.error);
            after->value_revision++;
            break;
        case 2:
            status = aster_revoke(fixture->store.serializer, aster_text(name), aster_text("op"), known->epoch,
                                  &fixture->call.reply, &fixture->call.error);
            after->held = false;
            after->epoch++;
            break;
        case 3:
            status = aster_mutate_fenced(fixture->store.serializer, &fence, aster_text("w"), write_row, name, NULL,
                                         &fixture->call.error);
            after->writes++;
            break;
        default:
            status = store_renew(&fixture->call, name, "w", known->epoch);
            break;
        }
    }
    assert_int_equal(status, ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
}

static bool is_as(const struct aster_snapshot *snapshot, int64_t writes, const struct known *known)
{
    return snapshot->epoch == known->epoch && snapshot->held == known->held &&
           snapshot->value_revision == known->value_revision && writes == known->writes;
}

static int64_t writes_after_cut(const struct fixture *fixture, const char *name)
{
    struct sqlite_store cut = {.serializer = NULL};
    char sql[96];
    snprintf(cut.path, sizeof cut.path, "%s", fixture->cut_path);
    snprintf(sql, sizeof sql, "SELECT count(*) FROM t WHERE resource = '%s'", name);
    return sqlite_store_ask(&cut, sql);
}

/* Open what the power cut left, as the next boot does. Row `index` may be in either of two states. */
static void check_cut(struct fixture *fixture, size_t index, const struct known *either)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_boot_set_virtual("after the cut");
    aster_status status = aster_sqlite_open(fixture->cut_path, &fixture->store.options, &serializer, &error);
    aster_boot_set_virtual(NULL);
    if (status != ASTER_OK) {
        fail_msg("after the cut: %s", error.message);
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        char name[8];
        name_of(i, name);
        assert_int_equal(aster_inspect(serializer, aster_text(name), &reply, NULL), ASTER_OK);
        const struct aster_snapshot *snapshot = &reply.decision.snapshot;
        int64_t writes = writes_after_cut(fixture, name);
        if (!is_as(snapshot, writes, &fixture->known[i]) && !(i == index && is_as(snapshot, writes, either))) {
            fail_msg("%s came back with epoch %lld, held %d, value revision %lld, writes %lld; acknowledged %lld, %d, "
                     "%lld, %lld",
                     name, (long long)snapshot->epoch, snapshot->held, (long long)snapshot->value_revision,
                     (long long)writes, (long long)fixture->known[i].epoch, fixture->known[i].held,
                     (long long)fixture->known[i].value_revision, (long long)fixture->known[i].writes);
        }
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
}

static void what_was_acknowledged_is_there_after_a_power_cut_at_any_moment(void **state)
{
    static const unsigned keeps[] = {0, 50, 90, 100};
    struct fixture *fixture = *state;
    int inside = 0;
    for (int i = 0; i < 1500; i++) {
        size_t index = (size_t)random_below(fixture, RESOURCES);
        struct known after;
        bool try_cut = random_below(fixture, 4) == 0;
        unsigned keep = keeps[random_below(fixture, 4)];
        if (try_cut) {
            lossy_vfs_cut_after(1 + (int)random_below(fixture, 12), fixture->cut_path, keep, fixture->seed);
        }
        step(fixture, index, &after);
        bool fired = lossy_vfs_fired();
        if (fired) {
            check_cut(fixture, index, &after);
            inside++;
        }
        fixture->known[index] = after;
        if (try_cut && !fired) {
            lossy_vfs_cut(fixture->cut_path, keep, fixture->seed);
            check_cut(fixture, index, &after);
        }
    }
    assert_true(inside > 50);
}

static void a_full_disk_uses_up_no_epoch_and_names_itself(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(store_acquire(&fixture->call, "r", "a", 10000), ASTER_OK);
    lossy_vfs_set_fault(LOSSY_NO_WRITE);
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(store_acquire(&fixture->call, "other", "a", 10000), ASTER_ERR_IO);
        assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_ERR_IO);
    }
    assert_non_null(strstr(fixture->call.error.message, "full"));
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.epoch, 1);
    assert_int_equal(store_inspect(&fixture->call, "other"), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.epoch, 0);
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.epoch, 2);
    assert_int_equal(store_acquire(&fixture->call, "other", "a", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.epoch, 1);
}

static void renewals_survive_a_disk_without_room_for_growth(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(store_acquire(&fixture->call, "r", "a", 10000), ASTER_OK);
    sqlite_store_execute(&fixture->store, "PRAGMA wal_checkpoint"); /* a store that has run for a while */
    lossy_vfs_set_fault(LOSSY_NO_GROWTH);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
        assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    }
}

static void a_failed_sync_is_indeterminate_and_the_same_request_settles_it(void **state)
{
    struct fixture *fixture = *state;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text("r0");
    operation.caller = aster_text("w");
    operation.ttl_ms = 10000;
    operation.request_id[0] = 1;
    lossy_vfs_set_fault(LOSSY_NO_SYNC);
    assert_int_equal(store_call_run(&fixture->call, &operation), ASTER_ERR_INDETERMINATE);
    assert_non_null(strstr(fixture->call.error.message, "same request id"));
    aster_status while_failing = store_call_run(&fixture->call, &operation);
    assert_true(while_failing == ASTER_ERR_IO || while_failing == ASTER_ERR_INDETERMINATE);
    lossy_vfs_set_fault(LOSSY_NO_FAULT);
    assert_int_equal(store_call_run(&fixture->call, &operation), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    assert_int_equal(fixture->call.reply.decision.epoch, 1);
    const struct known granted = {1, true, 0, 0};
    fixture->known[0] = granted;
    lossy_vfs_cut(fixture->cut_path, 0, 1);
    check_cut(fixture, 0, &granted);
}

struct requester {
    struct fixture *fixture;
    size_t index;
    bool good;
};

static void *cycle(void *user)
{
    struct requester *requester = user;
    struct store_call call = {requester->fixture->store.serializer, ASTER_REPLY_INIT, ASTER_ERROR_INIT};
    char name[8];
    name_of(requester->index, name);
    requester->good = true;
    for (int i = 0; i < 10 && requester->good; i++) {
        requester->good =
            store_acquire(&call, name, "w", 60000) == ASTER_OK && call.reply.decision.outcome == ASTER_GRANTED &&
            store_release(&call, name, "w", 2 * i + 1) == ASTER_OK && call.reply.decision.epoch == 2 * i + 2;
    }
    store_call_fini(&call);
    return NULL;
}

static void requests_of_64_threads_share_syncs(void **state)
{
    struct fixture *fixture = *state;
    enum { THREADS = 64 };
    static struct requester requesters[THREADS];
    pthread_t threads[THREADS];
    lossy_vfs_set_sync_us(2000);
    int64_t before = lossy_vfs_syncs();
    for (size_t i = 0; i < THREADS; i++) {
        requesters[i] = (struct requester){fixture, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, cycle, &requesters[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(requesters[i].good);
    }
    int64_t syncs = lossy_vfs_syncs() - before;
    assert_in_range(syncs, 20, THREADS * 20 / 5);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit"), THREADS * 20);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT resources FROM aster_meta"), THREADS);
}

static void a_renewal_is_not_synced(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(store_acquire(&fixture->call, "r", "a", 10000), ASTER_OK);
    int64_t before = lossy_vfs_syncs();
    for (int i = 0; i < 100; i++) {
        assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    }
    assert_int_equal(lossy_vfs_syncs(), before);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(lossy_vfs_syncs(), before + 1);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(what_was_acknowledged_is_there_after_a_power_cut_at_any_moment),
        STORE_TEST(a_full_disk_uses_up_no_epoch_and_names_itself),
        STORE_TEST(renewals_survive_a_disk_without_room_for_growth),
        STORE_TEST(a_failed_sync_is_indeterminate_and_the_same_request_settles_it),
        STORE_TEST(requests_of_64_threads_share_syncs),
        STORE_TEST(a_renewal_is_not_synced),
    };
    lossy_vfs_install("/store.db");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
