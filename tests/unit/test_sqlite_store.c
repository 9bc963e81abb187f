#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "serializer/sqlite/boot.h"
#include "serializer/sqlite/filesystem.h"
#include "support/sqlite_store.h"

struct fixture {
    struct sqlite_store store;
    struct store_call call;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    sqlite_store_init(&fixture.store);
    fixture.call.serializer = fixture.store.serializer;
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_call_fini(&fixture->call);
    sqlite_store_fini(&fixture->store);
    aster_boot_set_virtual(NULL);
    return 0;
}

static void reopen(struct fixture *fixture)
{
    sqlite_store_close(&fixture->store);
    sqlite_store_open(&fixture->store);
    fixture->call.serializer = fixture->store.serializer;
}

static void acquire_ok(struct fixture *fixture, const char *resource, const char *holder, int64_t epoch)
{
    assert_int_equal(store_acquire(&fixture->call, resource, holder, 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    assert_int_equal(fixture->call.reply.decision.epoch, epoch);
}

static void a_lease_is_granted_renewed_denied_and_released(void **state)
{
    struct fixture *fixture = *state;
    struct store_call *call = &fixture->call;
    acquire_ok(fixture, "invoice", "a", 1);
    assert_int_equal(store_acquire(call, "invoice", "b", 10000), ASTER_OK);
    assert_int_equal(call->reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_memory_equal(call->reply.decision.snapshot.holder.data, "a", 1);
    assert_true(call->reply.decision.snapshot.remaining_ns == INT64_C(10000000000));
    fake_clock_advance_ms(fixture->store.clock, 4000);
    assert_int_equal(store_inspect(call, "invoice"), ASTER_OK);
    assert_true(call->reply.decision.snapshot.remaining_ns == INT64_C(6000000000));
    assert_int_equal(store_renew(call, "invoice", "a", 1), ASTER_OK);
    assert_int_equal(call->reply.decision.outcome, ASTER_GRANTED);
    assert_true(call->reply.decision.snapshot.remaining_ns == INT64_C(10000000000));
    assert_int_equal(store_release(call, "invoice", "a", 1), ASTER_OK);
    assert_int_equal(call->reply.decision.outcome, ASTER_GRANTED);
    assert_int_equal(call->reply.decision.epoch, 2);
    acquire_ok(fixture, "invoice", "b", 3);
    assert_memory_equal(call->reply.decision.snapshot.last_holder.data, "a", 1);
    assert_int_equal(call->reply.decision.snapshot.last_epoch_held, 1);
}

static void an_expired_lease_is_taken_over_at_its_ttl_and_not_before(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    fake_clock_advance_ns(fixture->store.clock, INT64_C(9999999999));
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_DENIED);
    fake_clock_advance_ns(fixture->store.clock, 1);
    acquire_ok(fixture, "r", "b", 2);
    assert_true(fixture->call.reply.decision.takeover);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit WHERE kind = 2 AND "
                                                       "previous = 'a' AND actor = 'b' AND epoch = 2"),
                     1);
}

static void a_lease_outlives_the_process_that_asked_for_it(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    fake_clock_advance_ms(fixture->store.clock, 3000);
    reopen(fixture);
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_true(fixture->call.reply.decision.snapshot.held);
    assert_true(fixture->call.reply.decision.snapshot.remaining_ns == INT64_C(7000000000));
}

static void another_boot_rearms_with_a_full_ttl_and_moves_no_epoch(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    fake_clock_advance_ms(fixture->store.clock, 60000);
    aster_boot_set_virtual("second");
    reopen(fixture);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_true(fixture->call.reply.decision.snapshot.remaining_ns == INT64_C(10000000000));
    assert_int_equal(fixture->call.reply.decision.epoch, 1);
    fake_clock_advance_ms(fixture->store.clock, 10000);
    acquire_ok(fixture, "r", "b", 2);
}

