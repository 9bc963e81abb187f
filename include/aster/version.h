/* Version of the headers (macros) and of the library at run time. Semantic versioning; 0.x may still change. */
#ifndef ASTER_VERSION_H
#define ASTER_VERSION_H

#include "aster/export.h"

ASTER_BEGIN_DECLS

#define ASTER_VERSION_MAJOR 0
#define ASTER_VERSION_MINOR 1
#define ASTER_VERSION_PATCH 0
#define ASTER_VERSION_TEXT "0.1.0"

/* For example "0.1.0". Static; thread-safe. */
ASTER_API const char *aster_version(void);

ASTER_END_DECLS

#endif
