/* The lease handle: the holder's side. It renews in the background and stops supplying the fence in time.
 *
 * Clocks. After every successful acquire or renew: limit = instant the request was SENT + ttl - margin - ttl * drift,
 * on CLOCK_BOOTTIME. aster_lease_fence() compares at call time, so it stops without any thread having to run, also
 * after SIGSTOP or suspend. The one assumption is that the rates of the holder's and the serializer's clocks differ by
 * less than `drift_ppm`. A pause *between* aster_lease_fence() and the write is covered by the fence itself: hand
 * the fence to the protected resource, which refuses it once someone else was granted.
 *
 * Every function is thread-safe, except that destroy must be the last call on a handle. After fork() the child's copy
 * supplies no fence and sends nothing: calls answer ASTER_ERR_FORKED, destroy only frees. */
#ifndef ASTER_LEASE_H
#define ASTER_LEASE_H

#include "aster/serializer.h"

ASTER_BEGIN_DECLS

struct aster_lease;
struct aster_runtime; /* the threads behind the handles; see aster/sys/runtime.h; NULL = one shared by the process */

enum aster_lease_status {
    ASTER_LEASE_ACQUIRING = 1,       /* only between aster_lease_start() and its answer */
    ASTER_LEASE_HELD = 2,            /* renewing; fence() supplies */
    ASTER_LEASE_RELEASE_PENDING = 3, /* fence() stopped; the release is being sent or retried */
    ASTER_LEASE_RELEASED = 4,        /* released, or given up by drop */
    ASTER_LEASE_FENCED = 5,          /* a definitive denial: someone else's decision ended this lease */
    ASTER_LEASE_LOST = 6,            /* the self-limit passed without a successful renewal */
    ASTER_LEASE_NOT_GRANTED = 7      /* the acquire was denied, failed or was cancelled */
};

enum aster_lease_reason {
    ASTER_LEASE_REASON_NONE = 0,
    ASTER_LEASE_REASON_UNREACHABLE = 1, /* renewals failed or were not answered until the limit */
    ASTER_LEASE_REASON_DENIED = 2,      /* someone else holds the row under a newer epoch */
    ASTER_LEASE_REASON_EXPIRED = 3,     /* the serializer saw the ttl pass */
    ASTER_LEASE_REASON_REVOKED = 4,     /* the row was freed by another than the holder */
    ASTER_LEASE_REASON_CLOCK_JUMP = 5,  /* suspend, SIGSTOP or a starved process: no renewal could even be sent */
    ASTER_LEASE_REASON_CLOSED = 6,      /* the serializer was closed, or the handle dropped */
    ASTER_LEASE_REASON_FORKED = 7
};

/* Upper-case names, for example "RELEASE_PENDING", "CLOCK_JUMP". Never NULL. Thread-safe. */
ASTER_API const char *aster_lease_status_name(enum aster_lease_status status);
/* The same for a reason. Never NULL. Thread-safe. */
ASTER_API const char *aster_lease_reason_name(enum aster_lease_reason reason);

#define ASTER_LEASE_TTL_DEFAULT_MS 30000  /* half a minute without its holder is bearable for most work */
#define ASTER_LEASE_DRIFT_DEFAULT_PPM 500 /* a quartz clock is within 100 ppm, NTP slews by 500 at most */
#define ASTER_LEASE_DEFAULT (-1)          /* renew interval: ttl/3; margin: min(1 s, ttl/10) */

/* Called from a dispatcher thread, never from the renewing one: it may be slow, and may call any function here,
 * release and destroy included. Called once per status change, in order; not for a blocking acquire that is not
 * granted, whose handle nobody sees. */
typedef void (*aster_lease_callback)(struct aster_lease *lease, enum aster_lease_status status, void *user);

struct aster_lease_options {
    size_t struct_size;
    int64_t ttl_ms;
    int64_t renew_interval_ms;      /* ASTER_LEASE_DEFAULT or > 0 and < ttl - margin */
    int64_t margin_ms;              /* ASTER_LEASE_DEFAULT or >= 0 and < ttl */
    int64_t drift_ppm;              /* 0..100000 */
    int64_t wait_ms;                /* how long to wait while another holds it; 0 = try once */
    int64_t request_timeout_ms;     /* bound on one acquire attempt that is not waiting in a queue; 0 = 10 s */
    bool take_over_own;             /* also acquire when the holder is the same identity: the earlier incarnation is
                                       fenced by a new epoch */
    aster_lease_callback on_status; /* optional */
    void *user;
    struct aster_runtime *runtime; /* NULL = the process's */
};