static void a_row_from_another_boot_that_appears_later_is_rearmed_when_it_is_met(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    sqlite_store_execute(&fixture->store, "UPDATE aster_lease SET boot_id = 'elsewhere', granted_at_ns = 5");
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT boot_id = 'virtual' AND granted_at_ns > 5 "
                                                       "FROM aster_lease"),
                     1);
    fake_clock_advance_ms(fixture->store.clock, 10000);
    acquire_ok(fixture, "r", "b", 2);
}

static void a_grant_from_the_future_is_rearmed(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    sqlite_store_execute(&fixture->store, "UPDATE aster_lease SET granted_at_ns = 9e18");
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_true(fixture->call.reply.decision.snapshot.remaining_ns == INT64_C(10000000000));
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    fake_clock_advance_ms(fixture->store.clock, 10000);
    acquire_ok(fixture, "r", "b", 2);
}

static void the_wall_clock_may_jump_a_day_either_way(void **state)
{
    struct fixture *fixture = *state;
    const int64_t day_ms = 86400000;
    acquire_ok(fixture, "r", "a", 1);
    const int64_t shifts[] = {day_ms, -2 * day_ms};
    for (size_t i = 0; i < 2; i++) {
        fake_clock_shift_wall_ms(fixture->store.clock, shifts[i]);
        assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
        assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_HELD_BY_OTHER);
        assert_true(fixture->call.reply.decision.snapshot.remaining_ns == INT64_C(10000000000));
    }
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
}

static void the_files_are_private(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        struct stat facts;
        snprintf(path, sizeof path, "%s%s", fixture->store.path, suffixes[i]);
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_mode & 0777, 0600);
    }
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *fixture = *state;
    sqlite_store_close(&fixture->store);
    sqlite_store_execute(&fixture->store, "UPDATE aster_meta SET schema_version = 2");
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(
        aster_sqlite_open(fixture->store.path, &fixture->store.options, &fixture->store.serializer, &error),
        ASTER_ERR_VERSION);
    assert_non_null(strstr(error.message, "version 2"));
}

static void a_file_that_is_no_database_is_refused_and_left_alone(void **state)
{
    struct fixture *fixture = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/text", fixture->store.directory);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++) {
        fputs("this is no database\n", file);
    }
    fclose(file);
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_sqlite_open(path, &fixture->store.options, &serializer, &error), ASTER_ERR_CORRUPT);
    assert_null(serializer);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_size, 20000);
    assert_int_equal(remove(path), 0);
}

static void paths_and_options_out_of_range_are_refused_with_their_numbers(void **state)
{
    struct fixture *fixture = *state;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_sqlite_open("", NULL, &serializer, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_sqlite_open(":memory:", NULL, &serializer, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_sqlite_open("/nonexistent/dir/x.db", NULL, &serializer, &error), ASTER_ERR_IO);
    struct aster_sqlite_options options = fixture->store.options;
    options.busy_timeout_ms = 60001;
    assert_int_equal(aster_sqlite_open(fixture->store.path, &options, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "60001"));
    options = fixture->store.options;
    options.create = false;
    char path[128];
    snprintf(path, sizeof path, "%s/missing.db", fixture->store.directory);
    assert_int_equal(aster_sqlite_open(path, &options, &serializer, &error), ASTER_ERR_IO);
    struct stat facts;
    assert_int_not_equal(stat(path, &facts), 0);
    assert_null(serializer);
}

static aster_status on_nfs(const char *path, uint64_t *magic, struct aster_error *error)
{
    (void)path;
    (void)error;
    *magic = 0x6969;
    return ASTER_OK;
}

static void a_network_file_system_is_refused_by_name_unless_allowed(void **state)
{
    struct fixture *fixture = *state;
    aster_status (*before)(const char *, uint64_t *, struct aster_error *) = aster_filesystem_probe;
    aster_filesystem_probe = on_nfs;
    char path[128];
    snprintf(path, sizeof path, "%s/nfs.db", fixture->store.directory);
    struct aster_sqlite_options options = fixture->store.options;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(aster_sqlite_open(path, &options, &serializer, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "nfs"));
    assert_non_null(strstr(error.message, "allow_network_filesystem"));
    struct stat facts;
    assert_int_not_equal(stat(path, &facts), 0);
    options.allow_network_filesystem = true;
    assert_int_equal(aster_sqlite_open(fixture->store.path, &options, &serializer, &error), ASTER_OK);
    aster_serializer_destroy(serializer);
    aster_filesystem_probe = before;
}

static void a_tampered_row_is_not_served(void **state)
{
    struct fixture *fixture = *state;
    acquire_ok(fixture, "r", "a", 1);
    acquire_ok(fixture, "other", "a", 1);
    sqlite_store_execute(&fixture->store, "UPDATE aster_lease SET epoch = 7 WHERE resource = 'r'");
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_ERR_CORRUPT);
    assert_non_null(strstr(fixture->call.error.message, "\"r\""));
    assert_int_equal(store_renew(&fixture->call, "r", "a", 1), ASTER_ERR_CORRUPT);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_ERR_CORRUPT);
    assert_int_equal(store_renew(&fixture->call, "other", "a", 1), ASTER_OK);
}

