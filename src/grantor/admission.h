/* Who is admitted and who may do what. Every function may be called from any thread. */
#ifndef GRANTOR_ADMISSION_H
#define GRANTOR_ADMISSION_H

#include <stdbool.h>

#include "grantor/settings.h"

struct grantor_admission;

/* Takes the settings over. Errors: ASTER_ERR_NOMEM (then the caller keeps them). */
aster_status grantor_admission_create(struct grantor_settings *settings, struct grantor_admission **admission,
                                      struct aster_error *error);
void grantor_admission_destroy(struct grantor_admission *admission); /* NULL is legal */

/* The settings go back to whoever gave them. */
void grantor_admission_keep_settings(struct grantor_admission *admission); /* NULL is legal */

/* From now on these rules; takes the settings over. No lease is touched. */
void grantor_admission_replace(struct grantor_admission *admission, struct grantor_settings *settings);

bool grantor_admission_knows(struct grantor_admission *admission, struct aster_bytes identity);

/* May this identity do `verb` (aster_operation_kind or grantor_verb) at all? */
bool grantor_admission_may(struct grantor_admission *admission, struct aster_bytes identity, int verb);
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
