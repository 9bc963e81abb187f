#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/sqlite_store.h"

/* A protected table with one row, whose lease "r'1" is held by "a" under epoch 1, and a program's own connection with
 * the functions of the guard. */
struct fixture {
    struct sqlite_store store;
    struct store_call call;
    sqlite3 *db;
    char message[512];
};

static const char *const resource = "r'1";

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    sqlite_store_init(&fixture.store);
    fixture.call.serializer = fixture.store.serializer;
    assert_int_equal(store_acquire(&fixture.call, resource, "a", 10000), ASTER_OK);
    sqlite_store_execute(&fixture.store, "CREATE TABLE \"my \"\"t\" (id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
                                         "INSERT INTO \"my \"\"t\" VALUES (1, 'x')");
    char *sql = NULL;
    assert_int_equal(aster_sqlite_protect_sql("my \"t", aster_text(resource), NULL, &sql, NULL), ASTER_OK);
    sqlite_store_execute(&fixture.store, sql);
    sqlite_store_execute(&fixture.store, sql); /* again: replaces the triggers */
    sqlite3_free(sql);
    fixture.db = sqlite_store_connect(&fixture.store);
    assert_int_equal(aster_sqlite_register(fixture.db, NULL), ASTER_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    sqlite3_close(fixture->db);
    store_call_fini(&fixture->call);
    sqlite_store_fini(&fixture->store);
    return 0;
}

static int execute(struct fixture *fixture, const char *sql)
{
    int code = sqlite3_exec(fixture->db, sql, NULL, NULL, NULL);
    snprintf(fixture->message, sizeof fixture->message, "%s", sqlite3_errmsg(fixture->db));
    return code;
}

static void refused(struct fixture *fixture, const char *sql, const char *reason)
{
    if (execute(fixture, sql) == SQLITE_OK) {
        fail_msg("%s was let through", sql);
    }
    if (strstr(fixture->message, reason) == NULL) {
        fail_msg("%s: \"%s\" does not say %s", sql, fixture->message, reason);
    }
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM \"my \"\"t\" WHERE id = 1 AND text = 'x'"),
                     1);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM \"my \"\"t\""), 1);
}

static const char *const writes[] = {
    "INSERT INTO \"my \"\"t\" VALUES (2, 'y')",
    "INSERT INTO \"my \"\"t\" VALUES (2, 'y'), (3, 'z'), (4, 'w')",
    "INSERT OR REPLACE INTO \"my \"\"t\" VALUES (1, 'y')",
    "REPLACE INTO \"my \"\"t\" VALUES (2, 'x')",
    "INSERT OR IGNORE INTO \"my \"\"t\" VALUES (2, 'y')",
    "INSERT OR FAIL INTO \"my \"\"t\" VALUES (2, 'y'), (3, 'z')",
    "INSERT INTO \"my \"\"t\" VALUES (1, 'y') ON CONFLICT (id) DO UPDATE SET text = 'y'",
    "UPDATE \"my \"\"t\" SET text = 'y'",
    "UPDATE OR IGNORE \"my \"\"t\" SET text = 'y' WHERE id = 1",
    "UPDATE OR REPLACE \"my \"\"t\" SET id = 9",
    "DELETE FROM \"my \"\"t\"",
    "DELETE FROM \"my \"\"t\" WHERE id = 1",
};

static void no_kind_of_write_gets_through_without_a_fence(void **state)
{
    struct fixture *fixture = *state;
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        refused(fixture, writes[i], "aster: NO_FENCE");
    }
}

static void no_kind_of_write_gets_through_with_a_stale_fence(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 1, 'a')"), SQLITE_OK);
    assert_int_equal(store_release(&fixture->call, resource, "a", 1), ASTER_OK);
    assert_int_equal(store_acquire(&fixture->call, resource, "b", 10000), ASTER_OK);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        refused(fixture, writes[i], "aster: STALE_EPOCH: resource 'r'1' carried epoch 1, current epoch 3");
    }
}

static void every_kind_of_write_gets_through_with_the_current_fence(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 1, 'a')"), SQLITE_OK);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        assert_int_equal(execute(fixture, "BEGIN"), SQLITE_OK);
        if (execute(fixture, writes[i]) != SQLITE_OK) {
            fail_msg("%s: %s", writes[i], fixture->message);
        }
        assert_int_equal(execute(fixture, "ROLLBACK"), SQLITE_OK);
    }
    assert_int_equal(execute(fixture, writes[0]), SQLITE_OK);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM \"my \"\"t\""), 2);
}

