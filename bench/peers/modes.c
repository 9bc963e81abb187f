/* The modes of a driver:
 *   cycle    each client acquires a resource of its own, releases it, and again; latencies are of the whole cycle
 *   renew    each client holds its leases and renews them
 *   contend  one resource for all: acquire, release at once. A handover is a grant to another client than the last
 *            one's; its latency runs from the sending of the release to the answer of the next acquire
 *   load     hold the resources with the numbers from..to: for memory figures
 *   hold     acquire, say so, renew each ttl/3 and note in the progress file when a renewal was sent
 *   wait     say so, acquire, say when */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"
#include "histogram.h"
#include "usage.h"

#define PATIENCE_MS 60000
#define WAIT_PATIENCE_MS 600000

struct driver_options options = {.mode = "cycle",
                                 .variant = "",
                                 .tag = "",
                                 .resource = "hot",
                                 .clients = 1,
                                 .leases = 1,
                                 .ttl_ms = 10000,
                                 .seconds = 4,
                                 .warm_seconds = 1};

static int64_t begin_ns; /* of what counts */
static int64_t end_ns;
static uint64_t done;
static uint64_t refused;
static struct histogram latencies;

static bool counts(int64_t at_ns)
{
    return at_ns >= begin_ns && at_ns < end_ns;
}

static void must_work(const struct client *client, enum outcome outcome)
{
    if (outcome == OUTCOME_ERROR) {
        die("client %d: action %d failed", client->id, (int)client->action);
    }
    refused += outcome == OUTCOME_REFUSED;
}

static void step_cycle(struct client *client, enum outcome outcome)
{
    int64_t now = now_ns();
    must_work(client, outcome);
    if (outcome == OUTCOME_REFUSED || now >= end_ns) {
        if (now < end_ns) {
            driver_begin(client, ACTION_ACQUIRE);
        }
    } else if (client->action == ACTION_ACQUIRE) {
        client->cycle_ns = client->action_ns;
        driver_begin(client, ACTION_RELEASE);
    } else {
        done += counts(now);
        if (client->cycle_ns >= begin_ns) {
            histogram_add(&latencies, now - client->cycle_ns);
        }
        driver_begin(client, ACTION_ACQUIRE);
    }
}

static void step_renew(struct client *client, enum outcome outcome)
{
    int64_t now = now_ns();
    must_work(client, outcome);
    if (outcome == OUTCOME_REFUSED) {
        die("client %d lost a lease that it renews", client->id);
    }
    done += counts(now) ? (uint64_t)options.leases : 0;
    if (client->action_ns >= begin_ns && now < end_ns) {
        histogram_add(&latencies, now - client->action_ns);
    }
    if (now < end_ns) {
        driver_begin(client, ACTION_RENEW);
    }
}

static struct client *last_holder;
static int64_t released_ns;
static uint64_t handovers;

static void step_contend(struct client *client, enum outcome outcome)
{
    int64_t now = now_ns();
    must_work(client, outcome);
    if (now >= end_ns) {
        return;
    }
    if (outcome == OUTCOME_REFUSED || client->action == ACTION_RELEASE) {
        driver_begin(client, ACTION_ACQUIRE);
        return;
    }
    if (counts(now)) {
        done++;
        client->wins++;
        if (last_holder != client) {
            handovers++;
            histogram_add(&latencies, now - released_ns);
        }
    }
    last_holder = client;
    released_ns = now;
    driver_begin(client, ACTION_RELEASE);
}

static long next_number;
static long loaded;

static void load_next(struct client *client)
{
    snprintf(client->resource, sizeof client->resource, "lease/%014ld", next_number++); /* 20 bytes */
    driver_begin(client, ACTION_ACQUIRE);
}

static void step_load(struct client *client, enum outcome outcome)
{
    must_work(client, outcome);
    loaded++;
    if (next_number < options.to) {
        load_next(client);
    } else if (loaded == options.to - options.from) {
        driver_quit();
    }
}

