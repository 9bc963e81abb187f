/* A real asterd, attackers in processes of their own, and two bystanders whose renewals must be on time meanwhile. What
 * the server takes for it, in memory and in descriptors, is bounded. */
#include "support/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aster/sys/clock.h"
#include "support/grantor_flood.h"
#include "support/grantor_world.h"
#include "support/quic_side.h"

#define TTL_MS 6000
#define ON_TIME_MS (TTL_MS / 3) /* when the next renewal would be due */
#define ATTACK_MS 1000
#define DESCRIPTORS_MAX 2300 /* 1024 handshakes, as many that linger, and what is always there */

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_MAX_KB 524288 /* what was freed is kept for a while */
#else
#define MEMORY_MAX_KB 131072
#endif

static struct grantor_world world;
static int64_t epochs[2];

static int open_world(void **state)
{
    (void)state;
    grantor_world_init(&world, "sqlite");
    grantor_world_configure(&world, "", "");
    grantor_world_start(&world);
    epochs[0] = grantor_world_take(&world.a, "quic/bystander", TTL_MS);
    epochs[1] = grantor_world_take(&world.op, "tcp/bystander", TTL_MS);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    grantor_world_fini(&world);
    return 0;
}

static int64_t now_ms(void)
{
    return aster_clock_now_ns(aster_clock_system()) / 1000000;
}

/* "VmHWM" and the like, in kB. */
static long status_of_server(const char *name)
{
    char path[64];
    char line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)world.server.pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtol(line + strlen(name) + 1, NULL, 10);
        }
    }
    fclose(file);
    assert_true(value >= 0);
    return value;
}

static size_t descriptors_of_server(void)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)world.server.pid);
    DIR *entries = opendir(path);
    assert_non_null(entries);
    while (readdir(entries) != NULL) {
        count++;
    }
    closedir(entries);
    return count;
}

/* In clock ticks. */
static unsigned long processor_time_of_server(void)
{
    char path[64];
    char text[1024];
    unsigned long user = 0;
    unsigned long kernel = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)world.server.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    assert_true(size > 0);
    text[size] = '\0';
    const char *at = strrchr(text, ')');
    assert_int_equal(sscanf(at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel), 2);
    return user + kernel;
}

static pid_t attack(const char *kind, const struct grantor_client *as)
{
    char quic[8];
    char tcp[8];
    snprintf(quic, sizeof quic, "%u", world.server.quic);
    snprintf(tcp, sizeof tcp, "%u", world.server.tcp);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "flood", kind, quic, tcp, as->directory, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void end_attack(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* it went on all the time */
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* One renewal of each; how long the slower one took. */
static int64_t renew(void)
{
    struct grantor_client *clients[] = {&world.a, &world.op};
    static const char *const names[] = {"quic/bystander", "tcp/bystander"};
    int64_t longest_ms = 0;
    for (int i = 0; i < 2; i++) {
        int64_t before = now_ms();
        assert_granted(grantor_client_decision(
            clients[i], grantor_client_operate(clients[i], ASTER_OP_RENEW, names[i], epochs[i])));
        int64_t took_ms = now_ms() - before;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    return longest_ms;
}

static void expect_calm_under(const char *kind)
{
    long memory_before = status_of_server("VmRSS:");
    size_t descriptors = 0;
    int64_t longest_ms = 0;
    pid_t attacker = attack(kind, &world.b);
    int64_t until = now_ms() + ATTACK_MS;
    while (now_ms() < until) {
        int64_t took_ms = renew();
        size_t open = descriptors_of_server();
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        descriptors = open > descriptors ? open : descriptors;
        usleep(20000);
    }
    long grown = status_of_server("VmHWM:") - memory_before;
    end_attack(attacker);
    printf("%s: slowest renewal %lld ms, %ld kB more, %zu descriptors\n", kind, (long long)longest_ms, grown,
           descriptors);
    assert_in_range(longest_ms, 0, ON_TIME_MS);
    assert_in_range(grown < 0 ? 0 : grown, 0, MEMORY_MAX_KB);
    assert_in_range(descriptors, 1, DESCRIPTORS_MAX);
}

/* The kernel drops what a flood leaves no room for: so may a try take longer than its handshake's time. */
static void come_in_again(struct grantor_client *client, bool tcp)
{
    uint16_t port = tcp ? world.server.tcp : world.server.quic;
    grantor_client_close(client);
    for (int tries = 0; tries < 5 && !grantor_client_link(client, port, tcp); tries++) {
    }
    grantor_client_greet(client);
}

/* And whoever is admitted gets in meanwhile. */
static void expect_that_others_get_in(const char *kind)
{
    pid_t attacker = attack(kind, &world.b);
    usleep(300000);
    come_in_again(&world.a, false);
    come_in_again(&world.op, true);
    grantor_client_decision(&world.a, grantor_client_operate(&world.a, ASTER_OP_INSPECT, "quic/bystander", 0));
    grantor_client_decision(&world.op, grantor_client_operate(&world.op, ASTER_OP_INSPECT, "tcp/bystander", 0));
    end_attack(attacker);
}

static void a_flood_of_quic_handshakes_leaves_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("initials");
    expect_that_others_get_in("initials");
}

static void a_flood_of_garbage_datagrams_leaves_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("datagrams");
    expect_that_others_get_in("datagrams");
}

static void half_open_connections_leave_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("half-open");
    expect_that_others_get_in("half-open");
}

