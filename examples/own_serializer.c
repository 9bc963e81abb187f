/* Your own serializer: a record per resource, your own lock (or transaction), and aster_transition() for the rules.
 * decide() and write_fenced() are all there is to it; the rest is a linked list. `aster-conformance example` runs the
 * conformance suite over this very file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <aster/sys/serializer.h>
#include <aster/transition.h>

struct record {
    struct record *next;
    struct aster_row row; /* its views point into the arrays below */
    int64_t granted_ns;
    struct aster_bytes resource;
    char name[ASTER_RESOURCE_MAX], holder[ASTER_IDENTITY_MAX], last_holder[ASTER_IDENTITY_MAX];
    char caller[ASTER_IDENTITY_MAX], value[ASTER_VALUE_MAX];
};

struct own {
    pthread_mutex_t mutex;
    struct aster_clock clock;
    struct record *records;
    int64_t floor; /* the greatest epoch ever forgotten */
};

static struct aster_bytes keep(char *array, struct aster_bytes bytes)
{
    if (bytes.size > 0) {
        memmove(array, bytes.data, bytes.size);
    }
    return (struct aster_bytes){array, bytes.size};
}

static struct record **find(struct own *own, struct aster_bytes resource)
{
    struct record **at = &own->records;
    while (*at != NULL && !aster_bytes_equal((*at)->resource, resource)) {
        at = &(*at)->next;
    }
    return at;
}

/* Store what changed. The last holder comes first: it may still lie where the new holder goes. */
static aster_status store(struct own *own, struct record **at, const struct aster_effect *effect, int64_t now_ns)
{
    struct record *record = *at;
    if (effect->removed) {
        if (record != NULL) {
            own->floor = record->row.epoch > own->floor ? record->row.epoch : own->floor;
            *at = record->next;
            free(record);
        }
        return ASTER_OK;
    }
    if (record == NULL) {
        record = *at = calloc(1, sizeof *record);
        if (record == NULL) {
            return ASTER_ERR_NOMEM;
        }
        record->resource = keep(record->name, effect->decision.snapshot.resource);
    }
    struct aster_row row = effect->row;
    row.last_holder = keep(record->last_holder, row.last_holder);
    row.holder = keep(record->holder, row.holder);
    row.value = keep(record->value, row.value);
    row.applied.caller = keep(record->caller, row.applied.caller);
    record->row = row;
    record->granted_ns = effect->rearm ? now_ns : record->granted_ns;
    return ASTER_OK;
}

static aster_status decide(void *user, const struct aster_operation *operation, struct aster_reply *reply,
                           struct aster_error *error)
{
    struct own *own = user;
    pthread_mutex_lock(&own->mutex);
    struct record **at = find(own, operation->resource);
    const struct aster_row row = *at != NULL ? (*at)->row : aster_row_absent(own->floor);
    int64_t now_ns = aster_clock_now_ns(&own->clock);
    int64_t left_ns = *at != NULL && row.held ? (*at)->granted_ns + row.ttl_ms * 1000000 - now_ns : 0;
    struct aster_effect effect;
    aster_status status = aster_transition(&row, row.held && left_ns <= 0, operation, &effect, error);
    if (status == ASTER_OK) {
        bool held = effect.row.held;
        effect.decision.snapshot.remaining_ns = effect.rearm ? effect.row.ttl_ms * 1000000 : left_ns;
        if (!held || effect.decision.snapshot.remaining_ns < 0) {
            effect.decision.snapshot.remaining_ns = 0;
        }
        status = aster_reply_set(reply, &effect.decision);
    }
    if (status == ASTER_OK && effect.changed) {
        status = store(own, at, &effect, now_ns);
    }
    pthread_mutex_unlock(&own->mutex);
    return status;
}

static aster_status write_fenced(void *user, const struct aster_fence *fence, struct aster_bytes writer,
                                 aster_mutation mutation, void *mutation_user, struct aster_verdict *verdict,
                                 struct aster_error *error)
{
    struct own *own = user;
    (void)error;
    pthread_mutex_lock(&own->mutex);
    struct record *record = *find(own, fence->resource);
    const struct aster_row row = record != NULL ? record->row : aster_row_absent(own->floor);
    struct aster_verdict found = aster_fence_verdict(&row, fence->resource, fence, writer);
    aster_status status = found.reason == ASTER_REASON_NONE ? mutation(NULL, mutation_user) : ASTER_OK;
    pthread_mutex_unlock(&own->mutex);
    if (status == ASTER_OK) {
        *verdict = found;
    }
    return status;
}

static void own_destroy(void *user)
{
    struct own *own = user;
    while (own->records != NULL) {
        struct record *record = own->records;
        own->records = record->next;
        free(record);
    }
    pthread_mutex_destroy(&own->mutex);
    free(own);
}

/* `user` may be a `struct own **` that is told where the records are. */
static aster_status own_open(void *user, const struct aster_clock *clock, struct aster_serializer **serializer,
                             struct aster_error *error)
{
    struct own *own = calloc(1, sizeof *own);
    if (own == NULL) {
        return ASTER_ERR_NOMEM;
    }
    pthread_mutex_init(&own->mutex, NULL);
    own->clock = clock != NULL ? *clock : *aster_clock_system();
    struct aster_blocking_options options = ASTER_BLOCKING_OPTIONS_INIT;
    options.name = "own";
    options.clock = clock;
    options.mutate_fenced = write_fenced;
    options.destroy = own_destroy;
    aster_status status = aster_blocking_serializer_create(decide, own, &options, serializer, error);
    if (status != ASTER_OK) {
        own_destroy(own);
    } else if (user != NULL) {
        *(struct own **)user = own;
    }
    return status;
}

#ifndef OWN_SERIALIZER_WITHOUT_MAIN
static aster_status write_line(void *tx, void *user)
{
    (void)tx;
    return puts(user) < 0 ? ASTER_ERR_IO : ASTER_OK;
}

int main(void)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_operation acquire = ASTER_OPERATION_INIT;
    acquire.kind = ASTER_OP_ACQUIRE;
    acquire.resource = aster_text("report");
    acquire.caller = aster_text("worker-1");
    acquire.ttl_ms = 30000;
    aster_status status = own_open(NULL, NULL, &serializer, &error);
    if (status == ASTER_OK) {
        status = aster_serializer_call(serializer, &acquire, 0, &reply, &error);
    }
    if (status == ASTER_OK) {
        const struct aster_fence fence = {acquire.resource, reply.decision.epoch, acquire.caller};
        status = aster_mutate_fenced(serializer, &fence, acquire.caller, write_line, "written under the fence",
                                     &verdict, &error);
    }
    if (status != ASTER_OK || verdict.reason != ASTER_REASON_NONE) {
        fprintf(stderr, "own_serializer: %s\n", status != ASTER_OK ? error.message : aster_reason_name(verdict.reason));
    }
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return status == ASTER_OK && verdict.reason == ASTER_REASON_NONE ? 0 : 1;
}
#endif
