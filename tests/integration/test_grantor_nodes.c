/* Admission changed while a real asterd runs, with the real `aster node`: who comes in, who is cut off, what is fenced,
 * and what a restart remembers. Each over a journal, which is the default, and over a file that others share. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/grantor_world.h"
#include "support/unit.h"

#define TTL_MS 60000
#define WAIT_MS 20000
#define REFUSED_EXIT 77

static struct grantor_world world;
static const char *journal = "sqlite"; /* as in grantor_process */
static struct grantor_client fresh;    /* not in the configuration */
static char server_id[ASTER_NODE_ID_SIZE];
static char output[65536];

static void open_with(const char *store)
{
    char node[96];
    struct aster_error error = ASTER_ERROR_INIT;
    grantor_world_init(&world, store);
    grantor_client_init(&fresh, "fresh");
    grantor_world_configure(&world, "", "");
    grantor_world_start(&world);
    snprintf(node, sizeof node, "%s/node", world.server.directory);
    assert_int_equal(aster_node_id(node, server_id, &error), ASTER_OK);
}

static int open_world(void **state)
{
    (void)state;
    open_with(journal);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_client_fini(&fresh);
    grantor_world_fini(&world);
    return 0;
}

/* Run a shell command as one of the nodes; its exit status, and what it printed in `output`. */
static int shell(const struct grantor_client *who, const char *command)
{
    char line[2048];
    snprintf(line, sizeof line, "export ASTER_STORE=aster://%s@127.0.0.1:%u ASTER_NODE=%s; (%s) 2>&1", server_id,
             world.server.quic, who->directory, command);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

/* `aster node` with these words, one of which may be %s: the id of `about`. */
static void node(const struct grantor_client *who, int status, const char *words, const struct grantor_client *about,
                 const char *said)
{
    char command[1024];
    int used = snprintf(command, sizeof command, "$ASTER_BIN node ");
    const char *at = strstr(words, "%s");
    snprintf(command + used, sizeof command - (size_t)used, "%.*s%s%s", (int)(at != NULL ? at - words : 0), words,
             at != NULL ? about->id : "", at != NULL ? at + 2 : words);
    int got = shell(who, command);
    if (got != status || strstr(output, said) == NULL) {
        fail_msg("%s: exit status %d, expected %d with \"%s\" in: %s", command, got, status, said, output);
    }
}

static void reload(void)
{
    size_t before = grantor_process_count_log(&world.server, "event=reloaded");
    grantor_process_signal(&world.server, SIGHUP);
    while (grantor_process_count_log(&world.server, "event=reloaded") == before) {
        grantor_client_decision(&world.op, grantor_client_operate(&world.op, ASTER_OP_INSPECT, "settle", 0));
    }
}

/* Everybody's links end with the server; they are made again as the test needs them. */
static void restart(void)
{
    assert_int_equal(grantor_process_end(&world.server, SIGKILL), 256 + SIGKILL);
    grantor_world_configure(&world, "", ""); /* now with the ports that it was given */
    grantor_process_start(&world.server);
    grantor_client_connect(&world.a, world.server.quic, false);
    grantor_client_connect(&world.op, world.server.tcp, true);
}

static struct aster_call put_call(const struct grantor_client *holder, const char *resource, int64_t epoch)
{
    struct aster_call put = {.kind = ASTER_CALL_OPERATION};
    put.one.operation = (struct aster_operation)ASTER_OPERATION_INIT;
    put.one.operation.kind = ASTER_OP_PUT;
    put.one.operation.resource = aster_text(resource);
    put.one.operation.epoch = epoch;
    put.one.operation.holder = holder->identity;
    put.one.operation.value = aster_text("v");
    return put;
}

static void a_node_added_at_run_time_is_let_in_at_once_and_after_a_kill_and_a_reload(void **state)
{
    (void)state;
    assert_false(grantor_client_link(&fresh, world.server.quic, false));
    node(&world.op, 0, "add %s --name fresh --role worker --resources invoice/", &fresh, "is admitted");
    grantor_client_connect(&fresh, world.server.quic, false);
    grantor_world_take(&fresh, "invoice/1", TTL_MS);
    assert_denied(grantor_client_decision(&fresh, grantor_client_acquire(&fresh, "catalog", TTL_MS, 0)),
                  "UNAUTHORIZED");
    grantor_process_await_log(&world.server, "event=node-add", fresh.id);
    restart();
    grantor_client_connect(&fresh, world.server.tcp, true);
    reload();
    grantor_world_take(&fresh, "invoice/2", TTL_MS);
    node(&world.op, 0, "add %s --name fresh --role worker --resources invoice/", &fresh, "(as before)");
    node(&world.op, REFUSED_EXIT, "add %s --role other", &fresh, "--replace");
    node(&world.op, 0, "list", NULL, fresh.id);
    node(&world.op, 0, "list --json", NULL, "\"from\": \"operator\"");
}

static void a_role_gives_revoke_and_its_withdrawal_takes_it_away(void **state)
{
    (void)state;
    grantor_world_take(&world.a, "catalog", TTL_MS);
    uint64_t revoke = grantor_client_operate(&world.b, ASTER_OP_REVOKE, "catalog", 0);
    assert_denied(grantor_client_decision(&world.b, revoke), "UNAUTHORIZED");
    node(&world.op, 0, "role %s --add operator", &world.b, "roles: operator");
    assert_granted(grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_REVOKE, "catalog", 0)));
    node(&world.b, 0, "role %s --drop operator", &world.op, "roles: none"); /* one operator may depose the other */
    node(&world.op, REFUSED_EXIT, "role %s --add operator", &world.op, "UNAUTHORIZED");
    node(&world.b, REFUSED_EXIT, "role %s --drop operator", &world.b, "last node with the role operator");
    restart();
    node(&world.b, 0, "list", NULL, "operator"); /* although the configuration says something else */
    node(&world.op, REFUSED_EXIT, "list", NULL, "UNAUTHORIZED");
}