#define ASTER_LEASE_OPTIONS_INIT                                                                                       \
    {                                                                                                                  \
        sizeof(struct aster_lease_options), ASTER_LEASE_TTL_DEFAULT_MS, ASTER_LEASE_DEFAULT, ASTER_LEASE_DEFAULT,      \
            ASTER_LEASE_DRIFT_DEFAULT_PPM, 0, 0, false, NULL, NULL, NULL                                               \
    }

/* Acquire and block until granted, denied, failed, or wait_ms has passed. options may be NULL.
 * ASTER_OK with *lease set: granted. ASTER_OK with *lease NULL: denied; `reply` (optional, initialised) says why and
 * who holds it. Errors: ASTER_ERR_INVALID with the inequality and its numbers (ttl, margin, renew interval, names),
 * ASTER_ERR_TIMEOUT, ASTER_ERR_UNREACHABLE, ASTER_ERR_CLOSED, ... A grant that raced with a failure is released. */
ASTER_API aster_status aster_lease_acquire(struct aster_serializer *serializer, struct aster_bytes resource,
                                           struct aster_bytes holder, const struct aster_lease_options *options,
                                           struct aster_lease **lease, struct aster_reply *reply,
                                           struct aster_error *error);

/* The same without blocking: *lease is ACQUIRING at first; on_status tells HELD or NOT_GRANTED. */
ASTER_API aster_status aster_lease_start(struct aster_serializer *serializer, struct aster_bytes resource,
                                         struct aster_bytes holder, const struct aster_lease_options *options,
                                         struct aster_lease **lease, struct aster_error *error);

/* Block until the acquire of aster_lease_start() is answered (timeout_ms < 0: until then). ASTER_OK: look at the
 * status; `reply` (optional) gets the decision. Errors: why it was not granted; ASTER_ERR_TIMEOUT: still acquiring. */
ASTER_API aster_status aster_lease_wait_acquired(struct aster_lease *lease, int64_t timeout_ms,
                                                 struct aster_reply *reply, struct aster_error *error);

/* Give up an acquire in flight: the status becomes NOT_GRANTED, never HELD; a grant that races is released by the
 * runtime. No effect once answered. Does not block. */
ASTER_API void aster_lease_cancel(struct aster_lease *lease);

/* The fence, or NULL when the holder must not act. The pointer and its bytes stay valid for the handle's life, so ask
 * again before every write instead of keeping it. Wait-free: one clock read and a few loads. */
ASTER_API const struct aster_fence *aster_lease_fence(const struct aster_lease *lease);

struct aster_lease_report {
    enum aster_lease_status status;
    enum aster_lease_reason reason;
    int64_t epoch;                 /* 0 before the grant */
    int64_t remaining_ns;          /* until the self-limit; 0 when no fence is supplied */
    int64_t limit_ns;              /* the self-limit on CLOCK_BOOTTIME (or the runtime's virtual clock) */
    int64_t renewals;              /* successful ones */
    int64_t renew_errors;          /* failed or unanswered attempts */
    struct aster_error last_error; /* of the last failed attempt; kept after recovery */
};

/* Where the lease stands at this instant. Copies into *report; never blocks on the serializer, never fails. */
ASTER_API void aster_lease_report_get(const struct aster_lease *lease, struct aster_lease_report *report);

/* What the grant told: value, revision, last holder and epoch. Copied into `reply`. */
ASTER_API aster_status aster_lease_grant(const struct aster_lease *lease, struct aster_reply *reply,
                                         struct aster_error *error);

/* A descriptor that becomes readable, and stays so, once the lease is no longer ACQUIRING or HELD. For poll(); owned
 * by the handle; do not read or close it. Negative aster_status when none can be made. */
ASTER_API int aster_lease_fd(struct aster_lease *lease);

/* Stop supplying the fence but keep renewing, so that nobody is granted while guarded work drains. Then release, or
 * drop when the work did not end in time (the lease lapses). No effect unless HELD. */
ASTER_API void aster_lease_quiesce(struct aster_lease *lease);

/* Stop the fence, then release at the serializer; an ambiguous reply is retried under the same request id until it is
 * definitive or timeout_ms has passed. ASTER_OK: definitive; the status is RELEASED, or FENCED or LOST when the lease
 * had already ended (`reply`, optional, has the decision). Never retries a definitive denial.
 * Errors: ASTER_ERR_TIMEOUT: the background goes on retrying until the lease would have lapsed; ASTER_ERR_FORKED. */
ASTER_API aster_status aster_lease_release(struct aster_lease *lease, int64_t timeout_ms, struct aster_reply *reply,
                                           struct aster_error *error);

/* Stop the fence and renewals; tell the serializer nothing: the lease lapses at its ttl. Does not block. */
ASTER_API void aster_lease_drop(struct aster_lease *lease);

/* Drop unless it ended, and free. Does not block on the serializer. NULL is legal. */
ASTER_API void aster_lease_destroy(struct aster_lease *lease);

ASTER_END_DECLS

#endif
