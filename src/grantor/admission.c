#include "grantor/admission.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct grantor_admission {
    pthread_rwlock_t lock;
    struct grantor_settings *settings;
    struct grantor_exemption *exemptions;
};

aster_status grantor_admission_create(struct grantor_settings *settings, struct grantor_admission **admission,
                                      struct aster_error *error)
{
    struct grantor_admission *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the rules of admission");
    }
    pthread_rwlock_init(&made->lock, NULL);
    made->settings = settings;
    *admission = made;
    return ASTER_OK;
}

void grantor_admission_destroy(struct grantor_admission *admission)
{
    if (admission != NULL) {
        pthread_rwlock_destroy(&admission->lock);
        grantor_settings_destroy(admission->settings);
        free(admission);
    }
}

void grantor_admission_keep_settings(struct grantor_admission *admission)
{
    if (admission != NULL) {
        admission->settings = NULL;
    }
}

void grantor_admission_replace(struct grantor_admission *admission, struct grantor_settings *settings)
{
    pthread_rwlock_wrlock(&admission->lock);
    struct grantor_settings *old = admission->settings;
    admission->settings = settings;
    pthread_rwlock_unlock(&admission->lock);
    grantor_settings_destroy(old);
}

static int compare(const void *key, const void *element)
{
    const struct aster_bytes *identity = key;
    const struct grantor_node *node = element;
    return aster_bytes_compare(*identity, aster_text(node->id));
}

/* Under the lock. */
static const struct grantor_node *find(const struct grantor_admission *admission, struct aster_bytes identity)
{
    const struct grantor_settings *settings = admission->settings;
    if (identity.size == 0 || settings->node_count == 0) {
        return NULL;
    }
    return bsearch(&identity, settings->nodes, settings->node_count, sizeof settings->nodes[0], compare);
}

static bool has_role(const struct grantor_node *node, const char *role)
{
    for (size_t i = 0; i < node->roles.count; i++) {
        if (strcmp(node->roles.items[i], role) == 0) {
            return true;
        }
    }
    return false;
}

static bool may(const struct grantor_admission *admission, const struct grantor_node *node, int verb)
{
    const char *role = verb >= 0 && verb < GRANTOR_VERBS ? admission->settings->requires[verb] : NULL;
    return node != NULL && (role == NULL || has_role(node, role));
}

static bool reaches(const struct grantor_node *node, struct aster_bytes resource)
{
    if (node == NULL) {
        return false;
    }
    for (size_t i = 0; i < node->resources.count; i++) {
        size_t size = strlen(node->resources.items[i]);
        if (size <= resource.size && memcmp(resource.data, node->resources.items[i], size) == 0) {
            return true;
        }
    }
    return node->resources.count == 0;
}

bool grantor_admission_knows(struct grantor_admission *admission, struct aster_bytes identity)
{
    pthread_rwlock_rdlock(&admission->lock);
    bool known = find(admission, identity) != NULL;
    pthread_rwlock_unlock(&admission->lock);
    return known;
}

bool grantor_admission_may(struct grantor_admission *admission, struct aster_bytes identity, int verb)
{
    pthread_rwlock_rdlock(&admission->lock);
    bool allowed = may(admission, find(admission, identity), verb);
    pthread_rwlock_unlock(&admission->lock);
    return allowed;
}

bool grantor_admission_reaches(struct grantor_admission *admission, struct aster_bytes identity,
                               struct aster_bytes resource)
{
    pthread_rwlock_rdlock(&admission->lock);
    bool allowed = reaches(find(admission, identity), resource);
    pthread_rwlock_unlock(&admission->lock);
    return allowed;
}

void grantor_admission_exempt(struct grantor_admission *admission, const struct aster_operation *operation,
                              struct grantor_exemption *exemption)
{
    pthread_rwlock_wrlock(&admission->lock);
    exemption->operation = operation;
    exemption->previous = NULL;
    exemption->next = admission->exemptions;
    if (exemption->next != NULL) {
        exemption->next->previous = exemption;
    }
    admission->exemptions = exemption;
    pthread_rwlock_unlock(&admission->lock);
}

void grantor_admission_unexempt(struct grantor_admission *admission, struct grantor_exemption *exemption)
{
    pthread_rwlock_wrlock(&admission->lock);
    *(exemption->previous != NULL ? &exemption->previous->next : &admission->exemptions) = exemption->next;
    if (exemption->next != NULL) {
        exemption->next->previous = exemption->previous;
    }
    pthread_rwlock_unlock(&admission->lock);
}

/* Under the lock. */
static bool is_exempt(const struct grantor_admission *admission, const struct aster_operation *operation)
{
    for (const struct grantor_exemption *at = admission->exemptions; at != NULL; at = at->next) {
        if (at->operation->kind == operation->kind && at->operation->epoch == operation->epoch &&
            aster_bytes_equal(at->operation->caller, operation->caller) &&
            aster_bytes_equal(at->operation->resource, operation->resource)) {
            return true;
        }
    }
    return false;
}

bool grantor_admission_authorize(const struct aster_operation *operation, void *user)
{
    struct grantor_admission *admission = user;
    pthread_rwlock_rdlock(&admission->lock);
    const struct grantor_node *node = find(admission, operation->caller);
    bool allowed = (may(admission, node, (int)operation->kind) && reaches(node, operation->resource)) ||
                   is_exempt(admission, operation);
    pthread_rwlock_unlock(&admission->lock);
    return allowed;
}