static void a_withdrawn_role_leaves_the_fence_valid_and_says_so(void **state)
{
    (void)state;
    node(&world.op, 0, "role %s --add worker", &world.b, "worker");
    node(&world.op, 0, "requires acquire --role worker", NULL, "acquire needs the role worker");
    int64_t epoch = grantor_world_take(&world.b, "catalog", TTL_MS);
    node(&world.op, 0, "role %s --drop worker", &world.b, "still holds 1 leases, whose fences stay valid");
    struct aster_call put = put_call(&world.b, "catalog", epoch);
    assert_granted(grantor_client_decision(&world.b, grantor_client_send(&world.b, &put)));
    assert_granted(
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_RENEW, "catalog", epoch)));
    assert_denied(grantor_client_decision(&world.b, grantor_client_acquire(&world.b, "other", TTL_MS, 0)),
                  "UNAUTHORIZED");
    node(&world.op, 0, "requires acquire --no-role", NULL, "acquire needs no role");
    grantor_world_take(&world.b, "other", TTL_MS);
}

static void a_removed_node_is_cut_off_and_stays_out_with_its_lease_running(void **state)
{
    (void)state;
    grantor_world_take(&world.b, "catalog", TTL_MS);
    node(&world.op, 0, "remove %s", &world.b, "it still holds 1 leases, whose fences stay valid; they lapse");
    assert_non_null(strstr(output, "1 connections were ended"));
    grantor_client_await_close(&world.b);
    assert_int_equal(world.b.end, ASTER_LINK_END_REFUSED);
    assert_false(grantor_client_link(&world.b, world.server.quic, false));
    assert_denied(grantor_client_decision(&world.a, grantor_client_acquire(&world.a, "catalog", TTL_MS, 0)),
                  "HELD_BY_OTHER");
    reload();
    assert_false(grantor_client_link(&world.b, world.server.tcp, true));
    restart();
    grantor_process_await_log(&world.server, "event=node-stays-removed", world.b.id);
    assert_false(grantor_client_link(&world.b, world.server.quic, false));
    node(&world.op, 0, "list", NULL, "removed");
    node(&world.op, 0, "remove %s", &world.b, "is not admitted (as before)");
    node(&world.op, 0, "add %s --name b", &world.b, "is admitted");
    grantor_client_connect(&world.b, world.server.quic, false);
}

/* Where a line with both texts begins in the log; it must be there. */
static size_t place_in_log(const char *first, const char *second)
{
    grantor_process_await_log(&world.server, first, second);
    pthread_mutex_lock(&world.server.lock);
    const char *at = strstr(world.server.log, first);
    size_t place = (size_t)(at - world.server.log);
    pthread_mutex_unlock(&world.server.lock);
    return place;
}

