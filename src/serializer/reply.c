#include "aster/serializer.h"

#include <stdlib.h>

#include "base/alloc.h"

static size_t copied_size(const struct aster_snapshot *snapshot)
{
    return snapshot->resource.size + snapshot->holder.size + snapshot->value.size + snapshot->last_holder.size;
}

static char *move_bytes(struct aster_bytes *bytes, char *to)
{
    if (bytes->size == 0) {
        *bytes = (struct aster_bytes){NULL, 0};
        return to;
    }
    memcpy(to, bytes->data, bytes->size);
    bytes->data = to;
    return to + bytes->size;
}

aster_status aster_reply_set(struct aster_reply *reply, const struct aster_decision *decision)
{
    struct aster_decision copy = {0};
    memcpy(&copy, decision, decision->struct_size < sizeof copy ? decision->struct_size : sizeof copy);
    copy.struct_size = sizeof copy;
    struct aster_snapshot *snapshot = &copy.snapshot;
    size_t size = copied_size(snapshot);
    char *storage = NULL;
    if (size > 0) {
        storage = aster_alloc(size);
        if (storage == NULL) {
            return ASTER_ERR_NOMEM;
        }
    }
    char *at = move_bytes(&snapshot->resource, storage);
    at = move_bytes(&snapshot->holder, at);
    at = move_bytes(&snapshot->value, at);
    move_bytes(&snapshot->last_holder, at);
    free(reply->storage); /* only now: `decision` may be this reply's own */
    reply->decision = copy;
    reply->storage = storage;
    return ASTER_OK;
}

void aster_reply_fini(struct aster_reply *reply)
{
    if (reply != NULL) {
        free(reply->storage);
        *reply = (struct aster_reply)ASTER_REPLY_INIT;
    }
}
