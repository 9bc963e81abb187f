/* The one thread that decides requests, on the one connection that writes them. It takes all that wait into one
 * transaction, renewals first and in one of their own, and answers reads while another process holds the write lock. */
#ifndef SQLITE_WORKER_H
#define SQLITE_WORKER_H

#include "serializer/sqlite/store.h"

struct aster_worker;

/* Open the connection, prepare the tables and start the thread. */
aster_status aster_worker_create(struct aster_store *store, struct aster_worker **worker, struct aster_error *error);

/* As the slots of aster/sys/serializer.h. */
void aster_worker_submit(struct aster_worker *worker, struct aster_request *request);
void aster_worker_cancel(struct aster_worker *worker, const struct aster_request *request);
void aster_worker_close(struct aster_worker *worker);
aster_status aster_worker_wait(struct aster_worker *worker, int64_t timeout_ms);

/* Close, end the thread, free. NULL is legal. */
void aster_worker_destroy(struct aster_worker *worker);

#endif