static void open_clients(void)
{
    bool own = strcmp(options.mode, "cycle") == 0 || strcmp(options.mode, "renew") == 0;
    clients = calloc((size_t)options.clients, sizeof *clients);
    for (int i = 0; clients != NULL && i < options.clients; i++) {
        clients[i].id = i;
        if (own) { /* no leftovers of an earlier run */
            snprintf(clients[i].resource, sizeof clients[i].resource, "res-%d-%d", (int)getpid(), i);
        } else {
            snprintf(clients[i].resource, sizeof clients[i].resource, "%s", options.resource);
        }
        if (peer.open(&clients[i]) != OUTCOME_OK) {
            die("client %d cannot connect", i);
        }
    }
}

static void begin_awaited(void *argument)
{
    struct client *client = argument;
    driver_begin(client, client->action);
}

static enum outcome perform(struct client *client, enum action action, int timeout_ms)
{
    client->awaited = true;
    client->action = action;
    driver_call(begin_awaited, client);
    return driver_await(client, timeout_ms);
}

static void acquire(struct client *client, int timeout_ms)
{
    enum outcome outcome;
    while ((outcome = perform(client, ACTION_ACQUIRE, timeout_ms)) == OUTCOME_REFUSED) {
        usleep(1000); /* a service that has no waiting of its own */
    }
    if (outcome != OUTCOME_OK) {
        die("%s could not be acquired", client->resource);
    }
}

/* What the process that kills a holder reads; CLOCK_MONOTONIC is the same clock in both. */
struct progress {
    _Atomic int64_t sending_ns; /* of the last request */
    _Atomic int64_t sent_ns;    /* of the last that was answered */
};

static int run_hold(void)
{
    int fd = open(options.progress != NULL ? options.progress : "", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(struct progress)) != 0) {
        die("hold needs --progress FILE");
    }
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (progress == MAP_FAILED) {
        die("cannot map %s", options.progress);
    }
    progress->sending_ns = now_ns();
    acquire(&clients[0], PATIENCE_MS);
    for (bool told = false;;) {
        progress->sent_ns = progress->sending_ns;
        if (!told) {
            printf("HELD\n");
            fflush(stdout);
            told = true;
        }
        usleep((useconds_t)options.ttl_ms * 1000 / 3);
        progress->sending_ns = now_ns();
        if (perform(&clients[0], ACTION_RENEW, PATIENCE_MS) != OUTCOME_OK) {
            die("the lease was lost while its holder lived");
        }
    }
}

static int run_wait(void)
{
    printf("WAITING\n");
    fflush(stdout);
    acquire(&clients[0], WAIT_PATIENCE_MS);
    printf("GOT %lld\n", (long long)now_ns());
    fflush(stdout);
    return perform(&clients[0], ACTION_RELEASE, PATIENCE_MS) == OUTCOME_OK ? 0 : 1;
}

static void begin_all(void *argument)
{
    const enum action *action = argument;
    for (int i = 0; i < options.clients; i++) {
        if (driver_step != step_load) {
            driver_begin(&clients[i], *action);
        } else if (next_number < options.to) {
            load_next(&clients[i]);
        }
    }
}

static void nothing(void *argument)
{
    (void)argument;
}

static int run_load(void)
{
    enum action action = ACTION_ACQUIRE;
    next_number = options.from;
    int64_t start = now_ns();
    driver_call(begin_all, &action);
    driver_serve(INT64_MAX / 2);
    printf("{\"peer\":\"%s\",\"mode\":\"load\",\"leases\":%ld,\"rate\":%.0f}\n", peer.name, loaded,
           (double)loaded * 1e9 / (double)(now_ns() - start));
    return 0;
}

static void print_shares(double seconds)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (int i = 0; i < options.clients; i++) {
        least = clients[i].wins < least ? clients[i].wins : least;
        most = clients[i].wins > most ? clients[i].wins : most;
    }
    printf(",\"handovers\":%.1f,\"min_wins\":%llu,\"max_wins\":%llu", (double)handovers / seconds,
           (unsigned long long)least, (unsigned long long)most);
}

