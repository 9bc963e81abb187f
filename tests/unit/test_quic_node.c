/* A node's files: private, never replaced by accident, the same identity over renewals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "platform/private_file.h"
#include "quic/credentials.h"

static char directory[64];
static char id[ASTER_NODE_ID_SIZE];
static struct aster_node_paths paths;
static struct aster_error error;

static int make(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/aster-node-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(aster_node_paths(directory, &paths, NULL), ASTER_OK);
    assert_int_equal(aster_node_create(directory, "w1", 30, id, &error), ASTER_OK);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    unlink(paths.key);
    unlink(paths.certificate);
    unlink(paths.secret);
    return rmdir(directory);
}

static unsigned mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return facts.st_mode & 07777;
}

static void a_node_id_is_64_lower_case_hexadecimal_digits_of_its_key(void **state)
{
    (void)state;
    assert_int_equal(strlen(id), 64);
    assert_int_equal(strspn(id, "0123456789abcdef"), 64);
    char again[ASTER_NODE_ID_SIZE];
    assert_int_equal(aster_node_id(directory, again, &error), ASTER_OK);
    assert_string_equal(again, id);
    struct aster_credentials *credentials;
    assert_int_equal(aster_credentials_load_node(directory, &credentials, &error), ASTER_OK);
    assert_true(aster_bytes_equal(aster_credentials_identity(credentials), aster_text(id)));
    assert_int_equal(aster_credentials_trust(credentials), ASTER_TRUST_KEY);
    aster_credentials_unref(credentials);
}

static void the_key_is_readable_by_its_owner_only(void **state)
{
    (void)state;
    assert_int_equal(mode_of(paths.key), 0600);
    assert_int_equal(mode_of(paths.certificate), 0644);
}

static void a_key_that_others_can_read_is_refused_with_the_remedy(void **state)
{
    (void)state;
    struct aster_credentials *credentials = NULL;
    static const mode_t bad[] = {0640, 0604, 0620, 0602, 0660};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(chmod(paths.key, bad[i]), 0);
        assert_int_equal(aster_credentials_load_node(directory, &credentials, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "chmod 600"));
        assert_null(credentials);
    }
    assert_int_equal(chmod(paths.key, 0400), 0);
    assert_int_equal(aster_credentials_load_node(directory, &credentials, &error), ASTER_OK);
    aster_credentials_unref(credentials);
}

static void an_existing_key_is_never_replaced(void **state)
{
    (void)state;
    char other[ASTER_NODE_ID_SIZE] = "untouched";
    assert_int_equal(aster_node_create(directory, "w2", 30, other, &error), ASTER_ERR_INVALID);
    assert_string_equal(other, "untouched");
    assert_int_equal(aster_node_id(directory, other, &error), ASTER_OK);
    assert_string_equal(other, id);
}

static void a_renewed_certificate_keeps_the_id(void **state)
{
    (void)state;
    char *before;
    char *after;
    size_t size;
    assert_int_equal(aster_private_file_read(paths.certificate, 65536, false, &before, &size, &error), ASTER_OK);
    assert_int_equal(aster_node_renew(directory, "w1", 60, &error), ASTER_OK);
    assert_int_equal(aster_private_file_read(paths.certificate, 65536, false, &after, &size, &error), ASTER_OK);
    assert_string_not_equal(before, after);
    char again[ASTER_NODE_ID_SIZE];
    assert_int_equal(aster_node_id(directory, again, &error), ASTER_OK);
    assert_string_equal(again, id);
    free(before);
    free(after);
}

static void a_certificate_tells_its_name_and_its_days(void **state)
{
    (void)state;
    struct aster_node_facts facts;
    assert_int_equal(aster_node_describe(directory, &facts, &error), ASTER_OK);
    assert_string_equal(facts.name, "w1");
    assert_string_equal(facts.id, id);
    int64_t now = (int64_t)time(NULL);
    assert_true(facts.from_unix_s <= now);
    assert_in_range(facts.until_unix_s - now, 30 * 86400 - 60, 30 * 86400);
}

static void a_certificate_of_another_key_is_refused(void **state)
{
    (void)state;
    char other[] = "/tmp/aster-node-XXXXXX";
    char other_id[ASTER_NODE_ID_SIZE];
    struct aster_node_paths others;
    assert_non_null(mkdtemp(other));
    assert_int_equal(aster_node_create(other, "w2", 30, other_id, &error), ASTER_OK);
    assert_string_not_equal(other_id, id);
    assert_int_equal(aster_node_paths(other, &others, NULL), ASTER_OK);
    const struct aster_credentials_files mixed = {others.key, paths.certificate, NULL};
    struct aster_credentials *credentials;
    assert_int_equal(aster_credentials_load(&mixed, &credentials, &error), ASTER_ERR_INVALID);
    const struct aster_credentials_files no_roots = {paths.key, paths.certificate, paths.key};
    assert_int_equal(aster_credentials_load(&no_roots, &credentials, &error), ASTER_ERR_INVALID);
    unlink(others.key);
    unlink(others.certificate);
    rmdir(other);
}

static void names_and_days_out_of_range_are_refused(void **state)
{
    (void)state;
    char unused[ASTER_NODE_ID_SIZE];
    char long_name[66];
    memset(long_name, 'n', 65);
    long_name[65] = '\0';
    assert_int_equal(aster_node_create("/tmp/none", "", 1, unused, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_node_create("/tmp/none", long_name, 1, unused, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_node_create("/tmp/none", "w\n", 1, unused, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_node_create("/tmp/none", "w", 0, unused, &error), ASTER_ERR_INVALID);
    assert_int_equal(aster_node_create("/nowhere/at/all", "w", 1, unused, &error), ASTER_ERR_IO);
}

static void the_endpoint_secret_is_made_once_and_kept(void **state)
{
    (void)state;
    unsigned char first[ASTER_ENDPOINT_SECRET_SIZE];
    unsigned char second[ASTER_ENDPOINT_SECRET_SIZE];
    static const unsigned char zero[ASTER_ENDPOINT_SECRET_SIZE];
    assert_int_equal(aster_node_secret(directory, first, &error), ASTER_OK);
    assert_int_equal(aster_node_secret(directory, second, &error), ASTER_OK);
    assert_memory_equal(first, second, sizeof first);
    assert_memory_not_equal(first, zero, sizeof first);
    assert_int_equal(mode_of(paths.secret), 0600);
    assert_int_equal(chmod(paths.secret, 0644), 0);
    assert_int_equal(aster_node_secret(directory, second, &error), ASTER_ERR_INVALID);
}

static void spiffe_ids_follow_the_standard(void **state)
{
    (void)state;
    static const char *const good[] = {"spiffe://example.org", "spiffe://example.org/w/1", "spiffe://a-b_c.9/X.y"};
    static const char *const bad[] = {"",
                                      "spiffe://",
                                      "spiffe:///path",
                                      "https://example.org/a",
                                      "spiffe://Example.org/a",
                                      "spiffe://example.org/",
                                      "spiffe://example.org//a",
                                      "spiffe://example.org/a/",
                                      "spiffe://example.org/./a",
                                      "spiffe://example.org/../a",
                                      "spiffe://example.org/a%20b",
                                      "spiffe://example.org/a?b",
                                      "spiffe://example.org/a#b",
                                      "spiffe://user@example.org/a",
                                      "spiffe://example.org:8/a",
                                      "spiffe://example.org/a\n"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(aster_spiffe_id_valid(aster_text(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(aster_spiffe_id_valid(aster_text(bad[i])));
    }
    assert_false(aster_spiffe_id_valid((struct aster_bytes){"spiffe://a/b\0c", 14}));
}

#define NODE(test) cmocka_unit_test_setup_teardown(test, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NODE(a_node_id_is_64_lower_case_hexadecimal_digits_of_its_key),
        NODE(the_key_is_readable_by_its_owner_only),
        NODE(a_key_that_others_can_read_is_refused_with_the_remedy),
        NODE(an_existing_key_is_never_replaced),
        NODE(a_renewed_certificate_keeps_the_id),
        NODE(a_certificate_tells_its_name_and_its_days),
        NODE(a_certificate_of_another_key_is_refused),
        NODE(names_and_days_out_of_range_are_refused),
        NODE(the_endpoint_secret_is_made_once_and_kept),
        cmocka_unit_test(spiffe_ids_follow_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
