/* Is this process the one that created something, or a copy made by fork()? A page that the kernel wipes in the child
 * answers with one load, for fork(), vfork-less clone() and raw system calls alike. */
#ifndef PLATFORM_FORK_H
#define PLATFORM_FORK_H

#include <stdatomic.h>
#include <stdint.h>

#include "aster/status.h"

/* The page's first word; holds the process's generation, 0 in a fresh child. NULL before the first generation(). */
extern _Atomic(uint64_t) *aster_fork_page;

/* The generation of this process, never 0; a child gets another one on its first call. 0 when no page can be mapped
 * (with detail). Thread-safe. */
uint64_t aster_fork_generation(struct aster_error *error);

/* Was `generation`, from aster_fork_generation(), given out by this very process? Wait-free. */
static inline int aster_fork_is_same(uint64_t generation)
{
    return atomic_load_explicit(aster_fork_page, memory_order_relaxed) == generation;
}

#endif
