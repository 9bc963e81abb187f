/* One process that plays N clients of one lease service, in the same way for every service: what differs is in a
 * struct peer, one program per service. The driver does modes, timing, statistics and output (one line of JSON).
 *
 * To add a service: write peer_NAME.c with `const struct peer peer = {...}` and list it in CMakeLists.txt. */
#ifndef BENCH_DRIVER_H
#define BENCH_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum outcome { OUTCOME_ERROR = -1, OUTCOME_PENDING = 0, OUTCOME_OK = 1, OUTCOME_REFUSED = 2 };
enum action { ACTION_NONE, ACTION_ACQUIRE, ACTION_RELEASE, ACTION_RENEW };

struct client {
    int id;
    int fd;            /* polled for reading, where the driver does it */
    void *own;         /* the peer's */
    char resource[96]; /* what this client works on */
    int64_t epoch;     /* token of the last acquire, set by the peer */
    enum action action;
    bool awaited; /* the driver waits for this one outcome */
    enum outcome outcome;
    int64_t action_ns; /* when it was begun */
    int64_t cycle_ns;
    uint64_t wins;
};

struct peer {
    const char *name;
    bool (*option)(const char *key, const char *value); /* NULL: none of its own */
    enum outcome (*open)(struct client *client);        /* blocks; prepares client->resource */
    /* Begin; PENDING or ERROR. The outcome comes from io(), or through driver_report(). */
    enum outcome (*acquire)(struct client *client);
    enum outcome (*renew)(struct client *client);
    enum outcome (*release)(struct client *client);
    enum outcome (*io)(struct client *client); /* client->fd is readable; NULL: the peer has threads of its own */
    /* With threads of its own: run `function` where actions may be begun, and wait. */
    void (*call)(void (*function)(void *argument), void *argument);
};
extern const struct peer peer;

struct driver_options {
    const char *mode;
    const char *variant;
    const char *tag;
    const char *resource;
    const char *progress; /* hold: a file that is shared with who kills us */
    const char *server_pids;
    int port;
    int clients;
    int leases; /* per client, renewed together */
    int ttl_ms;
    int retry_us;
    double seconds;
    double warm_seconds;
    long from; /* load: numbers of resources */
    long to;
};
extern struct driver_options options;

int64_t now_ns(void);
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Begin an action. Where the peer has threads: only inside peer.call() or inside driver_report(). */
void driver_begin(struct client *client, enum action action);
/* The action of this client has ended. Any thread. */
void driver_report(struct client *client, enum outcome outcome);
/* Wait for the outcome of what was begun. Not where driver_report() may be called. */
enum outcome driver_await(struct client *client, int timeout_ms);
/* Run what begins actions where it may be begun. */
void driver_call(void (*function)(void *argument), void *argument);
/* Serve the clients until then, or until driver_quit(). */
void driver_serve(int64_t until_ns);
void driver_quit(void);
/* What happens with outcomes that nobody awaits. */
extern void (*driver_step)(struct client *client, enum outcome outcome);
extern struct client *clients;

#endif
