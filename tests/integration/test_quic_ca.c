/* CA mode: the identity is the certificate's one SPIFFE id, and only a configured root makes it true. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "support/quic_ca.h"
#include "support/quic_side.h"

#define DAY 86400
#define SERVER_ID "spiffe://example.org/grantor"
#define CLIENT_ID "spiffe://example.org/worker/1"

static quic_create create = aster_quic_transport_create;
static struct quic_side server;
static struct quic_side client;
static struct quic_ca ca;
static struct quic_ca stranger;
static char directory[64];
static char paths[6][128]; /* root, server key, server certificate, client key, client certificate, other root */

static int open_all(void **state)
{
    (void)state;
    static const char *const names[] = {"root", "server.key", "server.crt", "client.key", "client.crt", "other"};
    strcpy(directory, "/tmp/aster-ca-XXXXXX");
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < 6; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", directory, names[i]);
    }
    quic_ca_init(&ca, "Example CA");
    quic_ca_init(&stranger, "Example CA"); /* the same name, another key */
    quic_ca_write_root(&ca, paths[0]);
    quic_ca_write_root(&stranger, paths[5]);
    const struct quic_ca_leaf leaf = {{SERVER_ID}, NULL, -60, DAY, NULL};
    quic_ca_issue(&ca, &leaf, paths[1], paths[2]);
    quic_side_init(&server, "server");
    quic_side_init(&client, "client");
    server.echo = true;
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    quic_side_fini(&client);
    quic_side_fini(&server);
    quic_ca_fini(&ca);
    quic_ca_fini(&stranger);
    for (size_t i = 0; i < 6; i++) {
        unlink(paths[i]);
    }
    return rmdir(directory);
}

static void open_side(struct quic_side *side, const char *key, const char *certificate, const char *root)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const struct aster_credentials_files files = {key, certificate, root};
    struct aster_transport_options options = quic_side_options(side);
    if (aster_credentials_load(&files, &options.credentials, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    quic_side_open(side, create, &options);
    aster_credentials_unref(options.credentials);
}

static void connect_with(const struct quic_ca *issuer, const struct quic_ca_leaf *leaf)
{
    quic_ca_issue(issuer, leaf, paths[3], paths[4]);
    open_side(&server, paths[1], paths[2], paths[0]);
    quic_side_listen(&server, 0);
    open_side(&client, paths[3], paths[4], paths[0]);
    quic_side_connect(&client, &server.bound, SERVER_ID);
}

static void expect_refusal(const char *word)
{
    quic_side_wait(&server, &server.refused, 1);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    assert_int_equal(server.opened, 0);
    assert_int_equal(client.opened, 0);
    assert_non_null(strstr(server.error.message, word));
}

static void both_sides_are_known_by_their_spiffe_ids(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, "worker-1.example.org", -60, DAY, GNUTLS_KP_TLS_WWW_CLIENT};
    connect_with(&ca, &leaf);
    quic_side_wait(&client, &client.opened, 1);
    quic_side_wait(&server, &server.opened, 1);
    assert_string_equal(server.identity, CLIENT_ID);
    assert_string_equal(client.identity, SERVER_ID);
}

static void a_certificate_of_another_root_is_refused(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, NULL, -60, DAY, NULL};
    connect_with(&stranger, &leaf);
    expect_refusal("refused");
}

static void an_expired_certificate_is_refused(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, NULL, -120, -60, NULL};
    connect_with(&ca, &leaf);
    expect_refusal("expired");
}

static void a_certificate_that_is_not_valid_yet_is_refused(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, NULL, 3600, DAY, NULL};
    connect_with(&ca, &leaf);
    expect_refusal("not yet");
}

static void a_certificate_for_servers_only_does_not_make_a_client(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, NULL, -60, DAY, GNUTLS_KP_TLS_WWW_SERVER};
    connect_with(&ca, &leaf);
    expect_refusal("refused");
}

/* One function judges certificates, ones own and those of peers; here it is asked about ones own. */
static aster_status load_leaf(const struct quic_ca_leaf *leaf, struct aster_error *error)
{
    struct aster_credentials *credentials = NULL;
    const struct aster_credentials_files files = {paths[3], paths[4], paths[0]};
    quic_ca_issue(&ca, leaf, paths[3], paths[4]);
    aster_status status = aster_credentials_load(&files, &credentials, error);
    aster_credentials_unref(credentials);
    return status;
}

static void two_uris_no_uri_or_a_wrong_one_make_no_identity(void **state)
{
    (void)state;
    struct aster_error error;
    const struct quic_ca_leaf good = {{CLIENT_ID}, NULL, -60, DAY, NULL};
    const struct quic_ca_leaf two = {{CLIENT_ID, SERVER_ID}, NULL, -60, DAY, NULL};
    const struct quic_ca_leaf none = {{NULL}, "worker", -60, DAY, NULL};
    const struct quic_ca_leaf web = {{"https://example.org/worker"}, NULL, -60, DAY, NULL};
    assert_int_equal(load_leaf(&good, &error), ASTER_OK);
    assert_int_equal(load_leaf(&two, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "exactly one"));
    assert_int_equal(load_leaf(&none, &error), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "no SPIFFE id"));
    assert_int_equal(load_leaf(&web, &error), ASTER_ERR_INVALID);
}

static void a_key_mode_client_is_refused_by_a_ca_mode_server(void **state)
{
    (void)state;
    open_side(&server, paths[1], paths[2], paths[0]);
    quic_side_listen(&server, 0);
    quic_side_open(&client, create, NULL);
    quic_side_connect(&client, &server.bound, NULL);
    quic_side_wait(&client, &client.closed, 1);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    assert_int_equal(server.opened, 0);
}

static void an_identity_stays_over_a_rotation_of_key_and_certificate(void **state)
{
    (void)state;
    const struct quic_ca_leaf leaf = {{CLIENT_ID}, NULL, -60, DAY, NULL};
    connect_with(&ca, &leaf);
    quic_side_wait(&client, &client.opened, 1);
    quic_ca_issue(&ca, &leaf, paths[3], paths[4]);
    const struct aster_credentials_files files = {paths[3], paths[4], paths[0]};
    struct aster_credentials *rotated;
    assert_int_equal(aster_credentials_load(&files, &rotated, NULL), ASTER_OK);
    aster_transport_reload(client.transport, rotated);
    aster_credentials_unref(rotated);
    quic_side_connect(&client, &server.bound, SERVER_ID);
    quic_side_wait(&server, &server.opened, 2);
    assert_string_equal(server.identity, CLIENT_ID);
    assert_int_equal(server.closed, 0);
}

#define ALL(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

static const struct CMUnitTest tests[] = {
    ALL(both_sides_are_known_by_their_spiffe_ids),
    ALL(a_certificate_of_another_root_is_refused),
    ALL(an_expired_certificate_is_refused),
    ALL(a_certificate_that_is_not_valid_yet_is_refused),
    ALL(a_certificate_for_servers_only_does_not_make_a_client),
    ALL(two_uris_no_uri_or_a_wrong_one_make_no_identity),
    ALL(a_key_mode_client_is_refused_by_a_ca_mode_server),
    ALL(an_identity_stays_over_a_rotation_of_key_and_certificate),
};

int main(void)
{
    int failed = cmocka_run_group_tests_name("quic", tests, NULL, NULL);
    create = aster_tcp_transport_create;
    failed += cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
    return failed;
}