static void the_reason_names_a_future_epoch_another_holder_and_a_free_resource(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 2, 'a')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: FUTURE_EPOCH");
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 1, 'b')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NOT_HOLDER");
    assert_int_equal(store_release(&fixture->call, resource, "a", 1), ASTER_OK);
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 2, 'a')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NOT_HELD");
    assert_int_equal(execute(fixture, "SELECT aster_unfence('r''1')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NO_FENCE");
    assert_null(strstr(fixture->message, "what it declared last"));
    assert_int_equal(execute(fixture, "SELECT aster_fence('biling', 1, 'a')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NO_FENCE");
    assert_non_null(strstr(fixture->message, "; what it declared last is for 'biling'"));
}

static void a_fence_can_be_declared_from_its_text(void **state)
{
    struct fixture *fixture = *state;
    const struct aster_fence fence = {aster_text(resource), 1, aster_text("a")};
    char text[ASTER_FENCE_TEXT_MAX];
    assert_int_equal(aster_fence_format(&fence, text, sizeof text, NULL), ASTER_OK);
    char sql[ASTER_FENCE_TEXT_MAX + 64];
    snprintf(sql, sizeof sql, "SELECT aster_fence('%s')", text);
    assert_int_equal(execute(fixture, sql), SQLITE_OK);
    assert_int_equal(execute(fixture, writes[0]), SQLITE_OK);
    assert_int_equal(execute(fixture, "SELECT aster_fence('aster1:one:a:r')"), SQLITE_MISMATCH);
    assert_int_equal(execute(fixture, "SELECT aster_fence(NULL)"), SQLITE_MISMATCH);
}

static void a_forgotten_resource_lets_no_old_fence_through(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(store_release(&fixture->call, resource, "a", 1), ASTER_OK);
    struct aster_operation forget = ASTER_OPERATION_INIT;
    forget.kind = ASTER_OP_FORGET;
    forget.resource = aster_text(resource);
    forget.caller = aster_text("op");
    assert_int_equal(store_call_run(&fixture->call, &forget), ASTER_OK);
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 1, 'a')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: STALE_EPOCH");
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 2, '')"), SQLITE_MISMATCH);
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 2, 'a')"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NOT_HELD");
}

static void a_program_without_the_functions_is_told_to_load_the_extension(void **state)
{
    struct fixture *fixture = *state;
    sqlite3 *guarded = fixture->db;
    fixture->db = sqlite_store_connect(&fixture->store);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        refused(fixture, writes[i], "aster_guard__load_aster_extension");
    }
    sqlite3_close(fixture->db);
    fixture->db = guarded;
}

static void an_untrusted_schema_may_call_the_guard_but_not_declare_a_fence(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "PRAGMA trusted_schema=OFF"), SQLITE_OK);
    refused(fixture, writes[0], "aster: NO_FENCE");
    assert_int_equal(execute(fixture, "SELECT aster_fence('r''1', 1, 'a')"), SQLITE_OK);
    assert_int_equal(execute(fixture, writes[0]), SQLITE_OK);
    assert_int_equal(execute(fixture, "CREATE TRIGGER sly BEFORE DELETE ON \"my \"\"t\" BEGIN "
                                      "SELECT aster_fence('r''1', 1, 'a'); END"),
                     SQLITE_OK);
    assert_int_not_equal(execute(fixture, "DELETE FROM \"my \"\"t\""), SQLITE_OK);
}

static void a_refused_statement_leaves_the_open_transaction_as_it_was(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "CREATE TABLE free (id)"), SQLITE_OK);
    assert_int_equal(execute(fixture, "BEGIN; INSERT INTO free VALUES (1)"), SQLITE_OK);
    assert_int_not_equal(execute(fixture, writes[1]), SQLITE_OK);
    assert_int_equal(sqlite3_get_autocommit(fixture->db), 0);
    assert_int_equal(execute(fixture, "COMMIT"), SQLITE_OK);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM free"), 1);
    assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM \"my \"\"t\""), 1);
}

static void declarations_need_a_text_an_integer_and_a_text(void **state)
{
    struct fixture *fixture = *state;
    static const char *const wrong[] = {"SELECT aster_fence(1, 1, 'a')",
                                        "SELECT aster_fence('r', 'one', 'a')",
                                        "SELECT aster_fence('r', 1, NULL)",
                                        "SELECT aster_fence('', 1, 'a')",
                                        "SELECT aster_fence('a' || char(10), 1, 'a')",
                                        "SELECT aster_unfence(NULL)"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(execute(fixture, wrong[i]), SQLITE_MISMATCH);
    }
}

static void tables_of_aster_and_sqlite_are_not_protected(void **state)
{
    (void)state;
    char *sql = NULL;
    static const char *const wrong[] = {"", "aster_lease", "ASTER_AUDIT", "sqlite_schema", "a\nb", "\xff"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(aster_sqlite_protect_sql(wrong[i], aster_text("r"), NULL, &sql, NULL), ASTER_ERR_INVALID);
    }
    assert_int_equal(aster_sqlite_protect_sql("t", aster_text("a\nb"), NULL, &sql, NULL), ASTER_ERR_INVALID);
    assert_null(sql);
}

