/* What operators change at run time: how it lies over the configuration, and the file that keeps it. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grantor/admission.h"
#include "grantor/changes_file.h"
#include "support/unit.h"

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define BASE "journal = \"none\"\nnode-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n"
#define NODES "node \"" ID_A "\" { name = \"a\" roles = {\"worker\"} }\nnode \"" ID_C "\" { roles = {\"operator\"} }\n"

static char directory[64];
static char path[128];
static struct grantor_settings *settings;
static struct grantor_admission *admission;
static struct grantor_changes_file file;
static struct aster_error error;

static struct grantor_settings *read_settings(const char *text)
{
    struct grantor_settings *read = NULL;
    char config[128];
    snprintf(config, sizeof config, "%s/asterd.conf", directory);
    FILE *out = fopen(config, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    if (grantor_settings_read(config, &(struct grantor_place){NULL, NULL}, &read, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    unlink(config);
    return read;
}

static int open_world(void **state)
{
    (void)state;
    snprintf(directory, sizeof directory, "/tmp/aster-overlay-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/nodes.conf", directory);
    settings = read_settings(BASE NODES);
    assert_int_equal(grantor_admission_create(settings, &admission, &error), ASTER_OK);
    assert_true(grantor_changes_file_init(&file, path));
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    char command[128];
    grantor_changes_file_fini(&file);
    grantor_admission_destroy(admission);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* Read the file as a start does, and let it count. */
static aster_status restart(void)
{
    struct grantor_overlay *overlay = NULL;
    aster_status status = grantor_changes_file_read(&file, settings, &overlay, &error);
    if (status == ASTER_OK) {
        grantor_admission_replace(admission, NULL, overlay);
    }
    return status;
}

/* One change, all the way to the file. */
static aster_status change(const struct aster_call *call, bool *changed)
{
    struct grantor_overlay *overlay = NULL;
    aster_status status = grantor_admission_change(admission, call, &overlay, &error);
    *changed = overlay != NULL;
    if (status == ASTER_OK && overlay != NULL) {
        status = grantor_changes_file_draft(&file, overlay, &error);
    }
    if (status == ASTER_OK && overlay != NULL) {
        status = grantor_changes_file_place(&file, &error);
    }
    if (status == ASTER_OK && overlay != NULL) {
        grantor_admission_replace(admission, NULL, overlay);
        return status;
    }
    grantor_overlay_destroy(overlay);
    return status;
}

static void must_change(const struct aster_call *call, bool expected)
{
    bool changed = false;
    aster_status status = change(call, &changed);
    if (status != ASTER_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(changed, expected);
}

static void must_refuse(const struct aster_call *call, aster_status expected, const char *said)
{
    bool changed;
    assert_int_equal(change(call, &changed), expected);
    if (strstr(error.message, said) == NULL) {
        fail_msg("expected \"%s\" in: %s", said, error.message);
    }
}

static struct aster_bytes one_text[4];

static struct aster_call node_call(enum aster_call_kind kind, const char *id)
{
    struct aster_call call = {.id = 1, .kind = kind};
    call.node.record.id = aster_text(id);
    return call;
}

static struct aster_call add_call(const char *id, const char *role, const char *prefix)
{
    struct aster_call call = node_call(ASTER_CALL_NODE_ADD, id);
    one_text[0] = aster_text(role);
    one_text[1] = aster_text(prefix);
    call.node.record.roles = (struct aster_bytes_list){&one_text[0], role != NULL};
    call.node.record.resources = (struct aster_bytes_list){&one_text[1], prefix != NULL};
    return call;
}

static struct aster_call role_call(const char *id, const char *added, const char *dropped)
{
    struct aster_call call = node_call(ASTER_CALL_NODE_ROLE, id);
    one_text[0] = aster_text(added);
    one_text[1] = aster_text(dropped);
    call.node.record.roles = (struct aster_bytes_list){&one_text[0], added != NULL};
    call.node.dropped = (struct aster_bytes_list){&one_text[1], dropped != NULL};
    return call;
}

static struct aster_call rule_call(const char *verb, const char *role)
{
    struct aster_call call = {.id = 1, .kind = ASTER_CALL_REQUIRE};
    call.require = (struct aster_rule){aster_verb_find(verb), aster_text(role), false};
    return call;
}

static bool knows(const char *id)
{
    return grantor_admission_knows(admission, aster_text(id));
}

static enum aster_node_origin origin_of(const char *id)
{
    enum aster_node_origin origin;
    grantor_admission_freeze(admission);
    const struct grantor_node *node = grantor_frozen_node(admission, aster_text(id), &origin);
    grantor_admission_thaw(admission);
    return node != NULL ? origin : (enum aster_node_origin)0;
}

static void a_node_that_is_added_survives_a_restart_with_its_roles_and_prefixes(void **state)
{
    (void)state;
    struct aster_call add = add_call(ID_B, "worker", "invoice/");
    must_change(&add, true);
    must_change(&add, false); /* asked again: it is so already */
    assert_int_equal(restart(), ASTER_OK);
    assert_true(knows(ID_B));
    assert_int_equal(origin_of(ID_B), ASTER_NODE_BY_OPERATOR);
    assert_true(grantor_admission_reaches(admission, aster_text(ID_B), aster_text("invoice/1")));
    assert_false(grantor_admission_reaches(admission, aster_text(ID_B), aster_text("catalog")));
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
}

static void a_removed_node_stays_removed_although_the_configuration_lists_it(void **state)
{
    (void)state;
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_A);
    must_change(&removal, true);
    must_change(&removal, false);
    assert_int_equal(restart(), ASTER_OK);
    assert_false(knows(ID_A));
    assert_int_equal(origin_of(ID_A), ASTER_NODE_REMOVED);
    grantor_admission_replace(admission, settings = read_settings(BASE NODES "requires { renew = \"x\" }\n"), NULL);
    assert_false(knows(ID_A)); /* a reload of the configuration does not bring it back either */
    struct aster_call add = add_call(ID_A, "worker", NULL);
    must_change(&add, true);
    assert_true(knows(ID_A));
}

