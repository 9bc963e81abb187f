#include "support/remote_crowd.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "aster/sys/serializer.h"

#define MEMBERS_MAX 64

struct member {
    char name[ASTER_IDENTITY_MAX];
    size_t size;
    struct remote_client client;
};

struct crowd {
    const struct remote_grantor *grantor;
    pthread_mutex_t lock; /* recursive: cancel may answer at once */
    struct member *members[MEMBERS_MAX];
    size_t count;
    struct masked *waiting;
};

struct masked {
    struct aster_request request; /* what the node submits */
    struct aster_request *original;
    struct crowd *crowd;
    struct masked *next;
};

static struct member *member_of(struct crowd *crowd, struct aster_bytes name)
{
    struct member *found = NULL;
    pthread_mutex_lock(&crowd->lock);
    for (size_t i = 0; i < crowd->count && found == NULL; i++) {
        struct member *member = crowd->members[i];
        found = aster_bytes_equal((struct aster_bytes){member->name, member->size}, name) ? member : NULL;
    }
    if (found == NULL) {
        assert_true(crowd->count < MEMBERS_MAX);
        found = calloc(1, sizeof *found);
        assert_non_null(found);
        if (name.size > 0) {
            memcpy(found->name, name.data, name.size);
        }
        found->size = name.size;
        remote_client_init(&found->client);
        struct aster_grantor_options options = remote_client_options(&found->client, crowd->grantor);
        remote_client_open(&found->client, &options);
        crowd->members[crowd->count++] = found;
    }
    pthread_mutex_unlock(&crowd->lock);
    return found;
}

static struct aster_bytes unmask(struct crowd *crowd, struct aster_bytes id)
{
    struct aster_bytes name = id;
    pthread_mutex_lock(&crowd->lock);
    for (size_t i = 0; i < crowd->count; i++) {
        const struct member *member = crowd->members[i];
        if (id.size > 0 && aster_bytes_equal(aster_text(member->client.id), id)) {
            name = (struct aster_bytes){member->name, member->size};
        }
    }
    pthread_mutex_unlock(&crowd->lock);
    return name;
}

static struct aster_snapshot unmask_snapshot(struct crowd *crowd, const struct aster_snapshot *masked)
{
    struct aster_snapshot snapshot = *masked;
    snapshot.holder = unmask(crowd, masked->holder);
    snapshot.last_holder = unmask(crowd, masked->last_holder);
    return snapshot;
}

static void complete(struct aster_request *request, aster_status status, const struct aster_decision *decision,
                     const struct aster_error *error)
{
    struct masked *masked = (struct masked *)request;
    struct crowd *crowd = masked->crowd;
    struct aster_request *original = masked->original;
    pthread_mutex_lock(&crowd->lock);
    struct masked **at = &crowd->waiting;
    while (*at != masked) {
        at = &(*at)->next;
    }
    *at = masked->next;
    pthread_mutex_unlock(&crowd->lock);
    free(masked);
    if (status == ASTER_OK) {
        struct aster_decision own = *decision;
        own.snapshot = unmask_snapshot(crowd, &decision->snapshot);
        original->complete(original, status, &own, NULL);
    } else {
        original->complete(original, status, NULL, error);
    }
}

static void crowd_submit(void *self, struct aster_request *request)
{
    struct crowd *crowd = self;
    struct aster_operation *operation = &request->operation;
    struct masked *masked = calloc(1, sizeof *masked);
    bool legal = aster_identity_check(operation->caller, "caller", NULL) == ASTER_OK;
    struct member *member = member_of(crowd, legal ? operation->caller : aster_text(NULL));
    masked->request = *request;
    masked->request.complete = complete;
    masked->original = request;
    masked->crowd = crowd;
    if (legal) {
        masked->request.operation.caller = aster_text(member->client.id);
    }
    if (aster_identity_check(operation->holder, "holder", NULL) == ASTER_OK) {
        masked->request.operation.holder = aster_text(member_of(crowd, operation->holder)->client.id);
    }
    pthread_mutex_lock(&crowd->lock);
    masked->next = crowd->waiting;
    crowd->waiting = masked;
    pthread_mutex_unlock(&crowd->lock);
    aster_serializer_submit(member->client.serializer, &masked->request);
}

