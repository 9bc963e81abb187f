/* Who is admitted and who may do what. Every function may be called from any thread. */
#ifndef GRANTOR_ADMISSION_H
#define GRANTOR_ADMISSION_H

#include <stdbool.h>

#include "grantor/overlay.h"

struct grantor_admission;

/* Takes the settings over. Errors: ASTER_ERR_NOMEM (then the caller keeps them). */
aster_status grantor_admission_create(struct grantor_settings *settings, struct grantor_admission **admission,
                                      struct aster_error *error);
void grantor_admission_destroy(struct grantor_admission *admission); /* NULL is legal */

/* The settings go back to whoever gave them. */
void grantor_admission_keep_settings(struct grantor_admission *admission); /* NULL is legal */

/* From now on these rules; takes both over. NULL leaves what there is. No lease is touched. */
void grantor_admission_replace(struct grantor_admission *admission, struct grantor_settings *settings,
                               struct grantor_overlay *overlay);
/* What an operator's change makes of the overlay: see grantor_overlay_change(). Nothing is changed by it. */
aster_status grantor_admission_change(struct grantor_admission *admission, const struct aster_call *call,
                                      struct grantor_overlay **changed, struct aster_error *error);

/* Nothing is replaced while it is frozen; do not call the functions below in between, but those with `frozen`. */
void grantor_admission_freeze(struct grantor_admission *admission);
void grantor_admission_thaw(struct grantor_admission *admission);
/* The node with this id, or the one after it in byte order; removed ones too. NULL when there is none. */
const struct grantor_node *grantor_frozen_node(const struct grantor_admission *admission, struct aster_bytes id,
                                               enum aster_node_origin *origin);
const struct grantor_node *grantor_frozen_after(const struct grantor_admission *admission, struct aster_bytes id,
                                                enum aster_node_origin *origin);
struct aster_rule grantor_frozen_rule(const struct grantor_admission *admission, int verb);

bool grantor_admission_is_operator(struct grantor_admission *admission, struct aster_bytes identity);
bool grantor_admission_knows(struct grantor_admission *admission, struct aster_bytes identity);

/* May this identity do `verb` (aster_operation_kind or aster_verb) at all? */
bool grantor_admission_may(struct grantor_admission *admission, struct aster_bytes identity, int verb);
/* May it do so with every resource? */
bool grantor_admission_is_free(struct grantor_admission *admission, struct aster_bytes identity, int verb);
/* May it see or use this resource? */
bool grantor_admission_reaches(struct grantor_admission *admission, struct aster_bytes identity,
                               struct aster_bytes resource);

/* An operation of the server itself in the name of its caller, who may have lost the right to it: the return of a grant
 * that nobody could receive, a revocation on an operator's order. It is told by its content (kind, caller, resource and
 * epoch), so the caller's own identical one would pass as well, to the same effect. */
struct grantor_exemption {
    const struct aster_operation *operation;
    struct grantor_exemption *next;
    struct grantor_exemption *previous;
};
/* Both live until it ends. */
void grantor_admission_exempt(struct grantor_admission *admission, const struct aster_operation *operation,
                              struct grantor_exemption *exemption);
void grantor_admission_unexempt(struct grantor_admission *admission, struct grantor_exemption *exemption);

/* Role and prefix, or an exemption, as an aster_authorizer; `user` is the admission. */
bool grantor_admission_authorize(const struct aster_operation *operation, void *user);

#endif
