/* Everything of the core library. The SQLite serializer has its own header (aster/sqlite.h), because it needs
 * sqlite3.h; extension points are in aster/sys/. */
#ifndef ASTER_ASTER_H
#define ASTER_ASTER_H

#include "aster/bytes.h"
#include "aster/fence.h"
#include "aster/http.h"
#include "aster/lease.h"
#include "aster/limits.h"
#include "aster/memory.h"
#include "aster/operation.h"
#include "aster/plan.h"
#include "aster/publish.h"
#include "aster/serializer.h"
#include "aster/status.h"
#include "aster/transition.h"
#include "aster/version.h"

#endif
