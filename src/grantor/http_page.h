/* One answer of the HTTP port. */
#ifndef GRANTOR_HTTP_PAGE_H
#define GRANTOR_HTTP_PAGE_H

#include <microhttpd.h>

#include "aster/serializer.h"

#define GRANTOR_TYPE_TEXT "text/plain; charset=utf-8"
#define GRANTOR_TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define GRANTOR_TYPE_JSON "application/json"
#define GRANTOR_TYPE_LINES "application/x-ndjson"

struct grantor_http_page {
    unsigned code;
    const char *type; /* one of the above */
    char *text;       /* malloc()ed; NULL = out of memory */
    size_t size;
};

/* {"error": "..."}; replaces what the page had. */
void grantor_http_fail(struct grantor_http_page *page, unsigned code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* http_reads.c: GET /api/v1/leases?prefix=&after=&limit= and /api/v1/history?resource=&after=&limit=&format=. Blocks
 * for the store. */
void grantor_http_leases(struct MHD_Connection *connection, struct aster_serializer *serializer,
                         struct grantor_http_page *page);
void grantor_http_history(struct MHD_Connection *connection, struct aster_serializer *serializer,
                          struct grantor_http_page *page);

#endif