static void crowd_cancel(void *self, struct aster_request *request)
{
    struct crowd *crowd = self;
    pthread_mutex_lock(&crowd->lock);
    struct masked *masked = crowd->waiting;
    while (masked != NULL && masked->original != request) {
        masked = masked->next;
    }
    if (masked != NULL) {
        bool legal = aster_identity_check(request->operation.caller, "caller", NULL) == ASTER_OK;
        struct member *member = member_of(crowd, legal ? request->operation.caller : aster_text(NULL));
        aster_serializer_cancel(member->client.serializer, &masked->request);
    }
    pthread_mutex_unlock(&crowd->lock);
}

static void crowd_close(void *self)
{
    struct crowd *crowd = self;
    member_of(crowd, aster_text(NULL)); /* so that whoever comes later meets a closed one */
    for (size_t i = 0; i < crowd->count; i++) {
        aster_serializer_close(crowd->members[i]->client.serializer);
    }
}

static aster_status crowd_wait(void *self, int64_t timeout_ms)
{
    struct crowd *crowd = self;
    for (int64_t ms = 0; ms < timeout_ms; ms++) {
        pthread_mutex_lock(&crowd->lock);
        bool idle = crowd->waiting == NULL;
        pthread_mutex_unlock(&crowd->lock);
        if (idle) {
            return ASTER_OK;
        }
        const struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    return ASTER_ERR_TIMEOUT;
}

static void crowd_destroy(void *self)
{
    struct crowd *crowd = self;
    for (size_t i = 0; i < crowd->count; i++) {
        remote_client_fini(&crowd->members[i]->client);
        free(crowd->members[i]);
    }
    pthread_mutex_destroy(&crowd->lock);
    free(crowd);
}

static struct aster_serializer *observer(struct crowd *crowd)
{
    return member_of(crowd, aster_text(NULL))->client.serializer;
}

static aster_status crowd_mutate_fenced(void *self, const struct aster_fence *fence, struct aster_bytes writer,
                                        aster_mutation mutation, void *user, struct aster_verdict *verdict,
                                        struct aster_error *error)
{
    return aster_mutate_fenced(observer(self), fence, writer, mutation, user, verdict, error);
}

struct visiting {
    struct crowd *crowd;
    aster_visit_row row;
    aster_visit_event event;
    void *user;
};

static bool visit_row(const struct aster_snapshot *snapshot, void *user)
{
    const struct visiting *visiting = user;
    struct aster_snapshot own = unmask_snapshot(visiting->crowd, snapshot);
    return visiting->row(&own, visiting->user);
}

static bool visit_event(const struct aster_event *event, void *user)
{
    const struct visiting *visiting = user;
    struct aster_event own = *event;
    own.actor = unmask(visiting->crowd, event->actor);
    own.previous = unmask(visiting->crowd, event->previous);
    return visiting->event(&own, visiting->user);
}

static aster_status crowd_list(void *self, const struct aster_list_query *query, aster_visit_row visit, void *user,
                               struct aster_error *error)
{
    struct visiting visiting = {self, visit, NULL, user};
    return aster_list_page(observer(self), query, visit_row, &visiting, error);
}

static aster_status crowd_history(void *self, const struct aster_history_query *query, aster_visit_event visit,
                                  void *user, struct aster_error *error)
{
    struct visiting visiting = {self, NULL, visit, user};
    return aster_history(observer(self), query, visit_event, &visiting, error);
}

static const struct aster_serializer_ops crowd_ops = {
    sizeof crowd_ops,    "crowd",    ASTER_SERIALIZER_QUEUES_WAITERS,
    crowd_submit,        NULL,       crowd_cancel,
    crowd_close,         crowd_wait, crowd_destroy,
    crowd_mutate_fenced, NULL,       crowd_history,
    crowd_list,
};

aster_status remote_crowd_open(const struct remote_grantor *grantor, struct aster_serializer **serializer,
                               struct aster_error *error)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    pthread_mutexattr_t attributes;
    crowd->grantor = grantor;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&crowd->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return aster_serializer_create(&crowd_ops, crowd, NULL, serializer, error);
}
