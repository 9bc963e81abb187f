/* Building operations and requests, and keeping their answers, in one line each. */
#ifndef SUPPORT_REQUESTS_H
#define SUPPORT_REQUESTS_H

#include "aster/sys/serializer.h"

#define REQUEST_TTL_MS 10000

struct aster_operation op_acquire(const char *resource, const char *candidate, int64_t ttl_ms);
struct aster_operation op_renew(const char *resource, const char *holder, int64_t epoch);
struct aster_operation op_release(const char *resource, const char *holder, int64_t epoch);
struct aster_operation op_revoke(const char *resource, const char *authority);
struct aster_operation op_forget(const char *resource, const char *authority);
struct aster_operation op_inspect(const char *resource);

/* A request and the answer it got. */
struct asked {
    struct aster_request request;
    int answers; /* how often complete() was called */
    aster_status status;
    struct aster_reply reply;
    char message[ASTER_ERROR_MESSAGE_MAX];
};

/* Submit; `asked` must outlive the answer. wait_ms is relative to the serializer's clock, 0 = do not wait. */
void ask(struct aster_serializer *serializer, struct asked *asked, struct aster_operation operation, int64_t wait_ms);
void asked_fini(struct asked *asked);
bool asked_granted(const struct asked *asked);

/* Submit one operation to a serializer that answers at once. Returns the reason (NONE = granted); aborts on failure. */
enum aster_reason decide_now(struct aster_serializer *serializer, struct aster_operation operation, int64_t *epoch);
int64_t acquire_now(struct aster_serializer *serializer, const char *resource, const char *candidate);

#endif
