/* What operators changed at run time. It lies over the configuration: a node or a rule in it counts, whatever the
 * configuration says about the same one. Immutable once it is published; kept in a file of its own. */
#ifndef GRANTOR_OVERLAY_H
#define GRANTOR_OVERLAY_H

#include "grantor/settings.h"
#include "wire/request.h"

#define GRANTOR_OVERLAY_NODES_MAX 65536
#define GRANTOR_OVERLAY_FILE_MAX 67108864 /* bytes */

struct grantor_overlay {
    struct grantor_nodes nodes;  /* also those that are removed */
    char *requires[ASTER_VERBS]; /* "" = nothing is needed; NULL = as configured */
};

/* The content of a file, which must be whole: a file that was cut would admit who was removed. `path` is for messages.
 * Comments in `text` are overwritten. Not thread-safe (see cfg.h). Errors: ASTER_ERR_INVALID with file and line;
 * ASTER_ERR_NOMEM. */
aster_status grantor_overlay_parse(char *text, const char *path, struct grantor_overlay **overlay,
                                   struct aster_error *error);
/* The file for an overlay, in malloc's memory. Errors: ASTER_ERR_NOMEM. */
aster_status grantor_overlay_print(const struct grantor_overlay *overlay, char **text, size_t *size,
                                   struct aster_error *error);
struct grantor_overlay *grantor_overlay_copy(const struct grantor_overlay *overlay); /* NULL when out of memory */
void grantor_overlay_destroy(struct grantor_overlay *overlay);                       /* NULL is legal */

/* Over a configuration. The node that is admitted under `id`, or NULL. */
const struct grantor_node *grantor_overlay_find(const struct grantor_overlay *overlay,
                                                const struct grantor_settings *settings, struct aster_bytes id);
/* The role that a verb needs; NULL = none. */
const char *grantor_overlay_role(const struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                 int verb);

/* The overlay after an operator's change (NODE_ADD, NODE_ROLE, NODE_REMOVE, REQUIRE), or NULL in *changed when it
 * is so already. Errors: ASTER_ERR_REFUSED (not admitted, admitted with something else, nobody would be operator),
 * ASTER_ERR_INVALID (an identity of the other mode), ASTER_ERR_LIMIT, ASTER_ERR_NOMEM. */
aster_status grantor_overlay_change(const struct grantor_overlay *overlay, const struct grantor_settings *settings,
                                    const struct aster_call *call, struct grantor_overlay **changed,
                                    struct aster_error *error);

#endif
