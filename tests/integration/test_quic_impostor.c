/* Nobody becomes someone else: not with a stolen certificate, not without one, not with another protocol. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <unistd.h>

#include "platform/private_file.h"
#include "support/quic_side.h"

static quic_create create = aster_quic_transport_create;
static struct quic_side server;
static struct quic_side victim;
static struct quic_side attacker;

static int open_all(void **state)
{
    (void)state;
    quic_side_init(&server, "server");
    quic_side_init(&victim, "victim");
    quic_side_init(&attacker, "attacker");
    quic_side_open(&server, create, NULL);
    quic_side_listen(&server, 0);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    quic_side_fini(&attacker);
    quic_side_fini(&victim);
    quic_side_fini(&server);
    return 0;
}

static gnutls_datum_t read_file(const char *path)
{
    char *content;
    size_t size;
    assert_int_equal(aster_private_file_read(path, 65536, false, &content, &size, NULL), ASTER_OK);
    return (gnutls_datum_t){(unsigned char *)content, (unsigned)size};
}

/* The attacker's credentials as the library would never load them: the certificate of `shown`, the key of the attacker.
 */
static struct aster_credentials *forged(struct quic_side *shown)
{
    struct aster_credentials *credentials;
    struct aster_node_paths theirs;
    struct aster_node_paths own;
    assert_int_equal(aster_credentials_load_node(attacker.directory, &credentials, NULL), ASTER_OK);
    assert_int_equal(aster_node_paths(attacker.directory, &own, NULL), ASTER_OK);
    gnutls_certificate_credentials_t native = aster_credentials_native(credentials);
    gnutls_certificate_free_keys(native);
    if (shown != NULL) {
        assert_int_equal(aster_node_paths(shown->directory, &theirs, NULL), ASTER_OK);
        gnutls_datum_t key = read_file(own.key);
        gnutls_datum_t certificate = read_file(theirs.certificate);
        gnutls_certificate_set_flags(native, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
        assert_true(gnutls_certificate_set_x509_key_mem(native, &certificate, &key, GNUTLS_X509_FMT_PEM) >= 0);
        free(key.data);
        free(certificate.data);
    }
    return credentials;
}

static void attack_with(struct aster_credentials *credentials, struct quic_side *side, const char *expected)
{
    struct aster_transport_options options = quic_side_options(side);
    options.credentials = credentials;
    quic_side_open(side, create, &options);
    aster_credentials_unref(credentials);
    if (expected != NULL) {
        quic_side_connect(side, &server.bound, expected);
    }
}

static void a_stolen_certificate_without_its_key_is_refused(void **state)
{
    (void)state;
    attack_with(forged(&victim), &attacker, server.id);
    quic_side_wait(&server, &server.refused, 1);
    quic_side_wait(&attacker, &attacker.closed, 1);
    assert_int_equal(server.opened, 0);
    assert_int_equal(attacker.opened, 0);
    assert_int_equal(quic_side_counts(&server).accepted, 0);
}

static void a_client_without_a_certificate_is_refused(void **state)
{
    (void)state;
    attack_with(forged(NULL), &attacker, server.id);
    quic_side_wait(&server, &server.refused, 1);
    quic_side_wait(&attacker, &attacker.closed, 1);
    assert_int_equal(attacker.end, ASTER_LINK_END_REFUSED);
    assert_int_equal(server.opened, 0);
    assert_string_equal(server.refused_identity, "");
}

static void a_server_with_a_stolen_certificate_is_not_believed(void **state)
{
    (void)state;
    attack_with(forged(&victim), &attacker, NULL);
    quic_side_listen(&attacker, 0);
    quic_side_open(&victim, create, NULL);
    quic_side_connect(&victim, &attacker.bound, victim.id);
    quic_side_wait(&victim, &victim.closed, 1);
    assert_int_equal(victim.opened, 0);
    assert_int_equal(attacker.opened, 0);
}

/* ---- other protocols over TCP, with a plain GnuTLS client ---- */

static bool plain_client_is_accepted(const char *priority, const char *alpn)
{
    struct aster_credentials *credentials;
    gnutls_session_t session;
    bool accepted = false;
    assert_int_equal(aster_credentials_load_node(attacker.directory, &credentials, NULL), ASTER_OK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, &server.bound.any, server.bound.size), 0);
    assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT), 0);
    assert_int_equal(gnutls_priority_set_direct(session, priority, NULL), 0);
    assert_int_equal(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, aster_credentials_native(credentials)), 0);
    if (alpn != NULL) {
        const gnutls_datum_t protocol = {(unsigned char *)(uintptr_t)alpn, (unsigned)strlen(alpn)};
        assert_int_equal(gnutls_alpn_set_protocols(session, &protocol, 1, 0), 0);
    }
    gnutls_transport_set_int(session, fd);
    int code;
    do {
        code = gnutls_handshake(session);
    } while (code < 0 && gnutls_error_is_fatal(code) == 0);
    unsigned char byte = 0;
    if (code == 0) {
        ssize_t got;
        do {
            got = gnutls_record_recv(session, &byte, 1);
        } while (got < 0 && gnutls_error_is_fatal((int)got) == 0);
        accepted = got == 1 && byte == 1;
    }
    gnutls_deinit(session);
    close(fd);
    aster_credentials_unref(credentials);
    return accepted;
}

static void only_tls_1_3_with_our_protocol_is_spoken(void **state)
{
    (void)state;
    quic_side_close(&server);
    quic_side_open(&server, aster_tcp_transport_create, NULL);
    quic_side_listen(&server, 0);
    assert_true(plain_client_is_accepted("NORMAL", "aster/1"));
    quic_side_wait(&server, &server.opened, 1);
    assert_false(plain_client_is_accepted("NORMAL", "http/1.1"));
    assert_false(plain_client_is_accepted("NORMAL", NULL));
    assert_false(plain_client_is_accepted("NORMAL:-VERS-ALL:+VERS-TLS1.2", "aster/1"));
    quic_side_wait(&server, &server.refused, 3);
    assert_int_equal(server.opened, 1);
}

#define ALL(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

static const struct CMUnitTest tests[] = {
    ALL(a_stolen_certificate_without_its_key_is_refused),
    ALL(a_client_without_a_certificate_is_refused),
    ALL(a_server_with_a_stolen_certificate_is_not_believed),
    ALL(only_tls_1_3_with_our_protocol_is_spoken),
};

int main(void)
{
    int failed = cmocka_run_group_tests_name("quic", tests, NULL, NULL);
    create = aster_tcp_transport_create;
    failed += cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
    return failed;
}
