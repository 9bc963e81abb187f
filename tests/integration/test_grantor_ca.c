/* A real asterd in CA mode: identities are SPIFFE ids, certificates come and go. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/grantor_world.h"
#include "support/quic_ca.h"
#include "support/unit.h"

#define SERVER_ID "spiffe://example.org/asterd"
#define CLIENT_ID "spiffe://example.org/worker/1"
#define DAY 86400
#define TTL_MS 60000

static struct grantor_process server;
static struct grantor_client client;
static struct quic_ca ca;
static char paths[5][96]; /* roots, server's key and certificate, client's key and certificate */
static char lines[512];
static struct aster_credentials_files files;

static void issue(const char *id, int key)
{
    const struct quic_ca_leaf leaf = {{id}, NULL, -60, DAY, NULL};
    quic_ca_issue(&ca, &leaf, paths[key], paths[key + 1]);
}

static int open_world(void **state)
{
    (void)state;
    static const char *const names[] = {"roots.pem", "server.key", "server.crt", "client.key", "client.crt"};
    grantor_process_init(&server, "none");
    grantor_client_init(&client, "unused");
    for (int i = 0; i < 5; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", server.directory, names[i]);
    }
    quic_ca_init(&ca, "Example CA");
    quic_ca_write_root(&ca, paths[0]);
    issue(SERVER_ID, 1);
    issue(CLIENT_ID, 3);
    snprintf(lines, sizeof lines, "key = \"%s\"\ncertificate = \"%s\"\nroots = \"%s\"\n", paths[1], paths[2], paths[0]);
    files = (struct aster_credentials_files){paths[3], paths[4], paths[0]};
    server.files = lines;
    client.files = &files;
    client.identity = aster_text(CLIENT_ID);
    grantor_process_configure(&server, "node \"" CLIENT_ID "\" {}\n");
    grantor_process_start(&server);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_client_fini(&client);
    grantor_process_fini(&server);
    quic_ca_fini(&ca);
    return 0;
}

static void a_new_certificate_keeps_identity_and_lease(void **state)
{
    (void)state;
    grantor_client_connect(&client, server.quic, false);
    int64_t epoch = grantor_world_take(&client, "catalog", TTL_MS);
    issue(CLIENT_ID, 3); /* another key, too */
    grantor_client_connect(&client, server.tcp, true);
    assert_granted(grantor_client_decision(&client, grantor_client_operate(&client, ASTER_OP_RENEW, "catalog", epoch)));
}

static void a_reload_takes_a_new_certificate_and_cuts_nobody_off(void **state)
{
    (void)state;
    grantor_client_connect(&client, server.quic, false);
    int64_t epoch = grantor_world_take(&client, "catalog", TTL_MS);
    issue(SERVER_ID, 1);
    grantor_process_signal(&server, SIGHUP);
    grantor_process_await_log(&server, "event=reloaded nodes=1 expelled=0", NULL);
    assert_granted(grantor_client_decision(&client, grantor_client_operate(&client, ASTER_OP_RENEW, "catalog", epoch)));
    grantor_client_connect(&client, server.quic, false);
    assert_granted(grantor_client_decision(&client, grantor_client_operate(&client, ASTER_OP_RENEW, "catalog", epoch)));
}

/* The client's certificate is by the root of before: its link ends, its lease does not. */
static void a_reload_cuts_off_whom_only_a_removed_root_vouched_for(void **state)
{
    (void)state;
    struct quic_ca other;
    grantor_client_connect(&client, server.quic, false);
    int64_t epoch = grantor_world_take(&client, "catalog", TTL_MS);
    quic_ca_init(&other, "Other CA");
    quic_ca_write_root(&other, paths[0]);
    grantor_process_signal(&server, SIGHUP);
    grantor_process_await_log(&server, "event=reloaded nodes=1 expelled=1", NULL);
    grantor_client_await_close(&client);
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    quic_ca_write_root(&ca, paths[0]);
    grantor_process_signal(&server, SIGHUP);
    grantor_process_await_log(&server, "event=reloaded nodes=1 expelled=0", NULL);
    grantor_client_connect(&client, server.tcp, true);
    assert_granted(grantor_client_decision(&client, grantor_client_operate(&client, ASTER_OP_RENEW, "catalog", epoch)));
    quic_ca_fini(&other);
}

static void a_root_that_is_added_cuts_nobody_off(void **state)
{
    (void)state;
    struct quic_ca other;
    char other_root[128];
    char both[256];
    grantor_client_connect(&client, server.tcp, true);
    int64_t epoch = grantor_world_take(&client, "catalog", TTL_MS);
    quic_ca_init(&other, "Other CA");
    snprintf(other_root, sizeof other_root, "%s/other.pem", server.directory);
    quic_ca_write_root(&other, other_root);
    snprintf(both, sizeof both, "cat %s >> %s", other_root, paths[0]);
    assert_int_equal(system(both), 0);
    grantor_process_signal(&server, SIGHUP);
    grantor_process_await_log(&server, "event=reloaded nodes=1 expelled=0", NULL);
    assert_granted(grantor_client_decision(&client, grantor_client_operate(&client, ASTER_OP_RENEW, "catalog", epoch)));
    quic_ca_fini(&other);
}

static void an_id_that_is_not_listed_is_refused(void **state)
{
    (void)state;
    issue("spiffe://example.org/worker/2", 3);
    assert_false(grantor_client_link(&client, server.quic, false));
    assert_int_equal(client.end, ASTER_LINK_END_REFUSED);
    grantor_process_await_log(&server, "event=peer-refused", "spiffe://example.org/worker/2");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_new_certificate_keeps_identity_and_lease),
        EACH(a_reload_takes_a_new_certificate_and_cuts_nobody_off),
        EACH(a_reload_cuts_off_whom_only_a_removed_root_vouched_for),
        EACH(a_root_that_is_added_cuts_nobody_off),
        EACH(an_id_that_is_not_listed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
