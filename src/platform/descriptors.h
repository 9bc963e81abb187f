/* How many descriptors this process may have open. */
#ifndef PLATFORM_DESCRIPTORS_H
#define PLATFORM_DESCRIPTORS_H

#include <stddef.h>

/* Raise the soft limit to the hard one, as far as that is allowed. Returns the limit that holds now. */
size_t aster_descriptors_raise(void);

#endif