static void every_column_under_the_checksum_is_covered(void **state)
{
    struct fixture *fixture = *state;
    static const char *const changes[] = {"held = 0",
                                          "holder = 'mallory'",
                                          "ttl_ms = ttl_ms + 1",
                                          "lease_revision = lease_revision + 1",
                                          "value = x'00'",
                                          "value_revision = 5",
                                          "last_holder = 'm'",
                                          "last_epoch_held = 5",
                                          "request_epoch = 9",
                                          "request_id = zeroblob(16)",
                                          "request_caller = 'm'",
                                          "request_kind = 3",
                                          "request_takeover = 1",
                                          "request_id = x'00'"};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char resource[16];
        char sql[160];
        snprintf(resource, sizeof resource, "r%zu", i);
        acquire_ok(fixture, resource, "a", 1);
        snprintf(sql, sizeof sql, "UPDATE aster_lease SET %s WHERE resource = '%s'", changes[i], resource);
        sqlite_store_execute(&fixture->store, sql);
        if (store_inspect(&fixture->call, resource) != ASTER_ERR_CORRUPT) {
            fail_msg("%s is not noticed", changes[i]);
        }
    }
}

static bool count_event(const struct aster_event *event, void *user)
{
    int64_t *seen = user; /* count, first, last revision */
    seen[0]++;
    seen[1] = seen[0] == 1 ? event->revision : seen[1];
    assert_true(event->revision > seen[2]);
    seen[2] = event->revision;
    return true;
}

