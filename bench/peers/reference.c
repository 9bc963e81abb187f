/* What the machine can do, without any service:
 *   reference fsync DIRECTORY SECONDS   appends of 4 KiB, each followed by fdatasync
 *   reference udp SECONDS [CPU CPU]     round trips of 40 bytes between two processes that block in recvfrom, one in
 *                                       flight: what a request costs that does nothing. Most of it is waking up; two
 *                                       processes on one CPU hand over to each other without that, which tells
 *                                       nothing about a server on a CPU of its own. With CPUs each is pinned to one.
 * One line of JSON. */
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

#define PAGE 4096
#define REQUEST 40

static struct histogram latencies;

static int64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void report(const char *what, double seconds)
{
    printf("{\"reference\":\"%s\",\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f}\n", what,
           (double)latencies.count / seconds, histogram_us(&latencies, .5), histogram_us(&latencies, .99));
}

static void measure_fsync(const char *directory, double seconds)
{
    char path[PAGE];
    char page[PAGE];
    memset(page, 'x', sizeof page);
    snprintf(path, sizeof path, "%s/reference.%d", directory, (int)getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0) {
        fail(path);
    }
    unlink(path);
    int64_t start = clock_ns();
    int64_t before = start;
    while ((double)(before - start) < seconds * 1e9) {
        if (write(fd, page, sizeof page) != PAGE || fdatasync(fd) != 0) {
            fail("fdatasync");
        }
        int64_t now = clock_ns();
        histogram_add(&latencies, now - before);
        before = now;
    }
    report("fdatasync", (double)(before - start) / 1e9);
}

static void pin(const char *cpu)
{
    if (cpu != NULL) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)strtol(cpu, NULL, 10), &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0) {
            fail("cannot pin to a CPU");
        }
    }
}

static void echo(int fd)
{
    unsigned char data[REQUEST];
    struct sockaddr_in from;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        socklen_t size = sizeof from;
        ssize_t got = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &size);
        if (got < 0 || sendto(fd, data, (size_t)got, 0, (struct sockaddr *)&from, size) != got) {
            _exit(1);
        }
    }
}

static void measure_udp(double seconds, const char *near_cpu, const char *far_cpu)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    unsigned char data[REQUEST] = {0};
    int far = socket(AF_INET, SOCK_DGRAM, 0);
    int near = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(far, (struct sockaddr *)&address, size) != 0 ||
        getsockname(far, (struct sockaddr *)&address, &size) != 0 ||
        connect(near, (struct sockaddr *)&address, size) != 0) {
        fail("cannot open sockets");
    }
    pid_t child = fork();
    if (child == 0) {
        pin(far_cpu);
        echo(far);
    }
    pin(near_cpu);
    int64_t start = clock_ns();
    int64_t before = start;
    while ((double)(before - start) < seconds * 1e9) {
        if (send(near, data, sizeof data, 0) < 0 || recv(near, data, sizeof data, 0) < 0) {
            fail("lost a datagram on loopback");
        }
        int64_t now = clock_ns();
        histogram_add(&latencies, now - before);
        before = now;
    }
    kill(child, SIGKILL);
    report("udp", (double)(before - start) / 1e9);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "fsync") == 0) {
        measure_fsync(arguments[2], strtod(arguments[3], NULL));
    } else if ((count == 3 || count == 5) && strcmp(arguments[1], "udp") == 0) {
        measure_udp(strtod(arguments[2], NULL), count == 5 ? arguments[3] : NULL, count == 5 ? arguments[4] : NULL);
    } else {
        fprintf(stderr, "usage: reference fsync DIRECTORY SECONDS | reference udp SECONDS [CPU CPU]\n");
        return 64;
    }
    return 0;
}
