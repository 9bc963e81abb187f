/* Building engine operations and rows for tests in one line each. Names are C strings and must outlive the result. */
#ifndef SUPPORT_OPERATIONS_H
#define SUPPORT_OPERATIONS_H

#include "aster/transition.h"

/* An operation on resource "r"; request id all zero; acquire gets a ttl of 10 s, put a fence of the caller. */
struct aster_operation operation_of(enum aster_operation_kind kind, const char *caller, int64_t epoch);

/* The same operation under a request id made of `number`, which is not 0. */
struct aster_operation with_id(struct aster_operation operation, uint64_t number);

/* A row held by `holder` under `epoch`, ttl 10 s. */
struct aster_row row_held(const char *holder, int64_t epoch);

#endif
