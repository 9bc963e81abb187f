#include "grantor/admission.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct grantor_admission {
    pthread_rwlock_t lock;
    struct grantor_settings *settings;
    struct grantor_overlay *overlay;
    struct grantor_exemption *exemptions;
};

aster_status grantor_admission_create(struct grantor_settings *settings, struct grantor_admission **admission,
                                      struct aster_error *error)
{
    struct grantor_admission *made = calloc(1, sizeof *made);
    struct grantor_overlay *overlay = calloc(1, sizeof *overlay);
    if (made == NULL || overlay == NULL) {
        free(made);
        free(overlay);
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the rules of admission");
    }
    pthread_rwlock_init(&made->lock, NULL);
    made->settings = settings;
    made->overlay = overlay;
    *admission = made;
    return ASTER_OK;
}

void grantor_admission_destroy(struct grantor_admission *admission)
{
    if (admission != NULL) {
        pthread_rwlock_destroy(&admission->lock);
        grantor_settings_destroy(admission->settings);
        grantor_overlay_destroy(admission->overlay);
        free(admission);
    }
}

void grantor_admission_keep_settings(struct grantor_admission *admission)
{
    if (admission != NULL) {
        admission->settings = NULL;
    }
}

void grantor_admission_replace(struct grantor_admission *admission, struct grantor_settings *settings,
                               struct grantor_overlay *overlay)
{
    pthread_rwlock_wrlock(&admission->lock);
    struct grantor_settings *old_settings = settings != NULL ? admission->settings : NULL;
    struct grantor_overlay *old_overlay = overlay != NULL ? admission->overlay : NULL;
    admission->settings = settings != NULL ? settings : admission->settings;
    admission->overlay = overlay != NULL ? overlay : admission->overlay;
    pthread_rwlock_unlock(&admission->lock);
    grantor_settings_destroy(old_settings);
    grantor_overlay_destroy(old_overlay);
}

aster_status grantor_admission_change(struct grantor_admission *admission, const struct aster_call *call,
                                      struct grantor_overlay **changed, struct aster_error *error)
{
    pthread_rwlock_rdlock(&admission->lock);
    aster_status status = grantor_overlay_change(admission->overlay, admission->settings, call, changed, error);
    pthread_rwlock_unlock(&admission->lock);
    return status;
}

void grantor_admission_freeze(struct grantor_admission *admission)
{
    pthread_rwlock_rdlock(&admission->lock);
}

void grantor_admission_thaw(struct grantor_admission *admission)
{
    pthread_rwlock_unlock(&admission->lock);
}

static enum aster_node_origin origin_of(const struct grantor_node *changed)
{
    return changed->removed ? ASTER_NODE_REMOVED : ASTER_NODE_BY_OPERATOR;
}

const struct grantor_node *grantor_frozen_node(const struct grantor_admission *admission, struct aster_bytes id,
                                               enum aster_node_origin *origin)
{
    const struct grantor_node *changed = grantor_nodes_find(&admission->overlay->nodes, id);
    *origin = changed != NULL ? origin_of(changed) : ASTER_NODE_CONFIGURED;
    return changed != NULL ? changed : grantor_nodes_find(&admission->settings->nodes, id);
}

const struct grantor_node *grantor_frozen_after(const struct grantor_admission *admission, struct aster_bytes id,
                                                enum aster_node_origin *origin)
{
    const struct grantor_node *changed = grantor_nodes_after(&admission->overlay->nodes, id);
    const struct grantor_node *configured = grantor_nodes_after(&admission->settings->nodes, id);
    if (changed == NULL || (configured != NULL && strcmp(configured->id, changed->id) < 0)) {
        *origin = ASTER_NODE_CONFIGURED;
        return configured;
    }
    *origin = origin_of(changed);
    return changed;
}

struct aster_rule grantor_frozen_rule(const struct grantor_admission *admission, int verb)
{
    const char *role = grantor_overlay_role(admission->overlay, admission->settings, verb);
    return (struct aster_rule){verb, aster_text(role), admission->overlay->requires[verb] != NULL};
}

/* Under the lock. */
static const struct grantor_node *find(const struct grantor_admission *admission, struct aster_bytes identity)
{
    return identity.size > 0 ? grantor_overlay_find(admission->overlay, admission->settings, identity) : NULL;
}

static bool may(const struct grantor_admission *admission, const struct grantor_node *node, int verb)
{
    const char *role =
        verb >= 0 && verb < ASTER_VERBS ? grantor_overlay_role(admission->overlay, admission->settings, verb) : NULL;
    return node != NULL && (role == NULL || grantor_texts_have(&node->roles, aster_text(role)));
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

bool grantor_admission_is_operator(struct grantor_admission *admission, struct aster_bytes identity)
{
    pthread_rwlock_rdlock(&admission->lock);
    const struct grantor_node *node = find(admission, identity);
    bool is_operator = node != NULL && grantor_texts_have(&node->roles, aster_text(ASTER_ROLE_OPERATOR));
    pthread_rwlock_unlock(&admission->lock);
    return is_operator;
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

bool grantor_admission_is_free(struct grantor_admission *admission, struct aster_bytes identity, int verb)
{
    pthread_rwlock_rdlock(&admission->lock);
    const struct grantor_node *node = find(admission, identity);
    bool is_free = may(admission, node, verb) && node->resources.count == 0;
    pthread_rwlock_unlock(&admission->lock);
    return is_free;
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
