#include "aster/publish.h"

#include <stdio.h>

#include "aster/transition.h"
#include "base/error.h"
#include "base/options.h"
#include "platform/file_lock.h"
#include "platform/staged_file.h"
#include "resource/last_fence.h"

#define LOCK_TIMEOUT_MS 10000

struct publishing {
    const struct aster_fence *fence;
    struct aster_bytes writer;
    struct aster_staged_file staged;
    struct aster_last_fence last;
    char fence_path[PATH_MAX];
    char lock_path[PATH_MAX];
    struct aster_error error; /* of place(): the serializer passes only a status on */
};

static aster_status name_files(struct publishing *publishing, const char *target, struct aster_error *error)
{
    int length = snprintf(publishing->fence_path, PATH_MAX, "%s.fence", target);
    if (length >= PATH_MAX || snprintf(publishing->lock_path, PATH_MAX, "%s.lock", target) >= PATH_MAX) {
        return aster_error_set(error, ASTER_ERR_INVALID, "the path %.100s... is too long", target);
    }
    return ASTER_OK;
}

/* The fence goes first: after a crash between the two, the old file stands under the new epoch, which keeps older
 * writers out; the other way round would let them in. */
static aster_status place(void *tx, void *user)
{
    struct publishing *publishing = user;
    aster_status status = ASTER_OK;
    (void)tx;
    if (publishing->fence->epoch > publishing->last.fence.epoch) {
        status = aster_last_fence_store(publishing->fence_path, publishing->fence, &publishing->error);
    }
    return status == ASTER_OK ? aster_staged_file_place(&publishing->staged, &publishing->error) : status;
}

/* The store has no fenced write: look at its row, then write. */
static aster_status place_after_look(struct publishing *publishing, struct aster_serializer *serializer,
                                     struct aster_verdict *verdict, struct aster_error *error)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_status status = aster_inspect(serializer, publishing->fence->resource, &reply, error);
    if (status == ASTER_OK) {
        struct aster_row row = aster_row_absent(0);
        row.epoch = reply.decision.snapshot.epoch;
        row.held = reply.decision.snapshot.held;
        row.holder = reply.decision.snapshot.holder;
        *verdict = aster_fence_verdict(&row, publishing->fence->resource, publishing->fence, publishing->writer);
        status = verdict->reason == ASTER_REASON_NONE ? place(NULL, publishing) : ASTER_OK;
    }
    aster_reply_fini(&reply);
    return status;
}

static aster_status check_and_place(struct publishing *publishing, struct aster_serializer *serializer,
                                    struct aster_publication *made, struct aster_error *error)
{
    made->verdict = aster_fence_follow(&publishing->last.fence, publishing->fence, publishing->writer);
    if (made->verdict.reason != ASTER_REASON_NONE) {
        return ASTER_OK;
    }
    aster_status status;
    if (serializer == NULL) {
        status = place(NULL, publishing);
    } else {
        status = aster_mutate_fenced(serializer, publishing->fence, publishing->writer, place, publishing,
                                     &made->verdict, error);
        made->in_step = status == ASTER_OK;
        if (status == ASTER_ERR_UNSUPPORTED) {
            status = place_after_look(publishing, serializer, &made->verdict, error);
        }
    }
    if (status != ASTER_OK && publishing->error.status != ASTER_OK && error != NULL) {
        *error = publishing->error;
    }
    return status;
}

aster_status aster_publish_file(const char *source, const char *target, const struct aster_fence *fence,
                                struct aster_bytes writer, const struct aster_publish_options *options,
                                struct aster_publication *publication, struct aster_error *error)
{
    struct aster_publish_options known = ASTER_PUBLISH_OPTIONS_INIT;
    struct publishing publishing = {.fence = fence, .writer = writer, .error = ASTER_ERROR_INIT};
    struct aster_publication made = {ASTER_VERDICT_INIT, false};
    int lock = -1;
    aster_status status = aster_options_read(&known, options, "ASTER_PUBLISH_OPTIONS_INIT", error);
    if (status == ASTER_OK) {
        status = aster_resource_check(fence->resource, error);
    }
    if (status == ASTER_OK) {
        status = aster_identity_check(fence->holder, "holder of the fence", error);
    }
    if (status == ASTER_OK) {
        status = name_files(&publishing, target, error);
    }
    if (status == ASTER_OK) { /* before the lock: a slow source keeps nobody waiting */
        status = aster_staged_file_copy(&publishing.staged, source, target, error);
    }
    if (status == ASTER_OK) {
        status = aster_file_lock_take(
            publishing.lock_path, known.lock_timeout_ms > 0 ? known.lock_timeout_ms : LOCK_TIMEOUT_MS, &lock, error);
    }
    if (status == ASTER_OK) {
        status = aster_last_fence_load(publishing.fence_path, &publishing.last, error);
    }
    if (status == ASTER_OK) {
        status = check_and_place(&publishing, known.serializer, &made, error);
    }
    if (lock >= 0) {
        aster_file_lock_release(lock);
    }
    aster_staged_file_discard(&publishing.staged);
    if (status == ASTER_OK) {
        *publication = made;
    }
    return status;
}
