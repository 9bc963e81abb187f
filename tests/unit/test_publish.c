/* A published file: replaced whole, under the fence, or left alone. Over a SQLite store, whose step includes the
 * rename, and without any store. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "aster/publish.h"
#include "support/sqlite_store.h"

struct fixture {
    struct sqlite_store store;
    struct store_call call;
    struct aster_publish_options options;
    struct aster_publication publication;
    struct aster_error error;
    char source[128];
    char target[128];
    char fence[160];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *text)
{
    char content[4096] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(content, text);
}

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.options = ASTER_PUBLISH_OPTIONS_INIT, .error = ASTER_ERROR_INIT};
    sqlite_store_init(&fixture.store);
    fixture.call.serializer = fixture.store.serializer;
    fixture.options.serializer = fixture.store.serializer;
    snprintf(fixture.source, sizeof fixture.source, "%s/source", fixture.store.directory);
    snprintf(fixture.target, sizeof fixture.target, "%s/catalog.json", fixture.store.directory);
    snprintf(fixture.fence, sizeof fixture.fence, "%s.fence", fixture.target);
    write_file(fixture.source, "first");
    assert_int_equal(store_acquire(&fixture.call, "r", "a", 10000), ASTER_OK);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    char name[200];
    unlink(fixture->source);
    unlink(fixture->target);
    unlink(fixture->fence);
    snprintf(name, sizeof name, "%s.lock", fixture->target);
    unlink(name);
    store_call_fini(&fixture->call);
    sqlite_store_fini(&fixture->store);
    return 0;
}

static struct aster_fence fence_of(int64_t epoch, const char *holder)
{
    return (struct aster_fence){aster_text("r"), epoch, aster_text(holder)};
}

static aster_status publish(struct fixture *fixture, int64_t epoch, const char *holder)
{
    const struct aster_fence fence = fence_of(epoch, holder);
    return aster_publish_file(fixture->source, fixture->target, &fence, aster_text(holder), &fixture->options,
                              &fixture->publication, &fixture->error);
}

static void assert_refused(struct fixture *fixture, int64_t epoch, const char *holder, enum aster_reason reason)
{
    assert_int_equal(publish(fixture, epoch, holder), ASTER_OK);
    assert_int_equal(fixture->publication.verdict.reason, reason);
}

static void the_holder_publishes_in_the_step_of_the_store(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(publish(fixture, 1, "a"), ASTER_OK);
    assert_int_equal(fixture->publication.verdict.reason, ASTER_REASON_NONE);
    assert_true(fixture->publication.in_step);
    assert_content(fixture->target, "first");
    assert_content(fixture->fence, "aster1:1:a:r\n");
}

static void a_writer_that_was_replaced_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(publish(fixture, 1, "a"), ASTER_OK);
    assert_int_equal(store_release(&fixture->call, "r", "a", 1), ASTER_OK);
    assert_int_equal(store_acquire(&fixture->call, "r", "b", 10000), ASTER_OK);
    write_file(fixture->source, "late");
    assert_refused(fixture, 1, "a", ASTER_REASON_STALE_EPOCH); /* by the store: b has not published yet */
    assert_int_equal(fixture->publication.verdict.current_epoch, 3);
    assert_content(fixture->target, "first");
    write_file(fixture->source, "second");
    assert_int_equal(publish(fixture, 3, "b"), ASTER_OK);
    assert_content(fixture->target, "second");
}

static void an_older_epoch_stays_out_even_without_a_store(void **state)
{
    struct fixture *fixture = *state;
    fixture->options.serializer = NULL;
    assert_int_equal(publish(fixture, 7, "a"), ASTER_OK);
    assert_false(fixture->publication.in_step);
    write_file(fixture->source, "late");
    assert_refused(fixture, 6, "b", ASTER_REASON_STALE_EPOCH);
    assert_refused(fixture, 7, "b", ASTER_REASON_NOT_HOLDER);
    assert_content(fixture->target, "first");
    assert_int_equal(publish(fixture, 7, "a"), ASTER_OK); /* as often as the holder likes */
    assert_content(fixture->target, "late");
}

static void a_fence_that_the_store_never_granted_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_refused(fixture, 2, "a", ASTER_REASON_FUTURE_EPOCH);
    assert_refused(fixture, 1, "b", ASTER_REASON_NOT_HOLDER);
    assert_int_equal(access(fixture->target, F_OK), -1);
    assert_int_equal(access(fixture->fence, F_OK), -1);
}

static void a_file_of_another_resource_is_not_replaced(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture->target, "orders");
    write_file(fixture->fence, "aster1:1:a:orders\n");
    assert_refused(fixture, 1, "a", ASTER_REASON_WRONG_RESOURCE);
    assert_content(fixture->target, "orders");
}

static void a_damaged_fence_lets_nobody_in(void **state)
{
    struct fixture *fixture = *state;
    write_file(fixture->target, "first");
    write_file(fixture->fence, "aster1:1:a");
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_CORRUPT);
    assert_non_null(strstr(fixture->error.message, fixture->fence));
    assert_content(fixture->target, "first");
}

static void the_mode_of_the_file_is_kept(void **state)
{
    struct fixture *fixture = *state;
    struct stat facts;
    write_file(fixture->target, "old");
    assert_int_equal(chmod(fixture->target, 0640), 0);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_OK);
    assert_int_equal(stat(fixture->target, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0640);
}

static void a_link_or_a_directory_is_refused(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(symlink(fixture->source, fixture->target), 0);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_INVALID);
    assert_non_null(strstr(fixture->error.message, "symbolic link"));
    assert_int_equal(unlink(fixture->target), 0);
    assert_int_equal(mkdir(fixture->target, 0700), 0);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_INVALID);
    assert_int_equal(rmdir(fixture->target), 0);
}

static void another_publisher_is_waited_for_within_a_bound(void **state)
{
    struct fixture *fixture = *state;
    char name[200];
    snprintf(name, sizeof name, "%s.lock", fixture->target);
    int other = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(other, LOCK_EX), 0);
    fixture->options.lock_timeout_ms = 20;
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_BUSY);
    assert_int_equal(access(fixture->target, F_OK), -1);
    close(other);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_OK);
}

static void a_missing_source_or_directory_is_named(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(unlink(fixture->source), 0);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_IO);
    assert_non_null(strstr(fixture->error.message, fixture->source));
    write_file(fixture->source, "first");
    snprintf(fixture->target, sizeof fixture->target, "%s/nowhere/file", fixture->store.directory);
    assert_int_equal(publish(fixture, 1, "a"), ASTER_ERR_IO);
    assert_non_null(strstr(fixture->error.message, "nowhere"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_holder_publishes_in_the_step_of_the_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_writer_that_was_replaced_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_older_epoch_stays_out_even_without_a_store, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_fence_that_the_store_never_granted_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_of_another_resource_is_not_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_fence_lets_nobody_in, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_mode_of_the_file_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_or_a_directory_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_publisher_is_waited_for_within_a_bound, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_source_or_directory_is_named, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