static void remove_with_revoke_fences_and_only_then_withdraws_admission(void **state)
{
    (void)state;
    int64_t epochs[3];
    static const char *const names[] = {"x/1", "x/2", "y"};
    for (int i = 0; i < 3; i++) {
        epochs[i] = grantor_world_take(&world.b, names[i], TTL_MS);
    }
    grantor_world_take(&world.a, "x/3", TTL_MS);
    uint64_t waiting = grantor_client_acquire(&world.a, "y", TTL_MS, WAIT_MS);
    node(&world.op, 0, "remove %s --revoke", &world.b, "3 leases were revoked");
    assert_granted(grantor_client_decision(&world.a, waiting)); /* the successor need not wait for the ttl */
    grantor_client_await_close(&world.b);
    grantor_world_take(&world.a, "x/1", TTL_MS);
    assert_true(place_in_log("event=node-remove", world.op.id) > 0);
    grantor_process_await_log(&world.server, "event=revoked", world.op.id); /* the operator is the one who did it */
    assert_int_equal(grantor_process_count_log(&world.server, "event=revoked"), 3);
    assert_denied(grantor_client_decision(&world.op, grantor_client_acquire(&world.op, "x/3", TTL_MS, 0)),
                  "HELD_BY_OTHER"); /* nobody else's lease was touched */
    node(&world.op, 0, "add %s --name b", &world.b, "is admitted");
    grantor_client_connect(&world.b, world.server.quic, false);
    struct aster_call late = put_call(&world.b, "x/2", epochs[1]); /* the fence of before */
    const struct aster_decision *refused = grantor_client_decision(&world.b, grantor_client_send(&world.b, &late));
    assert_int_equal(refused->outcome, ASTER_DENIED);
}

/* An operator that may not use these names itself still fences whoever it removes. */
static void an_operator_bound_to_a_prefix_fences_everything_that_it_removes(void **state)
{
    (void)state;
    grantor_world_take(&world.b, "catalog", TTL_MS);
    node(&world.op, 0, "add %s --role operator --resources none/ --replace", &world.op, "resources: none/");
    node(&world.op, 0, "remove %s --revoke", &world.b, "1 lease was revoked");
    grantor_world_take(&world.a, "catalog", TTL_MS);
}

static void a_removed_node_that_waits_is_skipped(void **state)
{
    (void)state;
    int64_t epoch = grantor_world_take(&world.a, "catalog", TTL_MS);
    grantor_client_acquire(&world.b, "catalog", TTL_MS, WAIT_MS);
    grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_INSPECT, "settle", 0));
    uint64_t second = grantor_client_acquire(&world.op, "catalog", TTL_MS, WAIT_MS);
    grantor_client_decision(&world.op, grantor_client_operate(&world.op, ASTER_OP_INSPECT, "settle", 0));
    node(&world.op, 0, "remove %s", &world.b, "not admitted");
    assert_granted(
        grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_RELEASE, "catalog", epoch)));
    assert_granted(grantor_client_decision(&world.op, second));
}

static void who_is_no_operator_is_refused_audited_and_learns_nothing(void **state)
{
    (void)state;
    static char known[sizeof output];
    node(&world.a, REFUSED_EXIT, "remove %s", &world.b, "UNAUTHORIZED: node-remove");
    snprintf(known, sizeof known, "%s", output);
    node(&world.a, REFUSED_EXIT, "remove %s", &fresh, "");
    assert_string_equal(output, known); /* the same, whether there is such a node or not */
    node(&world.a, REFUSED_EXIT, "list", NULL, "UNAUTHORIZED: node-list");
    node(&world.a, REFUSED_EXIT, "add %s", &fresh, "UNAUTHORIZED: node-add");
    node(&world.a, REFUSED_EXIT, "role %s --add operator", &world.a, "UNAUTHORIZED: node-role");
    node(&world.a, REFUSED_EXIT, "requires revoke --no-role", NULL, "UNAUTHORIZED: require");
    grantor_process_await_log(&world.server, "event=unauthorized verb=node-role", world.a.id);
    struct aster_call list = {.kind = ASTER_CALL_NODE_LIST};
    for (int i = 0; i < 100; i++) {
        const struct aster_answer *answer = grantor_client_await(&world.a, grantor_client_send(&world.a, &list));
        assert_int_equal(answer->kind, ASTER_ANSWER_ERROR);
        assert_int_equal(answer->error.status, ASTER_ERR_REFUSED);
    }
    assert_true(grantor_process_count_log(&world.server, "event=unauthorized") < 50);
}

static void two_operators_at_once_lose_nothing_of_each_other(void **state)
{
    (void)state;
    node(&world.op, 0, "role %s --add operator", &world.a, "operator");
    char command[1024];
    snprintf(command, sizeof command,
             "for i in 1 2 3 4; do for who in %s %s; do "
             "ASTER_NODE=$who $ASTER_BIN node add $(printf %%032x%%032x $i $(echo $who | cksum | cut -d' ' -f1)) & "
             "done; done; wait; $ASTER_BIN node list --json | grep -c 'from.*operator'",
             world.a.directory, world.op.directory);
    assert_int_equal(shell(&world.op, command), 0);
    assert_non_null(strstr(output, "\n9\n")); /* eight, and a, whose role was changed */
}

