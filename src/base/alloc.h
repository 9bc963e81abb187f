/* The one door through which the engine and the handles get memory, so that tests can close it at the n-th call. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>

/* As malloc and realloc of the C library; NULL when out of memory. Memory is given back with free(). */
void *aster_alloc(size_t size);
void *aster_realloc(void *memory, size_t size);

/* For tests: from now on the call after `calls` successful ones fails, and all later ones; < 0 = never. */
void aster_alloc_fail_after(long calls);

#endif