static void a_removed_node_that_only_operators_knew_is_forgotten(void **state)
{
    (void)state;
    struct aster_call add = add_call(ID_B, NULL, NULL);
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_B);
    must_change(&add, true);
    must_change(&removal, true);
    assert_false(knows(ID_B));
    assert_int_equal(origin_of(ID_B), 0);
}

static void in_both_files_the_operators_word_counts_until_it_is_the_same(void **state)
{
    (void)state;
    struct aster_call drop = role_call(ID_A, "auditor", "worker");
    must_change(&drop, true);
    assert_int_equal(restart(), ASTER_OK);
    assert_int_equal(origin_of(ID_A), ASTER_NODE_BY_OPERATOR);
    struct aster_call other = add_call(ID_A, "worker", NULL);
    must_refuse(&other, ASTER_ERR_REFUSED, "--replace");
    other.node.replace = true;
    other.node.record.name = aster_text("a");
    must_change(&other, true);
    assert_int_equal(origin_of(ID_A), ASTER_NODE_CONFIGURED); /* given back to the configuration */
}

static void rules_are_changed_taken_away_and_given_back(void **state)
{
    (void)state;
    struct aster_call acquire = rule_call("acquire", "worker");
    struct aster_call revoke = rule_call("revoke", NULL);
    struct aster_call back = rule_call("revoke", "operator");
    must_change(&acquire, true);
    must_change(&revoke, true);
    assert_int_equal(restart(), ASTER_OK);
    assert_true(grantor_admission_may(admission, aster_text(ID_A), ASTER_OP_ACQUIRE));
    assert_false(grantor_admission_may(admission, aster_text(ID_C), ASTER_OP_ACQUIRE));
    assert_true(grantor_admission_may(admission, aster_text(ID_A), ASTER_OP_REVOKE));
    must_change(&back, true);
    assert_false(grantor_admission_may(admission, aster_text(ID_A), ASTER_OP_REVOKE));
    must_change(&back, false);
}

static void the_last_operator_can_neither_be_removed_nor_lose_its_role(void **state)
{
    (void)state;
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_C);
    struct aster_call drop = role_call(ID_C, NULL, "operator");
    struct aster_call replace = add_call(ID_C, "worker", NULL);
    replace.node.replace = true;
    must_refuse(&removal, ASTER_ERR_REFUSED, "last node with the role operator");
    replace = add_call(ID_C, "worker", NULL);
    replace.node.replace = true;
    must_refuse(&replace, ASTER_ERR_REFUSED, "last node with the role operator");
    drop = role_call(ID_C, NULL, "operator");
    must_refuse(&drop, ASTER_ERR_REFUSED, "last node with the role operator");
    struct aster_call second = role_call(ID_A, "operator", NULL);
    must_change(&second, true);
    must_change(&removal, true);
    assert_false(knows(ID_C));
}

static void what_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct aster_call role = role_call(ID_B, "worker", NULL);
    must_refuse(&role, ASTER_ERR_REFUSED, "add it first");
    struct aster_call add = add_call("spiffe://example.org/w", NULL, NULL);
    must_refuse(&add, ASTER_ERR_INVALID, "key mode");
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_B);
    must_change(&removal, false); /* it is not admitted: nothing to do */
    assert_int_equal(access(path, F_OK), -1);
}

