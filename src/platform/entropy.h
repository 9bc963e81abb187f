/* Random bytes from the kernel: request ids, hash keys, jitter seeds. */
#ifndef PLATFORM_ENTROPY_H
#define PLATFORM_ENTROPY_H

#include <stddef.h>

#include "aster/status.h"

/* Fill `size` bytes. May block only before the kernel's pool is first seeded. Thread-safe. Errors: ASTER_ERR_IO. */
aster_status aster_entropy_fill(void *data, size_t size, struct aster_error *error);

#endif
