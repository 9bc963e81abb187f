/* The configuration of asterd: what it says, and that every mistake is reported with its line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "grantor/admission.h"
#include "grantor/http.h"
#include "support/unit.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define BASE "journal = \"none\"\nnode-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n"

static const struct grantor_place as_the_file_says = {NULL, NULL};

static aster_status read_placed(const char *text, const struct grantor_place *place, struct grantor_settings **settings,
                                struct aster_error *error)
{
    char path[] = "/tmp/aster-settings-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    aster_status status = grantor_settings_read(path, place, settings, error);
    unlink(path);
    return status;
}

static aster_status read_text(const char *text, struct grantor_settings **settings, struct aster_error *error)
{
    return read_placed(text, &as_the_file_says, settings, error);
}

static void expect_mistake(const char *text, const char *line, const char *said)
{
    struct grantor_settings *settings = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(read_text(text, &settings, &error), ASTER_ERR_INVALID);
    assert_null(settings);
    if (strstr(error.message, line) == NULL || strstr(error.message, said) == NULL) {
        fail_msg("expected \"%s\" and \"%s\" in: %s", line, said, error.message);
    }
}

static void mistakes_are_reported_with_their_line(void **state)
{
    (void)state;
    expect_mistake("store = \"disk\"\n", ":1:", "sqlite:PATH");
    expect_mistake("store = \"mem:\"\n", ":1:", "journal = \"none\"");
    expect_mistake("journal = \"memory\"\n", ":1:", "sqlite:PATH");
    expect_mistake("journal = \"sqlite:\"\n", ":1:", "sqlite:PATH");
    expect_mistake(BASE "nonsense = 3\n", ":4:", "nonsense");
    expect_mistake(BASE "node \"xyz\" { }\n", ":4:", "64 lower-case hexadecimal digits");
    expect_mistake(BASE "in-flight-max = 3\n", ":4:", "1024 to");
    expect_mistake(BASE "http = \"0.0.0.0:9400\"\n", ":4:", "loopback");
    expect_mistake(BASE "http = \"9400\"\n", ":4:", "host:port");
    expect_mistake(BASE "listen {\n tcp = {\"127.0.0.1:1\",\n  \"nohost\"}\n}\n", ":6:", "host:port");
    expect_mistake(BASE "idle-timeout-ms = 100\n", ":4:", "10000 to");
    expect_mistake(BASE "node \"" ID_A "\" {\n roles = {\"\"}\n}\n", ":5:", "role is empty");
    expect_mistake(BASE "node \"" ID_A "\" {\n resources = {\"a\x01\"}\n}\n", ":5:", "prefix");
    expect_mistake(BASE "node \"" ID_A "\" {}\nnode \"" ID_A "\" {}\n", ":5:", ID_A);
    expect_mistake(BASE "requires { steal = \"x\" }\n", ":4:", "steal");
}

static void comments_do_not_shift_the_line_that_is_named(void **state)
{
    (void)state;
    expect_mistake("# one\n\n// two\n/* three\n four */ store = \"disk\"\n", ":5:", "sqlite:PATH");
    expect_mistake("journal = \"none\" # not \"closed\nnode-directory = '# \\' //' #x\nnonsense = 1\n",
                   ":3:", "nonsense");
    expect_mistake("store = sqlite:/a//c#b\nnonsense = 1\n", ":2:", "nonsense");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    expect_mistake("node-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n", "journal = \"sqlite:", "missing");
    expect_mistake(BASE "store = \"sqlite:/s\"\n", "one place", "journal");
    expect_mistake("journal = \"none\"\nnode-directory = \"/n\"\n", "listen", "quic");
    expect_mistake("journal = \"none\"\nlisten { tcp = {\":7400\"} }\n", "node-directory", "CA mode");
    expect_mistake(BASE "roots = \"/r\"\n", "node-directory", "CA mode");
    expect_mistake(BASE "node \"spiffe://x/y\" {}\n", "spiffe://x/y", "key mode");
}

static void a_service_keeps_its_journal_in_its_state_directory(void **state)
{
    (void)state;
    struct grantor_settings *settings = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    const char *text = "node-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n";
    setenv("STATE_DIRECTORY", "/var/lib/aster:/var/lib/other", 1);
    assert_int_equal(read_text(text, &settings, &error), ASTER_OK);
    assert_string_equal(settings->journal, "sqlite:/var/lib/aster/journal.db");
    grantor_settings_destroy(settings);
    assert_int_equal(read_text(BASE, &settings, &error), ASTER_OK);
    assert_string_equal(settings->journal, "none");
    grantor_settings_destroy(settings);
    unsetenv("STATE_DIRECTORY");
}