static int run_measured(enum action first)
{
    int64_t start = now_ns();
    begin_ns = start + (int64_t)(options.warm_seconds * 1e9);
    end_ns = begin_ns + (int64_t)(options.seconds * 1e9);
    driver_call(begin_all, &first);
    driver_serve(begin_ns);
    double self = usage_self();
    double servers = usage_servers(options.server_pids);
    double machine = usage_machine();
    driver_serve(end_ns);
    double seconds = options.seconds;
    self = (usage_self() - self) / seconds;
    servers = (usage_servers(options.server_pids) - servers) / seconds;
    machine = (usage_machine() - machine) / seconds;
    driver_call(nothing, NULL); /* where the figures are written; nothing is begun any more */
    printf("{\"peer\":\"%s\",\"tag\":\"%s\",\"variant\":\"%s\",\"mode\":\"%s\",\"clients\":%d,\"leases\":%d,"
           "\"seconds\":%.2f,\"done\":%llu,\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,"
           "\"refused\":%llu,\"client_cpu\":%.2f,\"server_cpu\":%.2f,\"other_cpu\":%.2f",
           peer.name, options.tag, options.variant, options.mode, options.clients, options.leases, seconds,
           (unsigned long long)done, (double)done / seconds, histogram_us(&latencies, .5),
           histogram_us(&latencies, .99), (double)latencies.max_ns / 1e3, (unsigned long long)refused, self, servers,
           machine - self - servers);
    if (driver_step == step_contend) {
        print_shares(seconds);
    }
    printf("}\n");
    return done > 0 ? 0 : 1;
}

static void parse(const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **text;
        int *number;
        double *real;
        long *large;
    } known[] = {
        {"--mode", &options.mode, NULL, NULL, NULL},         {"--variant", &options.variant, NULL, NULL, NULL},
        {"--tag", &options.tag, NULL, NULL, NULL},           {"--resource", &options.resource, NULL, NULL, NULL},
        {"--progress", &options.progress, NULL, NULL, NULL}, {"--server-pids", &options.server_pids, NULL, NULL, NULL},
        {"--port", NULL, &options.port, NULL, NULL},         {"--clients", NULL, &options.clients, NULL, NULL},
        {"--leases", NULL, &options.leases, NULL, NULL},     {"--ttl-ms", NULL, &options.ttl_ms, NULL, NULL},
        {"--seconds", NULL, NULL, &options.seconds, NULL},   {"--warm", NULL, NULL, &options.warm_seconds, NULL},
        {"--from", NULL, NULL, NULL, &options.from},         {"--to", NULL, NULL, NULL, &options.to}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].key, key) != 0) {
            continue;
        }
        if (known[i].text != NULL) {
            *known[i].text = value;
        } else if (known[i].number != NULL) {
            *known[i].number = (int)strtol(value, NULL, 10);
        } else if (known[i].real != NULL) {
            *known[i].real = strtod(value, NULL);
        } else {
            *known[i].large = strtol(value, NULL, 10);
        }
        return;
    }
    if (peer.option == NULL || !peer.option(key, value)) {
        die("the option %s is unknown", key);
    }
}

static int run_steps(void)
{
    if (strcmp(options.mode, "load") == 0) {
        driver_step = step_load;
        return run_load();
    }
    if (strcmp(options.mode, "renew") == 0) {
        driver_step = step_renew;
        for (int i = 0; i < options.clients; i++) {
            acquire(&clients[i], PATIENCE_MS);
        }
        return run_measured(ACTION_RENEW);
    }
    if (strcmp(options.mode, "cycle") != 0 && strcmp(options.mode, "contend") != 0) {
        die("the mode %s is unknown", options.mode);
    }
    driver_step = options.mode[1] == 'y' ? step_cycle : step_contend;
    return run_measured(ACTION_ACQUIRE);
}

int main(int count, char **arguments)
{
    struct rlimit files;
    for (int i = 1; i < count; i += 2) {
        parse(arguments[i], i + 1 < count ? arguments[i + 1] : "");
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    open_clients();
    if (strcmp(options.mode, "hold") == 0) {
        return run_hold();
    }
    if (strcmp(options.mode, "wait") == 0) {
        return run_wait();
    }
    alarm((unsigned)(options.seconds + options.warm_seconds) + 600);
    return run_steps();
}
