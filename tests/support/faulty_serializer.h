/* A serializer in front of another one that loses, delays and fails requests and replies as a script says, on the
 * virtual clock: the network, and the store's bad days. */
#ifndef SUPPORT_FAULTY_SERIALIZER_H
#define SUPPORT_FAULTY_SERIALIZER_H

#include "aster/sys/serializer.h"
#include "support/fake_clock.h"

enum fault_kind {
    FAULT_NONE,
    FAULT_FAIL,          /* not delivered; answered with `status` */
    FAULT_BLACK_HOLE,    /* not delivered, not answered until it is asked back */
    FAULT_HANG,          /* not delivered, not answered, deaf to cancel; answered by faulty_serializer_unhang() */
    FAULT_DENY_EXPIRED,  /* not delivered; denied as a store whose clock runs away would deny it */
    FAULT_LOSE_REPLY,    /* delivered; answered INDETERMINATE */
    FAULT_DELAY_REQUEST, /* delivered delay_ms later */
    FAULT_DELAY_REPLY,   /* delivered now, answered delay_ms later */
    FAULT_LATE,          /* answered INDETERMINATE, delivered all the same delay_ms later */
    FAULT_TWICE          /* delivered and answered now, delivered once more delay_ms later */
};

struct fault {
    enum fault_kind kind;
    aster_status status;
    int64_t delay_ms;
};

typedef struct fault (*fault_script)(const struct aster_operation *operation, void *user);

struct faulty_serializer;

/* `inner` is borrowed. With `queues` the traits of a serializer that keeps waiters are passed on. When it runs on
 * another clock, deadlines, which are given on this one, are not passed on. */
struct faulty_serializer *faulty_serializer_create(struct aster_serializer *inner, struct fake_clock *clock,
                                                   bool queues);
void faulty_serializer_destroy(struct faulty_serializer *faulty); /* the serializer, too */
struct aster_serializer *faulty_serializer_serializer(struct faulty_serializer *faulty);

/* From now on every operation is asked; NULL = no faults. */
void faulty_serializer_script(struct faulty_serializer *faulty, fault_script script, void *user);

/* A script for every operation alike; `kind` 0 = of any kind. */
void faulty_serializer_always(struct faulty_serializer *faulty, enum aster_operation_kind kind, struct fault fault);

/* Hear of every decision of the inner serializer, at the instant at which it is made. */
typedef void (*fault_observer)(const struct aster_operation *operation, const struct aster_decision *decision,
                               void *user);
void faulty_serializer_observe(struct faulty_serializer *faulty, fault_observer observer, void *user);

/* Answer what hangs with INDETERMINATE. */
void faulty_serializer_unhang(struct faulty_serializer *faulty);

/* How many operations of a kind were submitted so far (0 = of all), and when the last one was. */
int faulty_serializer_count(const struct faulty_serializer *faulty, enum aster_operation_kind kind);
int64_t faulty_serializer_last_ns(const struct faulty_serializer *faulty, enum aster_operation_kind kind);
int faulty_serializer_asked_back(const struct faulty_serializer *faulty);

#endif
