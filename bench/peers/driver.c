#include "driver.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define EVENTS 256

struct client *clients;
void (*driver_step)(struct client *client, enum outcome outcome);

static int epoll_fd = -1;
static bool quitting;
/* A peer's threads report while the main thread reads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct timespec to_timespec(int64_t ns)
{
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

_Noreturn void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", peer.name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void driver_begin(struct client *client, enum action action)
{
    enum outcome outcome = OUTCOME_ERROR;
    client->action = action;
    client->action_ns = now_ns();
    switch (action) {
    case ACTION_ACQUIRE:
        outcome = peer.acquire(client);
        break;
    case ACTION_RELEASE:
        outcome = peer.release(client);
        break;
    case ACTION_RENEW:
        outcome = peer.renew(client);
        break;
    case ACTION_NONE:
        break;
    }
    if (outcome != OUTCOME_PENDING) {
        die("client %d: action %d could not be sent", client->id, (int)action);
    }
}

void driver_report(struct client *client, enum outcome outcome)
{
    pthread_mutex_lock(&lock);
    if (client->awaited) {
        client->awaited = false;
        client->outcome = outcome;
        pthread_cond_signal(&changed);
    } else {
        driver_step(client, outcome);
    }
    pthread_mutex_unlock(&lock);
}

static void await_event(struct client *client, int64_t until_ns)
{
    int64_t left_ns = until_ns - now_ns();
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};
    poll(&readable, 1, left_ns > 0 ? (int)(left_ns / 1000000) + 1 : 0);
    enum outcome outcome = peer.io(client);
    if (outcome != OUTCOME_PENDING) {
        driver_report(client, outcome);
    }
}

enum outcome driver_await(struct client *client, int timeout_ms)
{
    int64_t until_ns = now_ns() + (int64_t)timeout_ms * 1000000;
    struct timespec until = to_timespec(until_ns);
    while (peer.io != NULL && client->awaited && now_ns() < until_ns) {
        await_event(client, until_ns);
    }
    pthread_mutex_lock(&lock);
    while (client->awaited && pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT) {
    }
    enum outcome outcome = client->awaited ? OUTCOME_PENDING : client->outcome;
    pthread_mutex_unlock(&lock);
    return outcome;
}

void driver_call(void (*function)(void *argument), void *argument)
{
    if (peer.call != NULL) {
        peer.call(function, argument);
    } else {
        function(argument);
    }
}

static void serve_own(int64_t until_ns)
{
    struct timespec until = to_timespec(until_ns);
    pthread_mutex_lock(&lock);
    while (!quitting && pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&lock);
}

static void watch_clients(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < options.clients; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, clients[i].fd, &event) != 0) {
            die("cannot watch a socket");
        }
    }
}

void driver_serve(int64_t until_ns)
{
    struct epoll_event events[EVENTS];
    if (peer.io == NULL) {
        serve_own(until_ns);
        return;
    }
    if (epoll_fd < 0) {
        watch_clients();
    }
    for (int64_t left_ns; !quitting && (left_ns = until_ns - now_ns()) > 0;) {
        struct timespec timeout = to_timespec(left_ns);
        int count = epoll_pwait2(epoll_fd, events, EVENTS, &timeout, NULL);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            enum outcome outcome = peer.io(client);
            if (outcome != OUTCOME_PENDING) {
                driver_report(client, outcome);
            }
        }
    }
}

/* Called from a step, under the lock. */
void driver_quit(void)
{
    quitting = true;
    pthread_cond_signal(&changed);
}

__attribute__((constructor)) static void init(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}
