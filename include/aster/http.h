/* Handing a fence to a service over HTTP, and checking it there.
 *
 * The request says what it writes under, in two headers; who writes is what the connection proves (a client
 * certificate), never a header, because a header can be typed by anybody:
 *
 *     Aster-Resource: catalog/current       names in the escapes of aster_fence_format(): %XX outside [A-Za-z0-9._~/@-]
 *     Aster-Epoch: 42
 *
 * The service keeps the fence of the last write that it accepted, asks aster_fence_follow() (transition.h) whether the
 * carried one may follow, and stores it with the write in one step. docs/http.md has the whole recipe, with nginx in
 * front. Pure functions; thread-safe. */
#ifndef ASTER_HTTP_H
#define ASTER_HTTP_H

#include "aster/fence.h"

ASTER_BEGIN_DECLS

#define ASTER_HTTP_RESOURCE "Aster-Resource"
#define ASTER_HTTP_EPOCH "Aster-Epoch"

#define ASTER_HTTP_RESOURCE_MAX 1537 /* 512 bytes as %XX, and the NUL */
#define ASTER_HTTP_EPOCH_MAX 20      /* 19 digits, and the NUL */

/* The two header values of a request, NUL-terminated. Errors: ASTER_ERR_INVALID (a name, an epoch below 0). */
ASTER_API aster_status aster_http_fence_format(const struct aster_fence *fence, char resource[ASTER_HTTP_RESOURCE_MAX],
                                               char epoch[ASTER_HTTP_EPOCH_MAX], struct aster_error *error);

/* The fence that a request carries; NULL stands for a header that is not there. `identity` is the authenticated peer's,
 * and becomes the holder. The fence borrows `storage` and `identity`. Errors: ASTER_ERR_INVALID: a header is missing or
 * malformed, and the message may be sent back with aster_http_status(NO_FENCE) or 400. */
ASTER_API aster_status aster_http_fence_parse(const char *resource, const char *epoch, struct aster_bytes identity,
                                              char storage[ASTER_HTTP_RESOURCE_MAX], struct aster_fence *fence,
                                              struct aster_error *error);

/* The status of the response to a write that was refused for that reason: 428 without a fence, 412 for a stale or
 * future epoch or a lease given back, 403 for another's identity, 422 for another resource; 200 for NONE. */
ASTER_API int aster_http_status(enum aster_reason reason);

ASTER_END_DECLS

#endif