static void the_history_is_bounded_and_revisions_are_never_used_again(void **state)
{
    struct fixture *fixture = *state;
    fixture->store.options.history_max = 10;
    reopen(fixture);
    for (int i = 0; i < 30; i++) {
        acquire_ok(fixture, "r", "a", 2 * i + 1);
        assert_int_equal(store_release(&fixture->call, "r", "a", 2 * i + 1), ASTER_OK);
    }
    const struct aster_history_query query = ASTER_HISTORY_QUERY_INIT;
    int64_t seen[3] = {0, 0, 0};
    assert_int_equal(aster_history(fixture->store.serializer, &query, count_event, seen, NULL), ASTER_OK);
    assert_int_equal(seen[0], 10);
    assert_int_equal(seen[1], 51);
    assert_int_equal(seen[2], 60);
    assert_in_range(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit"), 10, 20);
    struct aster_history_query few = ASTER_HISTORY_QUERY_INIT;
    few.after_revision = 52;
    few.limit = 3;
    int64_t last[3] = {0, 0, 0};
    assert_int_equal(aster_history(fixture->store.serializer, &few, count_event, last, NULL), ASTER_OK);
    assert_int_equal(last[0], 3);
    assert_int_equal(last[1], 58);
    few.resource = aster_text("another");
    int64_t none[3] = {0, 0, 0};
    assert_int_equal(aster_history(fixture->store.serializer, &few, count_event, none, NULL), ASTER_OK);
    assert_int_equal(none[0], 0);
}

static bool collect_name(const struct aster_snapshot *snapshot, void *user)
{
    char *names = user;
    size_t used = strlen(names);
    memcpy(names + used, snapshot->resource.data, snapshot->resource.size);
    names[used + snapshot->resource.size] = '|';
    names[used + snapshot->resource.size + 1] = '\0';
    return true;
}

static void names_that_look_alike_are_different_rows_listed_by_prefix_in_byte_order(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"a/b",
                                        "a_b",
                                        "A/b",
                                        "a%2Fb",
                                        "a",
                                        "a ",
                                        "a'; DROP TABLE aster_lease; --",
                                        "\xc3\xa9",
                                        "e\xcc\x81",
                                        "a\xf4\x8f\xbf\xbf",
                                        "b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        acquire_ok(fixture, names[i], "w", 1);
    }
    char seen[512] = "";
    assert_int_equal(aster_list(fixture->store.serializer, aster_text("a"), collect_name, seen, NULL), ASTER_OK);
    assert_string_equal(seen, "a|a |a%2Fb|a'; DROP TABLE aster_lease; --|a/b|a_b|a\xf4\x8f\xbf\xbf|");
    char all[512] = "";
    assert_int_equal(aster_list(fixture->store.serializer, aster_text(""), collect_name, all, NULL), ASTER_OK);
    assert_string_equal(all, "A/b|a|a |a%2Fb|a'; DROP TABLE aster_lease; --|a/b|a_b|a\xf4\x8f\xbf\xbf|b|e\xcc\x81|"
                             "\xc3\xa9|");
}

static void a_forgotten_resource_starts_again_above_every_epoch_it_had(void **state)
{
    struct fixture *fixture = *state;
    for (int64_t epoch = 1; epoch <= 9; epoch += 2) {
        acquire_ok(fixture, "old", "a", epoch);
        assert_int_equal(store_release(&fixture->call, "old", "a", epoch), ASTER_OK);
    }
    struct aster_operation forget = ASTER_OPERATION_INIT;
    forget.kind = ASTER_OP_FORGET;
    forget.resource = aster_text("old");
    forget.caller = aster_text("admin");
    assert_int_equal(store_call_run(&fixture->call, &forget), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_lease"), 0);
    reopen(fixture);
    acquire_ok(fixture, "old", "b", 11);
    acquire_ok(fixture, "new", "b", 11);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT resources FROM aster_meta"), 2);
}

static void the_number_of_resources_is_limited_across_openings(void **state)
{
    struct fixture *fixture = *state;
    fixture->store.options.limits.resources_max = 2;
    reopen(fixture);
    acquire_ok(fixture, "one", "a", 1);
    reopen(fixture);
    acquire_ok(fixture, "two", "a", 1);
    assert_int_equal(store_acquire(&fixture->call, "three", "a", 10000), ASTER_ERR_LIMIT);
    assert_non_null(strstr(fixture->call.error.message, "resources_max is 2"));
    assert_int_equal(store_renew(&fixture->call, "one", "a", 1), ASTER_OK);
}

static void the_same_request_id_has_one_effect(void **state)
{
    struct fixture *fixture = *state;
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text("r");
    operation.caller = aster_text("a");
    operation.ttl_ms = 10000;
    memset(operation.request_id, 7, sizeof operation.request_id);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(store_call_run(&fixture->call, &operation), ASTER_OK);
        assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
        assert_int_equal(fixture->call.reply.decision.epoch, 1);
        assert_int_equal(fixture->call.reply.decision.replayed, i > 0);
        reopen(fixture);
    }
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit"), 1);
}

static bool only_a(const struct aster_operation *operation, void *user)
{
    (void)user;
    return aster_bytes_equal(operation->caller, aster_text("a"));
}

