/* The HTTP port, on a loopback address because nobody is asked who he is there: /metrics, /livez, /readyz, and reads of
 * leases and history as JSON under /api/v1. */
#ifndef GRANTOR_HTTP_H
#define GRANTOR_HTTP_H

#include "aster/serializer.h"
#include "grantor/metrics.h"
#include "platform/address.h"

struct grantor_http;

struct grantor_http_source {
    const struct grantor_counters *counters;
    struct aster_serializer *serializer;
    void (*measure)(struct grantor_gauges *gauges, void *user); /* any thread; may block for a round of the loop */
    void *user;
};

/* The loopback address that is meant. Errors: ASTER_ERR_INVALID (no address, or of no loopback), ASTER_ERR_UNREACHABLE
 * (no such host). */
aster_status grantor_http_resolve(const char *text, struct aster_address *address, struct aster_error *error);

/* Listen at `address`, "127.0.0.1:9400" or another loopback address. Each connection has a thread, at most 16; reads
 * run on it, at most two at once, so that health is always answered. Errors: ASTER_ERR_INVALID (not a loopback
 * address), ASTER_ERR_IO, ASTER_ERR_NOMEM. */
aster_status grantor_http_open(const char *address, const struct grantor_http_source *source,
                               struct grantor_http **http, struct aster_error *error);
/* Waits for the reads in flight. NULL is legal. */
void grantor_http_close(struct grantor_http *http);

#endif