static void connections_with_garbage_leave_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("garbage");
    expect_that_others_get_in("garbage");
}

static void oversized_frames_leave_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("oversized-quic");
    expect_calm_under("oversized-tcp");
}

static void slow_senders_leave_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("slow-quic");
    expect_calm_under("slow-tcp");
}

static void an_identity_that_floods_requests_leaves_others_in_peace(void **state)
{
    (void)state;
    expect_calm_under("requests-quic");
    expect_calm_under("requests-tcp");
}

/* It is told less, and the events that it would have seen do not pile up. */
static void a_watcher_that_never_reads_leaves_others_in_peace(void **state)
{
    (void)state;
    pid_t events = attack("events", &world.b);
    expect_calm_under("deaf-watcher");
    end_attack(events);
}

static void out_of_descriptors_the_server_neither_spins_nor_shuts_out_who_is_admitted(void **state)
{
    (void)state;
    struct rlimit few = {200, 200};
    assert_int_equal(prlimit(world.server.pid, RLIMIT_NOFILE, &few, NULL), 0);
    pid_t attacker = attack("half-open-once", &world.b);
    while (descriptors_of_server() < 195) {
        usleep(1000);
    }
    unsigned long before = processor_time_of_server();
    usleep(1000000);
    unsigned long used = processor_time_of_server() - before;
    assert_in_range(used, 0, (unsigned long)sysconf(_SC_CLK_TCK) / 2);
    grantor_client_close(&world.op);
    grantor_client_connect(&world.op, world.server.tcp, true);
    renew();
    end_attack(attacker);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(int count, char **arguments)
{
    if (count == 5) {
        return grantor_flood(arguments[1], (uint16_t)atoi(arguments[2]), (uint16_t)atoi(arguments[3]), arguments[4]);
    }
    const struct CMUnitTest tests[] = {
        EACH(a_flood_of_quic_handshakes_leaves_others_in_peace),
        EACH(a_flood_of_garbage_datagrams_leaves_others_in_peace),
        EACH(half_open_connections_leave_others_in_peace),
        EACH(connections_with_garbage_leave_others_in_peace),
        EACH(oversized_frames_leave_others_in_peace),
        EACH(slow_senders_leave_others_in_peace),
        EACH(an_identity_that_floods_requests_leaves_others_in_peace),
        EACH(a_watcher_that_never_reads_leaves_others_in_peace),
        EACH(out_of_descriptors_the_server_neither_spins_nor_shuts_out_who_is_admitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