static void a_view_is_not_protected(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(execute(fixture, "CREATE VIEW v AS SELECT 1"), SQLITE_OK);
    char *sql = NULL;
    assert_int_equal(aster_sqlite_protect_sql("v", aster_text("r"), NULL, &sql, NULL), ASTER_OK);
    assert_int_not_equal(execute(fixture, sql), SQLITE_OK);
    sqlite3_free(sql);
}

/* Every row is a resource of its own: "row/" and the text of its column. */
static void a_table_protected_by_row_asks_for_the_fence_of_each_row_before_and_after(void **state)
{
    struct fixture *fixture = *state;
    char *sql = NULL;
    assert_int_equal(store_acquire(&fixture->call, "row/7", "a", 10000), ASTER_OK);
    assert_int_equal(store_acquire(&fixture->call, "row/8", "a", 10000), ASTER_OK);
    sqlite_store_execute(&fixture->store, "CREATE TABLE by_row (\"the \"\"key\" TEXT, text TEXT);"
                                          "INSERT INTO by_row VALUES ('9', 'x')");
    assert_int_equal(aster_sqlite_protect_sql("by_row", aster_text("row/"), "the \"key", &sql, NULL), ASTER_OK);
    sqlite_store_execute(&fixture->store, sql);
    sqlite3_free(sql);
    static const char *const other_rows[] = {
        "INSERT INTO by_row VALUES ('8', 'y')",    "INSERT INTO by_row VALUES ('7', 'y'), ('8', 'y')",
        "INSERT INTO by_row VALUES (NULL, 'y')",   "UPDATE by_row SET text = 'y'",
        "UPDATE by_row SET \"the \"\"key\" = '7'", "DELETE FROM by_row",
    };
    assert_int_equal(execute(fixture, "SELECT aster_fence('row/7', 1, 'a')"), SQLITE_OK);
    for (size_t i = 0; i < sizeof other_rows / sizeof other_rows[0]; i++) {
        assert_int_not_equal(execute(fixture, other_rows[i]), SQLITE_OK);
        assert_non_null(strstr(fixture->message, "aster: NO_FENCE"));
        assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM by_row WHERE text = 'x'"), 1);
        assert_int_equal(sqlite_store_ask(&fixture->store, "SELECT count(*) FROM by_row"), 1);
    }
    assert_int_equal(execute(fixture, "INSERT INTO by_row VALUES ('7', 'y')"), SQLITE_OK);
    static const char rename[] = "UPDATE by_row SET \"the \"\"key\" = '8' WHERE \"the \"\"key\" = '7'";
    assert_int_not_equal(execute(fixture, rename), SQLITE_OK);
    assert_int_equal(execute(fixture, "SELECT aster_fence('row/8', 1, 'a')"), SQLITE_OK);
    assert_int_equal(execute(fixture, rename), SQLITE_OK); /* both fences */
    assert_int_equal(store_release(&fixture->call, "row/8", "a", 1), ASTER_OK);
    assert_int_not_equal(execute(fixture, "DELETE FROM by_row WHERE \"the \"\"key\" = '8'"), SQLITE_OK);
    assert_non_null(strstr(fixture->message, "STALE_EPOCH: resource 'row/8'"));
    assert_int_equal(aster_sqlite_protect_sql("by_row", aster_text("row/"), "", &sql, NULL), ASTER_ERR_INVALID);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(no_kind_of_write_gets_through_without_a_fence),
        STORE_TEST(no_kind_of_write_gets_through_with_a_stale_fence),
        STORE_TEST(every_kind_of_write_gets_through_with_the_current_fence),
        STORE_TEST(the_reason_names_a_future_epoch_another_holder_and_a_free_resource),
        STORE_TEST(a_fence_can_be_declared_from_its_text),
        STORE_TEST(a_forgotten_resource_lets_no_old_fence_through),
        STORE_TEST(a_program_without_the_functions_is_told_to_load_the_extension),
        STORE_TEST(an_untrusted_schema_may_call_the_guard_but_not_declare_a_fence),
        STORE_TEST(a_refused_statement_leaves_the_open_transaction_as_it_was),
        STORE_TEST(declarations_need_a_text_an_integer_and_a_text),
        cmocka_unit_test(tables_of_aster_and_sqlite_are_not_protected),
        STORE_TEST(a_view_is_not_protected),
        STORE_TEST(a_table_protected_by_row_asks_for_the_fence_of_each_row_before_and_after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
