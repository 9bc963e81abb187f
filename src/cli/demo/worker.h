/* One worker process of the demo: `aster demo worker ...`, started by the director and not meant for people. */
#ifndef DEMO_WORKER_H
#define DEMO_WORKER_H

/* How the worker owns the invoice. */
#define DEMO_MODE_FENCED "fenced"
#define DEMO_MODE_UNCHECKED "unchecked" /* sabotage: a fenced lease, but the write does not carry the fence */
#define DEMO_MODE_PLAIN "plain"
#define DEMO_MODE_GRANTOR "grantor" /* the lease and the invoice are a grantor's */

#define DEMO_WORKER_OPERAND "worker" /* the first operand; then: */
/* mode, identity, database, ttl in ms, ms per rendering step, PDF to write, the grantor's address, directory of the
 * worker's key there (the last two are empty without a grantor) */
#define DEMO_WORKER_ARGUMENTS 8

/* Commands from the director, one per line. */
#define DEMO_COMMAND_WRITE "write\n"
#define DEMO_COMMAND_FINISH "finish\n"

enum demo_worker_exit {
    DEMO_WORKER_PUBLISHED = 0,
    DEMO_WORKER_FAILED = 1,
    DEMO_WORKER_REFUSED = 77 /* its write was rejected; as `aster run` and `aster put` say it */
};

/* Acquire (waiting if it must), render, check, wait for the command to write, write, and report every step as a message
 * on standard output. Returns the process's exit status. */
int aster_demo_worker_main(int argument_count, char *const arguments[]);

#endif
