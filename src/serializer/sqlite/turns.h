/* Whose turn it is to write, among the threads of one process: the worker or a fenced write. They alternate, so
 * neither starves the other, and every wait is bounded: SQLite's own lock is never fought over within the process.
 *
 * Between processes SQLite's lock has no queue: who wants it looks from time to time. So a process that has held it for
 * long leaves it alone for a tenth of that time, long enough for the others to look, before it takes it again. */
#ifndef SQLITE_TURNS_H
#define SQLITE_TURNS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum aster_writer { ASTER_WRITER_WORKER = 0, ASTER_WRITER_MUTATION = 1, ASTER_WRITER_COUNT = 2 };

struct aster_turns {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool taken;
    int waiting[ASTER_WRITER_COUNT];
    int64_t taken_at_ns;
    int64_t free_at_ns;     /* until then the file is left to other processes */
    bool worker_wants;      /* the worker did not get its turn in time and comes back for it: a turn is kept for it */
    enum aster_writer next; /* who goes first when both wait */
};

void aster_turns_init(struct aster_turns *turns);
void aster_turns_fini(struct aster_turns *turns);

/* Take the turn within `wait_ns`, or return false. Not getting it keeps the worker's place until it takes the turn or
 * withdraws: between its attempts it answers reads, and fenced writes must not overtake it meanwhile. */
bool aster_turns_take(struct aster_turns *turns, enum aster_writer writer, int64_t wait_ns);
void aster_turns_give(struct aster_turns *turns, enum aster_writer writer);
/* The worker has nothing to write any more. */
void aster_turns_withdraw(struct aster_turns *turns);

#endif
