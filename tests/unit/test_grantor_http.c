/* The HTTP port over a store of the test's own: what it says while the server drains, fails or is busy. */
#include "support/unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "aster/sys/serializer.h"
#include "grantor/http.h"

static struct grantor_counters counters;
static struct grantor_gauges gauges;
static struct aster_serializer *store;
static struct grantor_http *http;
static uint16_t port;
static struct aster_error error;
static sem_t entered;
static sem_t leave;

static void measure(struct grantor_gauges *result, void *user)
{
    (void)user;
    *result = gauges;
}

/* A store whose list waits until the test lets it go. */
static void submit(void *self, struct aster_request *request)
{
    (void)self;
    request->complete(request, ASTER_ERR_IO, NULL, NULL);
}

static void nothing(void *self)
{
    (void)self;
}

static aster_status no_wait(void *self, int64_t timeout_ms)
{
    (void)self;
    (void)timeout_ms;
    return ASTER_OK;
}

static aster_status slow_list(void *self, struct aster_bytes prefix, aster_visit_row visit, void *user,
                              struct aster_error *detail)
{
    (void)self;
    (void)prefix;
    (void)visit;
    (void)user;
    (void)detail;
    sem_post(&entered);
    sem_wait(&leave);
    return ASTER_OK;
}

static const struct aster_serializer_ops ops = {.struct_size = sizeof ops,
                                                .name = "slow",
                                                .submit = submit,
                                                .close = nothing,
                                                .wait = no_wait,
                                                .destroy = nothing,
                                                .list = slow_list};

/* A port that was free a moment ago. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static int open_all(void **state)
{
    (void)state;
    const struct grantor_http_source *source;
    char text[32];
    memset(&gauges, 0, sizeof gauges);
    memset(&counters, 0, sizeof counters);
    sem_init(&entered, 0, 0);
    sem_init(&leave, 0, 0);
    assert_int_equal(aster_serializer_create(&ops, NULL, NULL, &store, &error), ASTER_OK);
    source = &(const struct grantor_http_source){&counters, store, measure, NULL};
    port = free_port();
    snprintf(text, sizeof text, "127.0.0.1:%u", port);
    assert_int_equal(grantor_http_open(text, source, &http, &error), ASTER_OK);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    grantor_http_close(http);
    aster_serializer_destroy(store);
    sem_destroy(&entered);
    sem_destroy(&leave);
    return 0;
}

/* The status of one answer; its text is in `answer`. */
static int fetch(const char *path, char answer[2048])
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[128];
    size_t used = 0;
    ssize_t got = 0;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    while (used < 2047 && (got = read(fd, answer + used, 2047 - used)) > 0) {
        used += (size_t)got;
    }
    answer[used] = '\0';
    close(fd);
    assert_true(used > 12);
    return atoi(answer + 9);
}

static void a_server_that_drains_is_alive_and_not_ready(void **state)
{
    (void)state;
    char answer[2048];
    assert_int_equal(fetch("/readyz", answer), 200);
    gauges.draining = true;
    assert_int_equal(fetch("/readyz", answer), 503);
    assert_non_null(strstr(answer, "\r\n\r\ndraining\n"));
    assert_int_equal(fetch("/livez", answer), 200);
}

static void a_store_that_fails_is_not_ready_until_it_has_stored_something(void **state)
{
    (void)state;
    char answer[2048];
    struct aster_decision granted = {.struct_size = sizeof granted, .outcome = ASTER_GRANTED};
    struct aster_decision denied = {.struct_size = sizeof denied, .outcome = ASTER_DENIED};
    grantor_count_decision(&counters, ASTER_OP_ACQUIRE, ASTER_ERR_TIMEOUT, NULL); /* not the store's fault */
    assert_int_equal(fetch("/readyz", answer), 200);
    grantor_count_decision(&counters, ASTER_OP_ACQUIRE, ASTER_ERR_IO, NULL);
    grantor_count_decision(&counters, ASTER_OP_RENEW, ASTER_OK, &granted); /* these touch no disk */
    grantor_count_decision(&counters, ASTER_OP_ACQUIRE, ASTER_OK, &denied);
    assert_int_equal(fetch("/readyz", answer), 503);
    assert_non_null(strstr(answer, "the store fails"));
    grantor_count_decision(&counters, ASTER_OP_RELEASE, ASTER_OK, &granted);
    assert_int_equal(fetch("/readyz", answer), 200);
}

static void *list(void *argument)
{
    char answer[2048];
    (void)argument;
    return (void *)(intptr_t)fetch("/api/v1/leases", answer);
}

static void slow_reads_are_few_and_do_not_delay_health(void **state)
{
    (void)state;
    char answer[2048];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, list, NULL), 0);
        sem_wait(&entered);
    }
    assert_int_equal(fetch("/api/v1/leases", answer), 503);
    assert_non_null(strstr(answer, "Retry-After: 1"));
    assert_non_null(strstr(answer, "{\"error\":\"2 reads run already: ask again\"}"));
    assert_int_equal(fetch("/livez", answer), 200);
    assert_int_equal(fetch("/metrics", answer), 200);
    for (int i = 0; i < 2; i++) {
        sem_post(&leave);
    }
    for (int i = 0; i < 2; i++) {
        void *code = NULL;
        assert_int_equal(pthread_join(threads[i], &code), 0);
        assert_int_equal((intptr_t)code, 200);
    }
    sem_post(&leave);
    assert_int_equal(fetch("/api/v1/leases", answer), 200);
    assert_int_equal(fetch("/api/v1/history", answer), 501);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_server_that_drains_is_alive_and_not_ready),
        EACH(a_store_that_fails_is_not_ready_until_it_has_stored_something),
        EACH(slow_reads_are_few_and_do_not_delay_health),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