static void the_authorizer_refuses_without_using_up_an_epoch(void **state)
{
    struct fixture *fixture = *state;
    fixture->store.options.authorize = only_a;
    reopen(fixture);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_UNAUTHORIZED);
    acquire_ok(fixture, "r", "a", 1);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit WHERE kind = 8 AND "
                                                       "reason = 6 AND actor = 'b'"),
                     1);
}

static void a_value_of_64_kib_is_stored_with_the_fence(void **state)
{
    struct fixture *fixture = *state;
    static unsigned char value[ASTER_VALUE_MAX];
    for (size_t i = 0; i < sizeof value; i++) {
        value[i] = (unsigned char)(i * 31);
    }
    acquire_ok(fixture, "r", "a", 1);
    const struct aster_fence fence = {aster_text("r"), 1, aster_text("a")};
    const struct aster_bytes bytes = {value, sizeof value};
    assert_int_equal(
        aster_put(fixture->store.serializer, &fence, aster_text("a"), 0, bytes, &fixture->call.reply, NULL), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.outcome, ASTER_GRANTED);
    const struct aster_fence stale = {aster_text("r"), 0, aster_text("a")};
    assert_int_equal(
        aster_put(fixture->store.serializer, &stale, aster_text("a"), 1, aster_text("x"), &fixture->call.reply, NULL),
        ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.reason, ASTER_REASON_STALE_EPOCH);
    reopen(fixture);
    assert_int_equal(store_inspect(&fixture->call, "r"), ASTER_OK);
    assert_int_equal(fixture->call.reply.decision.snapshot.value_revision, 1);
    assert_int_equal(fixture->call.reply.decision.snapshot.value.size, sizeof value);
    assert_memory_equal(fixture->call.reply.decision.snapshot.value.data, value, sizeof value);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM aster_audit WHERE kind = 7 AND "
                                                       "reason = 8 AND carried_epoch = 0 AND epoch = 1"),
                     1);
}

static void after_close_requests_are_answered_closed(void **state)
{
    struct fixture *fixture = *state;
    aster_serializer_close(fixture->store.serializer);
    assert_int_equal(store_acquire(&fixture->call, "r", "a", 10000), ASTER_ERR_CLOSED);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(a_lease_is_granted_renewed_denied_and_released),
        STORE_TEST(an_expired_lease_is_taken_over_at_its_ttl_and_not_before),
        STORE_TEST(a_lease_outlives_the_process_that_asked_for_it),
        STORE_TEST(another_boot_rearms_with_a_full_ttl_and_moves_no_epoch),
        STORE_TEST(a_row_from_another_boot_that_appears_later_is_rearmed_when_it_is_met),
        STORE_TEST(a_grant_from_the_future_is_rearmed),
        STORE_TEST(the_wall_clock_may_jump_a_day_either_way),
        STORE_TEST(the_files_are_private),
        STORE_TEST(a_newer_schema_is_refused),
        STORE_TEST(a_file_that_is_no_database_is_refused_and_left_alone),
        STORE_TEST(paths_and_options_out_of_range_are_refused_with_their_numbers),
        STORE_TEST(a_network_file_system_is_refused_by_name_unless_allowed),
        STORE_TEST(a_tampered_row_is_not_served),
        STORE_TEST(every_column_under_the_checksum_is_covered),
        STORE_TEST(the_history_is_bounded_and_revisions_are_never_used_again),
        STORE_TEST(names_that_look_alike_are_different_rows_listed_by_prefix_in_byte_order),
        STORE_TEST(a_forgotten_resource_starts_again_above_every_epoch_it_had),
        STORE_TEST(the_number_of_resources_is_limited_across_openings),
        STORE_TEST(the_same_request_id_has_one_effect),
        STORE_TEST(the_authorizer_refuses_without_using_up_an_epoch),
        STORE_TEST(a_value_of_64_kib_is_stored_with_the_fence),
        STORE_TEST(after_close_requests_are_answered_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