static void names_that_look_like_syntax_come_back_as_they_were(void **state)
{
    (void)state;
    static const char *const nasty[] = {"it's \\ \"x\" }", "${HOME}", "a\\", "# no comment", "\xc3\xa4 // /* {"};
    for (size_t i = 0; i < sizeof nasty / sizeof nasty[0]; i++) {
        struct aster_call add = add_call(ID_B, nasty[i], nasty[i]);
        add.node.replace = true;
        add.node.record.name = aster_text(nasty[i]);
        must_change(&add, true);
        if (restart() != ASTER_OK) {
            fail_msg("%s: %s", nasty[i], error.message);
        }
        must_change(&add, false);
    }
    assert_true(knows(ID_B));
}

static void expect_broken(const char *text, const char *line, const char *said)
{
    write_file(text, 0600);
    assert_int_equal(restart(), ASTER_ERR_INVALID);
    if (strstr(error.message, path) == NULL || strstr(error.message, line) == NULL ||
        strstr(error.message, said) == NULL) {
        fail_msg("expected \"%s\" and \"%s\" in: %s", line, said, error.message);
    }
}

static void a_damaged_file_is_refused_with_its_line(void **state)
{
    (void)state;
    expect_broken("node 'xyz' {}\ncomplete = true\n", ":1:", "64 lower-case hexadecimal digits");
    expect_broken("# x\n\nnode '" ID_B "' {\n  roles = {''}\n}\ncomplete = true\n", ":4:", "role");
    expect_broken("nonsense = 3\ncomplete = true\n", ":1:", "nonsense");
    expect_broken("removed = {'" ID_A "'}\n", "complete = true", "missing"); /* cut after a line */
    expect_broken("removed = {'" ID_A "", "nodes.conf", "");                 /* cut within one */
    expect_broken("", "complete = true", "missing");                         /* emptied */
    expect_broken("node '" ID_B "' {}\nremoved = {'" ID_B "'}\ncomplete = true\n", ID_B, "both");
    expect_broken("node 'spiffe://x/y' {}\ncomplete = true\n", "spiffe://x/y", "key mode");
    expect_broken("requires { acquire = 'a\x01' }\ncomplete = true\n", ":1:", "control");
    assert_true(knows(ID_A)); /* what counted before still does */
}

static void a_file_that_others_may_write_is_refused(void **state)
{
    (void)state;
    write_file("complete = true\n", 0666);
    assert_int_equal(restart(), ASTER_ERR_INVALID);
    assert_non_null(strstr(error.message, "chmod 600"));
}

static void a_crash_between_writing_and_placing_leaves_the_old_file(void **state)
{
    (void)state;
    struct aster_call first = add_call(ID_B, "worker", NULL);
    must_change(&first, true);
    pid_t child = fork();
    if (child == 0) { /* dies with the draft beside the file */
        struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_B);
        struct grantor_overlay *overlay = NULL;
        bool drafted = grantor_admission_change(admission, &removal, &overlay, NULL) == ASTER_OK &&
                       grantor_changes_file_draft(&file, overlay, NULL) == ASTER_OK;
        _exit(drafted ? 7 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(restart(), ASTER_OK);
    assert_true(knows(ID_B));
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_B);
    must_change(&removal, true); /* and the next change is not in its way */
}

static void a_file_that_somebody_else_changed_is_not_overwritten(void **state)
{
    (void)state;
    struct aster_call first = add_call(ID_B, "worker", NULL);
    must_change(&first, true);
    write_file("removed = {'" ID_A "'}\ncomplete = true\n", 0600);
    struct aster_call drop = role_call(ID_B, NULL, "worker");
    must_refuse(&drop, ASTER_ERR_REFUSED, "SIGHUP");
    assert_int_equal(restart(), ASTER_OK);
    assert_false(knows(ID_A));
    assert_false(knows(ID_B));
}

static void without_a_place_or_without_room_nothing_is_changed(void **state)
{
    (void)state;
    struct aster_call add = add_call(ID_B, NULL, NULL);
    grantor_changes_file_fini(&file);
    assert_true(grantor_changes_file_init(&file, NULL));
    must_refuse(&add, ASTER_ERR_REFUSED, "nodes-file");
    grantor_changes_file_fini(&file);
    assert_true(grantor_changes_file_init(&file, "/nowhere/nodes.conf"));
    must_refuse(&add, ASTER_ERR_IO, "/nowhere/nodes.conf");
    assert_false(knows(ID_B));
}

static size_t count_files(void)
{
    size_t count = 0;
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        count += entry->d_name[0] != '.';
    }
    closedir(entries);
    return count;
}

