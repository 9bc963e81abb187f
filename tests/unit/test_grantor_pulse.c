/* The watchdog is fed by the network thread itself: when that hangs, the manager hears nothing. */
#include "support/unit.h"

#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "grantor/pulse.h"
#include "platform/service.h"

#define BEAT_MS 50
#define PATIENCE_MS 20000

static int manager;
static char path[64];
static struct grantor_state server;
static struct aster_error error;

static int open_all(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "/tmp/aster-notify-%d", getpid());
    unlink(path);
    memcpy(address.sun_path, path, strlen(path));
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager, (const struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    memset(&server, 0, sizeof server);
    assert_int_equal(aster_loop_create("test", &server.loop, &error), ASTER_OK);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    aster_loop_destroy(server.loop);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    close(manager);
    unlink(path);
    return 0;
}

static bool hears(int timeout_ms, char text[256])
{
    struct pollfd poll_fd = {manager, POLLIN, 0};
    ssize_t got = poll(&poll_fd, 1, timeout_ms) == 1 ? recv(manager, text, 255, 0) : 0;
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

struct hang {
    struct aster_task task;
    sem_t begun;
    sem_t end;
};

static void hang(struct aster_task *task)
{
    struct hang *hanging = (struct hang *)(void *)task;
    sem_post(&hanging->begun);
    sem_wait(&hanging->end);
}

static void a_network_thread_that_hangs_is_not_covered_up(void **state)
{
    (void)state;
    char text[256];
    struct grantor_pulse *pulse = NULL;
    struct hang hanging = {.task = {NULL, hang}};
    sem_init(&hanging.begun, 0, 0);
    sem_init(&hanging.end, 0, 0);
    setenv("WATCHDOG_USEC", "100000", 1); /* a beat each 50 ms */
    assert_int_equal(grantor_pulse_start(&server, &pulse, &error), ASTER_OK);
    assert_non_null(pulse);
    assert_true(hears(PATIENCE_MS, text));
    assert_string_equal(text, "WATCHDOG=1\nSTATUS=Serving, 0 operations in flight");
    assert_true(hears(PATIENCE_MS, text));
    aster_loop_post(server.loop, &hanging.task);
    sem_wait(&hanging.begun);
    while (hears(0, text)) { /* from before */
    }
    assert_false(hears(6 * BEAT_MS, text));
    sem_post(&hanging.end);
    assert_true(hears(PATIENCE_MS, text));
    grantor_pulse_stop(pulse);
    while (hears(0, text)) {
    }
    assert_false(hears(3 * BEAT_MS, text));
    sem_destroy(&hanging.begun);
    sem_destroy(&hanging.end);
}

static void nobody_is_told_who_did_not_ask(void **state)
{
    (void)state;
    struct grantor_pulse *pulse = NULL;
    static const char *const not_watched[] = {"", "0", "-5", "12x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof not_watched / sizeof not_watched[0]; i++) {
        setenv("WATCHDOG_USEC", not_watched[i], 1);
        assert_int_equal(aster_service_watchdog_ns(), 0);
        assert_int_equal(grantor_pulse_start(&server, &pulse, &error), ASTER_OK);
        assert_null(pulse);
    }
    unsetenv("WATCHDOG_USEC");
    assert_int_equal(aster_service_watchdog_ns(), 0);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_network_thread_that_hangs_is_not_covered_up),
        EACH(nobody_is_told_who_did_not_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
