/* The thread that carries out what operators order about nodes, one order after the other: it waits for disks and for
 * revocations, which the loop may not. Each change is on disk, in a file that is replaced in one step, before it counts
 * and before it is answered. */
#ifndef GRANTOR_REGISTRAR_H
#define GRANTOR_REGISTRAR_H

#include "grantor/overlay.h"
#include "grantor/state.h"

struct grantor_registrar;

/* One order. Made by the session, handed to the registrar, and handed back on the loop's thread. */
struct grantor_order {
    struct aster_task task;
    struct grantor_order *next;
    struct grantor_state *state;
    struct grantor_session *session;
    uint64_t id; /* of the request */
    enum aster_call_kind kind;
    int verb;                   /* REQUIRE */
    struct aster_bytes actor;   /* the operator: a view into bytes[], like the next two */
    struct aster_bytes node;    /* the others: whom it is about */
    struct aster_bytes request; /* as it travels */
    aster_status status;        /* the result */
    struct aster_error error;
    bool changed;
    uint32_t links_ended;
    uint64_t revoked;
    uint64_t held;
    int64_t held_ns;
    char bytes[];
};

struct grantor_registrar_options {
    struct grantor_state *state;
    /* The new overlay shall count: called on the loop's thread, takes it over, gives how many links it ended. */
    uint32_t (*apply)(struct grantor_overlay *overlay, void *user);
    void *user;
};

/* `path` is the file, NULL when there is no place for one: then changes are refused. Errors: ASTER_ERR_NOMEM,
 * ASTER_ERR_IO. */
aster_status grantor_registrar_create(const struct grantor_registrar_options *options, const char *path,
                                      struct grantor_registrar **registrar, struct aster_error *error);
/* Carry out what was ordered and end the thread. While the loop runs. NULL is legal. */
void grantor_registrar_destroy(struct grantor_registrar *registrar);

void grantor_registrar_submit(struct grantor_registrar *registrar, struct grantor_order *order);

/* Read the file, tell the log where it differs from the settings, and let no order be carried out until go_on(): what
 * was read must be made to count first. From the main thread. Errors: ASTER_ERR_INVALID with file and line,
 * ASTER_ERR_IO, ASTER_ERR_NOMEM; then go_on() is not to be called. */
aster_status grantor_registrar_hold(struct grantor_registrar *registrar, const struct grantor_settings *settings,
                                    struct grantor_overlay **overlay, struct aster_error *error);
void grantor_registrar_go_on(struct grantor_registrar *registrar);

#endif