/* The write fails half-way, as on a full disk. */
static void a_write_that_finds_no_room_leaves_the_old_file_and_nothing_beside_it(void **state)
{
    (void)state;
    struct aster_call first = add_call(ID_B, "worker", NULL);
    must_change(&first, true);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit room = {200, 200}; /* bytes of a file: less than its preface */
        bool changed;
        struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_B);
        signal(SIGXFSZ, SIG_IGN);
        bool limited = setrlimit(RLIMIT_FSIZE, &room) == 0;
        bool refused = change(&removal, &changed) == ASTER_ERR_IO && knows(ID_B);
        _exit(limited && refused ? 7 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(count_files(), 1);
    assert_int_equal(restart(), ASTER_OK);
    assert_true(knows(ID_B));
}

static void the_default_file_is_beside_the_store(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *path;
    } cases[] = {
        {"journal = \"sqlite:/var/lib/aster/leases.db\"\n", "/var/lib/aster/nodes.conf"},
        {"store = \"sqlite:leases.db\"\n", "nodes.conf"},
        {"journal = \"none\"\n", NULL},
        {"journal = \"none\"\nnodes-file = \"/x/y\"\n", "/x/y"},
        {"store = \"sqlite:/a/b\"\nnodes-file = \"/x/y\"\n", "/x/y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        char *got = NULL;
        snprintf(text, sizeof text, "%snode-directory = \"/n\"\nlisten { quic = {\":7400\"} }\n", cases[i].text);
        struct grantor_settings *read = read_settings(text);
        assert_int_equal(grantor_settings_nodes_file(read, &got, &error), ASTER_OK);
        assert_int_equal(got == NULL, cases[i].path == NULL);
        if (got != NULL) {
            assert_string_equal(got, cases[i].path);
        }
        free(got);
        grantor_settings_destroy(read);
    }
}

static void every_node_is_listed_once_and_in_order(void **state)
{
    (void)state;
    struct aster_call add = add_call(ID_B, NULL, NULL);
    struct aster_call removal = node_call(ASTER_CALL_NODE_REMOVE, ID_A);
    static const char *const expected[] = {ID_A, ID_B, ID_C};
    static const enum aster_node_origin origins[] = {ASTER_NODE_REMOVED, ASTER_NODE_BY_OPERATOR, ASTER_NODE_CONFIGURED};
    must_change(&add, true);
    must_change(&removal, true);
    size_t count = 0;
    enum aster_node_origin origin;
    grantor_admission_freeze(admission);
    const struct grantor_node *node = grantor_frozen_after(admission, aster_text(NULL), &origin);
    while (node != NULL && count < 3) {
        assert_string_equal(node->id, expected[count]);
        assert_int_equal(origin, origins[count]);
        count++;
        node = grantor_frozen_after(admission, aster_text(node->id), &origin);
    }
    grantor_admission_thaw(admission);
    assert_null(node);
    assert_int_equal(count, 3);
}

static void thousands_of_nodes_are_kept_sorted_and_found(void **state)
{
    (void)state;
    struct grantor_nodes nodes = {NULL, 0};
    char id[80];
    for (unsigned i = 0; i < 5000; i++) {
        struct grantor_node node = {.removed = i % 2 == 0};
        snprintf(id, sizeof id, "%064x", i * 2654435761U);
        node.id = grantor_text_copy(aster_text(id));
        assert_true(grantor_nodes_put(&nodes, &node));
    }
    assert_int_equal(nodes.count, 5000);
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(id, sizeof id, "%064x", i * 2654435761U);
        assert_non_null(grantor_nodes_find(&nodes, aster_text(id)));
    }
    for (size_t i = 1; i < nodes.count; i++) {
        assert_true(strcmp(nodes.items[i - 1].id, nodes.items[i].id) < 0);
    }
    grantor_nodes_free(&nodes);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_node_that_is_added_survives_a_restart_with_its_roles_and_prefixes),
        EACH(a_removed_node_stays_removed_although_the_configuration_lists_it),
        EACH(a_removed_node_that_only_operators_knew_is_forgotten),
        EACH(in_both_files_the_operators_word_counts_until_it_is_the_same),
        EACH(rules_are_changed_taken_away_and_given_back),
        EACH(the_last_operator_can_neither_be_removed_nor_lose_its_role),
        EACH(what_makes_no_sense_is_refused_and_changes_nothing),
        EACH(names_that_look_like_syntax_come_back_as_they_were),
        EACH(a_damaged_file_is_refused_with_its_line),
        EACH(a_file_that_others_may_write_is_refused),
        EACH(a_crash_between_writing_and_placing_leaves_the_old_file),
        EACH(a_file_that_somebody_else_changed_is_not_overwritten),
        EACH(without_a_place_or_without_room_nothing_is_changed),
        EACH(a_write_that_finds_no_room_leaves_the_old_file_and_nothing_beside_it),
        EACH(the_default_file_is_beside_the_store),
        EACH(every_node_is_listed_once_and_in_order),
        EACH(thousands_of_nodes_are_kept_sorted_and_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
