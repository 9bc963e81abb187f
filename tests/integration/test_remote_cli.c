/* `aster` against a grantor: the same commands, held by the node's own identity. */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "support/remote_grantor.h"

static struct remote_grantor grantor;
static struct remote_client node; /* its files are what --node names */
static char output[16384];

static int open_all(void **state)
{
    char store[512];
    char address[ASTER_ADDRESS_TEXT_MAX];
    (void)state;
    remote_grantor_init(&grantor, NULL);
    remote_grantor_start(&grantor, REMOTE_QUIC | REMOTE_TCP, 0);
    remote_client_init(&node);
    snprintf(store, sizeof store, "aster://%s@%s", grantor.id, aster_address_text(&grantor.bound, address));
    setenv("ASTER_STORE", store, 1);
    setenv("ASTER_NODE", node.directory, 1);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    remote_client_fini(&node);
    remote_grantor_fini(&grantor);
    return 0;
}

/* Run a shell command with $ASTER_BIN in it; its exit status, and what it printed in `output`. */
static int shell(const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "(%s) 2>&1", command);
    FILE *pipe = popen(line, "r");
    assert_non_null(pipe);
    size_t size = fread(output, 1, sizeof output - 1, pipe);
    output[size] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

static void expect(int status, const char *command, const char *text)
{
    int got = shell(command);
    if (got != status || strstr(output, text) == NULL) {
        fail_msg("%s: exit status %d, expected %d with \"%s\" in: %s", command, got, status, text, output);
    }
}

static void a_command_runs_under_a_lease_of_the_node(void **state)
{
    (void)state;
    expect(0, "$ASTER_BIN run catalog -- sh -c 'echo $ASTER_EPOCH $ASTER_HOLDER $ASTER_STORE'", node.id);
    assert_int_equal(strncmp(output, "1 ", 2), 0);
    assert_non_null(strstr(output, grantor.id));
    expect(0, "$ASTER_BIN inspect catalog --json", "\"epoch\":2");
    expect(0, "$ASTER_BIN history --json", "released");
    expect(0, "$ASTER_BIN list", "catalog");
    expect(0, "$ASTER_BIN doctor", "aster://");
}

static void a_lease_goes_through_its_life_by_hand(void **state)
{
    (void)state;
    expect(0, "$ASTER_BIN acquire catalog --json", node.id);
    expect(75, "$ASTER_BIN run catalog -- true", "HELD_BY_OTHER");
    char command[512];
    snprintf(command, sizeof command, "printf hello | $ASTER_BIN put catalog --epoch 1 --holder %s", node.id);
    expect(0, command, "");
    expect(0, "$ASTER_BIN get catalog", "hello");
    snprintf(command, sizeof command, "$ASTER_BIN renew catalog --epoch 1 --holder %s", node.id);
    expect(0, command, "");
    snprintf(command, sizeof command, "$ASTER_BIN release catalog --epoch 1 --holder %s", node.id);
    expect(0, command, "");
    expect(64, "$ASTER_BIN acquire catalog --holder somebody", "somebody");
}

static void mistakes_say_what_to_do(void **state)
{
    (void)state;
    expect(78, "$ASTER_BIN list --store aster://127.0.0.1:1", "IDENTITY@127.0.0.1:1");
    expect(78, "$ASTER_BIN list --node /nonexistent", "aster node new");
    expect(69, "$ASTER_BIN list --store aster://$($ASTER_BIN node id)@${ASTER_STORE#*@}", "no grantor can be reached");
    expect(64, "$ASTER_BIN schema verify sqlite", "sqlite:");
}

static void a_node_is_made_once_and_shown(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command, "$ASTER_BIN node new w1 --node %s/made", node.directory);
    expect(0, command, "");
    output[64] = '\0';
    char id[65];
    memcpy(id, output, sizeof id);
    expect(64, command, "key");
    snprintf(command, sizeof command, "$ASTER_BIN node show --node %s/made", node.directory);
    expect(0, command, id);
    assert_non_null(strstr(output, "w1"));
    snprintf(command, sizeof command, "$ASTER_BIN node id --json --node %s/made", node.directory);
    expect(0, command, id);
    expect(64, "$ASTER_BIN node new", "name");
    expect(64, "$ASTER_BIN node paint", "new NAME");
    snprintf(command, sizeof command, "%s/made", node.directory);
    remote_remove_node(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_command_runs_under_a_lease_of_the_node),
        TEST(a_lease_goes_through_its_life_by_hand),
        TEST(mistakes_say_what_to_do),
        TEST(a_node_is_made_once_and_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
