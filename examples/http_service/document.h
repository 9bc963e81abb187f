/* The protected resource: one document in a SQLite file, with the fence of its last write beside it in the same row. */
#ifndef DOCUMENT_H
#define DOCUMENT_H

#include <sqlite3.h>

#include "aster/aster.h"

sqlite3 *document_open(const char *path);

/* Store `body` if `fence` may follow that of the last write: compared and written in one transaction. */
aster_status document_write(sqlite3 *db, const struct aster_fence *fence, struct aster_bytes writer,
                            struct aster_bytes body, struct aster_verdict *verdict);

/* The document; the caller frees it with free(). NULL when there is none yet. */
char *document_read(sqlite3 *db, size_t *size);

#endif
