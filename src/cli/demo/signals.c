#include "cli/demo/signals.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

static const int taken[] = {SIGINT, SIGTERM, SIGHUP};
#define TAKEN (sizeof taken / sizeof taken[0])

static volatile sig_atomic_t arrived;
static struct sigaction before[TAKEN];
static struct sigaction pipe_before;
static sigset_t mask_before;

static void note(int number)
{
    if (arrived == 0) {
        arrived = number;
    }
}

void aster_demo_signals_take(void)
{
    arrived = 0;
    sigset_t blocked;
    sigemptyset(&blocked);
    for (size_t i = 0; i < TAKEN; i++) {
        sigaddset(&blocked, taken[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &mask_before);
    struct sigaction action = {.sa_handler = note};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TAKEN; i++) {
        sigaction(taken[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) { /* nohup stays in force */
            sigaction(taken[i], &action, NULL);
        }
    }
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &pipe_before);
    action.sa_handler = SIG_DFL; /* inherited as ignored, it would hide how the workers ended */
    sigaction(SIGCHLD, &action, NULL);
}

void aster_demo_signals_restore(void)
{
    for (size_t i = 0; i < TAKEN; i++) {
        sigaction(taken[i], &before[i], NULL);
    }
    sigaction(SIGPIPE, &pipe_before, NULL);
    pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void aster_demo_signals_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    sigset_t mask = mask_before;
    for (size_t i = 0; i < TAKEN; i++) {
        sigdelset(&mask, taken[i]);
    }
    ppoll(fds, count, &(struct timespec){timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000}, &mask);
}

int aster_demo_signal(void)
{
    return arrived;
}