static void the_command_line_decides_where_whatever_the_file_says(void **state)
{
    (void)state;
    static const char *const files[] = {BASE, "node-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n",
                                        BASE "store = \"sqlite:/other\"\n"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct grantor_settings *settings = NULL;
        struct aster_error error = ASTER_ERROR_INIT;
        const struct grantor_place store = {NULL, "sqlite:/s"};
        const struct grantor_place both = {"sqlite:/j", "sqlite:/s"};
        const struct grantor_place unknown = {"disk", NULL};
        assert_int_equal(read_placed(files[i], &store, &settings, &error), ASTER_OK);
        assert_null(settings->journal);
        assert_string_equal(settings->store, "sqlite:/s");
        grantor_settings_destroy(settings);
        assert_int_equal(read_placed(files[i], &both, &settings, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "the command line: "));
        assert_int_equal(read_placed(files[i], &unknown, &settings, &error), ASTER_ERR_INVALID);
        assert_non_null(strstr(error.message, "the command line: "));
    }
}

static void a_file_that_was_cut_off_is_not_believed(void **state)
{
    (void)state;
    expect_mistake(BASE "requires { acquire = 7", ":4:", "nothing closes");
    expect_mistake(BASE "node \"" ID_A "\" {\n roles = {\"}\"}\n\n", ":4:", "nothing closes");
    expect_mistake(BASE "requires {\n # }\n", ":4:", "nothing closes");
}

static void a_file_that_is_not_there_is_an_io_error(void **state)
{
    (void)state;
    struct grantor_settings *settings = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(grantor_settings_read("/nowhere/asterd.conf", &as_the_file_says, &settings, &error), ASTER_ERR_IO);
    assert_non_null(strstr(error.message, "/nowhere/asterd.conf"));
}

static struct grantor_admission *admission_of(const char *text)
{
    struct grantor_settings *settings = NULL;
    struct grantor_admission *admission = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    if (read_text(text, &settings, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(grantor_admission_create(settings, &admission, &error), ASTER_OK);
    return admission;
}

static bool allows(struct grantor_admission *admission, const char *id, enum aster_operation_kind kind,
                   const char *resource)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = kind;
    operation.resource = aster_text(resource);
    operation.caller = aster_text(id);
    return grantor_admission_authorize(&operation, admission);
}

static void roles_and_prefixes_decide_together(void **state)
{
    (void)state;
    struct grantor_admission *admission =
        admission_of(BASE "requires { acquire = \"worker\" }\nnode \"" ID_A
                          "\" { roles = {\"worker\"} resources = {\"x/\", \"y\"} }\n"
                          "node \"" ID_B "\" { roles = {\"other\", \"operator\"} }\n");
    assert_true(allows(admission, ID_A, ASTER_OP_ACQUIRE, "x/1"));
    assert_true(allows(admission, ID_A, ASTER_OP_ACQUIRE, "y"));
    assert_false(allows(admission, ID_A, ASTER_OP_ACQUIRE, "x"));
    assert_false(allows(admission, ID_A, ASTER_OP_REVOKE, "x/1"));
    assert_false(allows(admission, ID_B, ASTER_OP_ACQUIRE, "x/1"));
    assert_true(allows(admission, ID_B, ASTER_OP_REVOKE, "anything"));
    assert_true(allows(admission, ID_B, ASTER_OP_RENEW, "anything"));
    grantor_admission_destroy(admission);
}

static void only_an_exact_identity_is_known(void **state)
{
    (void)state;
    struct grantor_admission *admission = admission_of(BASE "node \"" ID_B "\" {}\nnode \"" ID_A "\" {}\n");
    assert_true(grantor_admission_knows(admission, aster_text(ID_A)));
    assert_true(grantor_admission_knows(admission, aster_text(ID_B)));
    assert_false(grantor_admission_knows(admission, aster_text(ID_A "a")));
    assert_false(grantor_admission_knows(admission, (struct aster_bytes){ID_A, 63}));
    assert_false(grantor_admission_knows(admission, (struct aster_bytes){NULL, 0}));
    grantor_admission_destroy(admission);
}

static void without_nodes_nobody_is_known(void **state)
{
    (void)state;
    struct grantor_admission *admission = admission_of(BASE);
    assert_false(grantor_admission_knows(admission, aster_text(ID_A)));
    assert_false(allows(admission, ID_A, ASTER_OP_INSPECT, "x"));
    grantor_admission_destroy(admission);
}

static void metrics_are_not_served_to_other_machines(void **state)
{
    (void)state;
    struct grantor_http *http = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    assert_int_equal(grantor_http_open("0.0.0.0:0", NULL, &http, &error), ASTER_ERR_INVALID);
    assert_null(http);
    assert_non_null(strstr(error.message, "0.0.0.0:0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_reported_with_their_line),
        cmocka_unit_test(comments_do_not_shift_the_line_that_is_named),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(a_service_keeps_its_journal_in_its_state_directory),
        cmocka_unit_test(the_command_line_decides_where_whatever_the_file_says),
        cmocka_unit_test(a_file_that_was_cut_off_is_not_believed),
        cmocka_unit_test(a_file_that_is_not_there_is_an_io_error),
        cmocka_unit_test(roles_and_prefixes_decide_together),
        cmocka_unit_test(only_an_exact_identity_is_known),
        cmocka_unit_test(without_nodes_nobody_is_known),
        cmocka_unit_test(metrics_are_not_served_to_other_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