static void a_change_that_cannot_be_stored_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    char lines[256];
    char place[128];
    snprintf(place, sizeof place, "%s/gone", world.server.directory);
    snprintf(lines, sizeof lines, "nodes-file = \"%s/nodes.conf\"\n", place);
    assert_int_equal(grantor_process_end(&world.server, SIGTERM), 0);
    grantor_world_configure(&world, "", lines);
    grantor_world_start(&world);
    int64_t epoch = grantor_world_take(&world.b, "catalog", TTL_MS);
    node(&world.op, 74, "remove %s --revoke", &world.b, "gone/nodes.conf");
    assert_granted(
        grantor_client_decision(&world.b, grantor_client_operate(&world.b, ASTER_OP_RENEW, "catalog", epoch)));
    node(&world.op, 74, "add %s", &fresh, "gone/nodes.conf");
    assert_false(grantor_client_link(&fresh, world.server.quic, false));
}

static void without_a_place_to_keep_it_no_change_is_made(void **state)
{
    (void)state;
    node(&world.op, REFUSED_EXIT, "add %s", &fresh, "nodes-file");
    node(&world.op, 0, "add %s --name b", &world.b, "(as before)");
    node(&world.op, 0, "list", NULL, "configuration");
}

static void a_damaged_file_of_changes_stops_a_start_and_a_reload_with_its_line(void **state)
{
    (void)state;
    char path[128];
    node(&world.op, 0, "add %s", &fresh, "is admitted");
    snprintf(path, sizeof path, "%s/nodes.conf", world.server.directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("removed = {'x'}\ncomplete = true\n", file);
    assert_int_equal(fclose(file), 0);
    grantor_process_signal(&world.server, SIGHUP);
    grantor_process_await_log(&world.server, "event=not-reloaded", "nodes.conf:1: removed");
    grantor_client_connect(&fresh, world.server.quic, false); /* what counted before still does */
    node(&world.op, REFUSED_EXIT, "remove %s", &fresh, "SIGHUP");
    assert_int_equal(remove(path), 0);
    reload();
    grantor_client_await_close(&fresh); /* it was in that file only */
}

static void mistakes_of_the_command_line_are_told_at_once(void **state)
{
    (void)state;
    node(&world.op, 64, "add", NULL, "add needs its ID");
    node(&world.op, 64, "add xyz", NULL, "64 lower-case hexadecimal digits");
    node(&world.op, 64, "remove %s --role x", &world.a, "does not belong to remove");
    node(&world.op, 64, "role %s", &world.a, "--add ROLE or --drop ROLE");
    node(&world.op, 64, "requires steal --no-role", NULL, "no verb");
    node(&world.op, 64, "requires acquire", NULL, "--no-role");
    node(&world.op, 64, "list --store sqlite:/tmp/x", NULL, "aster://");
    node(&world.op, 64, "role %s --add x --drop x", &world.a, "choose one");
}

static int open_memory(void **state)
{
    (void)state;
    open_with("none");
    return 0;
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)
#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, open_memory, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_node_added_at_run_time_is_let_in_at_once_and_after_a_kill_and_a_reload),
        EACH(a_role_gives_revoke_and_its_withdrawal_takes_it_away),
        EACH(a_withdrawn_role_leaves_the_fence_valid_and_says_so),
        EACH(a_removed_node_is_cut_off_and_stays_out_with_its_lease_running),
        EACH(remove_with_revoke_fences_and_only_then_withdraws_admission),
        EACH(an_operator_bound_to_a_prefix_fences_everything_that_it_removes),
        EACH(a_removed_node_that_waits_is_skipped),
        EACH(who_is_no_operator_is_refused_audited_and_learns_nothing),
        EACH(two_operators_at_once_lose_nothing_of_each_other),
        EACH(a_change_that_cannot_be_stored_is_refused_and_changes_nothing),
        IN_MEMORY(without_a_place_to_keep_it_no_change_is_made),
        EACH(a_damaged_file_of_changes_stops_a_start_and_a_reload_with_its_line),
        EACH(mistakes_of_the_command_line_are_told_at_once),
    };
    int failed = cmocka_run_group_tests_name("journal", tests, NULL, NULL);
    journal = NULL;
    return failed + cmocka_run_group_tests_name("shared file", tests, NULL, NULL);
}
