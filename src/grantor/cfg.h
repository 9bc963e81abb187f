/* What the configuration and the file of changed nodes have in common: nodes in libconfuse's syntax. Not thread-safe:
 * libconfuse keeps its scanner in static storage. */
#ifndef GRANTOR_CFG_H
#define GRANTOR_CFG_H

#include <confuse.h>

#include "grantor/nodes.h"

/* The options of a section "node". */
#define GRANTOR_CFG_NODE                                                                                               \
    {                                                                                                                  \
        CFG_STR("name", NULL, CFGF_NONE), CFG_STR_LIST("roles", "{}", CFGF_NONE),                                      \
            CFG_STR_LIST("resources", "{}", CFGF_NONE), CFG_END()                                                      \
    }
#define GRANTOR_CFG_NODE_FLAGS (CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES)

/* The options of the section "requires", but for "revoke", which has a default of its own. */
#define GRANTOR_CFG_REQUIRES                                                                                           \
    CFG_STR("acquire", NULL, CFGF_NONE), CFG_STR("renew", NULL, CFGF_NONE), CFG_STR("release", NULL, CFGF_NONE),       \
        CFG_STR("put", NULL, CFGF_NONE), CFG_STR("forget", NULL, CFGF_NONE), CFG_STR("inspect", NULL, CFGF_NONE),      \
        CFG_STR("list", NULL, CFGF_NONE), CFG_STR("history", NULL, CFGF_NONE), CFG_STR("watch", NULL, CFGF_NONE)

/* Have the sections "node" checked while they are parsed. */
void grantor_cfg_check_nodes(cfg_t *cfg);

/* Parse `text`, the content of the file `path`; its comments are overwritten. Errors: ASTER_ERR_INVALID with file,
 * line, what is wrong and `hint`. */
aster_status grantor_cfg_parse(cfg_t *cfg, const char *path, char *text, const char *hint, struct aster_error *error);

/* Copies of what was parsed; *failed is set when there is no memory for them. */
char *grantor_cfg_text(cfg_t *cfg, const char *option, bool *failed); /* NULL when it is not given */
void grantor_cfg_texts(cfg_t *cfg, const char *option, struct grantor_texts *texts, bool *failed);
void grantor_cfg_requires(cfg_t *cfg, char *requires[ASTER_VERBS], bool *failed);
void grantor_cfg_nodes(cfg_t *cfg, struct grantor_nodes *nodes, bool *failed);

#endif
