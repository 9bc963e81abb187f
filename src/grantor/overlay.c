#include "grantor/overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grantor/cfg.h"

#define HINT "mend the line, or put a copy back; asterd(8) tells what belongs there"

static const char preface[] =
    "# Written by asterd: what operators changed at run time with `aster node`. It counts more than the\n"
    "# configuration. asterd reads it when it starts and on SIGHUP; edit it only while nobody changes nodes.\n";

/* ---- print ---- */

/* Single quotes: nothing in them is expanded. */
static void print_text(const char *text, FILE *out)
{
    fputc('\'', out);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
    fputc('\'', out);
}

static void print_texts(const char *option, const struct grantor_texts *texts, FILE *out)
{
    if (texts->count > 0) {
        fprintf(out, "    %s = {", option);
        for (size_t i = 0; i < texts->count; i++) {
            fputs(i > 0 ? ", " : "", out);
            print_text(texts->items[i], out);
        }
        fputs("}\n", out);
    }
}

static void print_node(const struct grantor_node *node, FILE *out)
{
    fputs("node ", out);
    print_text(node->id, out);
    fputs(" {\n", out);
    if (node->name != NULL) {
        fputs("    name = ", out);
        print_text(node->name, out);
        fputc('\n', out);
    }
    print_texts("roles", &node->roles, out);
    print_texts("resources", &node->resources, out);
    fputs("}\n", out);
}

static void print_removed(const struct grantor_node *node, FILE *out)
{
    fputs("removed += {", out);
    print_text(node->id, out);
    fputs("}\n", out);
}

static void print_requires(char *const requires[ASTER_VERBS], FILE *out)
{
    fputs("requires {\n", out);
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        if (requires[verb] != NULL) {
            fprintf(out, "    %s = ", aster_verb_name(verb));
            print_text(requires[verb], out);
            fputc('\n', out);
        }
    }
    fputs("}\ncomplete = true\n", out);
}

aster_status grantor_overlay_print(const struct grantor_overlay *overlay, char **text, size_t *size,
                                   struct aster_error *error)
{
    char *made = NULL;
    size_t made_size = 0;
    FILE *out = open_memstream(&made, &made_size);
    if (out != NULL) {
        fputs(preface, out);
        for (size_t i = 0; i < overlay->nodes.count; i++) {
            const struct grantor_node *node = &overlay->nodes.items[i];
            (node->removed ? print_removed : print_node)(node, out);
        }
        print_requires(overlay->requires, out);
    }
    bool failed = out == NULL || ferror(out) != 0;
    if ((out != NULL && fclose(out) != 0) || failed) {
        free(made);
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the file of changed nodes");
    }
    *text = made;
    *size = made_size;
    return ASTER_OK;
}

/* ---- parse ---- */

static int check_removed(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const char *id = cfg_opt_getnstr(option, cfg_opt_size(option) - 1);
    if (aster_node_id_check(aster_text(id), &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "removed: %s", error.message);
    return -1;
}

static int check_role(cfg_t *cfg, cfg_opt_t *option)
{
    struct aster_error error = ASTER_ERROR_INIT;
    const char *role = cfg_opt_getnstr(option, 0);
    if (role[0] == '\0' || aster_role_check(aster_text(role), &error) == ASTER_OK) {
        return 0;
    }
    cfg_error(cfg, "%s: %s", cfg_opt_name(option), error.message);
    return -1;
}

static void add_checks(cfg_t *cfg)
{
    grantor_cfg_check_nodes(cfg);
    cfg_set_validate_func(cfg, "removed", check_removed);
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        char name[32];
        if (aster_verb_name(verb) != NULL) {
            snprintf(name, sizeof name, "requires|%s", aster_verb_name(verb));
            cfg_set_validate_func(cfg, name, check_role);
        }
    }
}

static aster_status no_memory(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the nodes that operators changed");
}

static aster_status add_removed(cfg_t *cfg, const char *path, struct grantor_nodes *nodes, struct aster_error *error)
{
    for (unsigned i = 0; i < cfg_size(cfg, "removed"); i++) {
        struct aster_bytes id = aster_text(cfg_getnstr(cfg, "removed", i));
        const struct grantor_node *known = grantor_nodes_find(nodes, id);
        if (known != NULL && !known->removed) {
            return aster_error_set(error, ASTER_ERR_INVALID, "%s: node \"%s\" is both admitted and removed: choose one",
                                   path, known->id);
        }
        struct grantor_node node = {.id = grantor_text_copy(id), .removed = true};
        if (node.id == NULL || !grantor_nodes_put(nodes, &node)) {
            free(node.id);
            return no_memory(error);
        }
    }
    return ASTER_OK;
}

static aster_status take(cfg_t *cfg, const char *path, struct grantor_overlay *overlay, struct aster_error *error)
{
    bool failed = false;
    if (cfg_getbool(cfg, "complete") != cfg_true) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "%s ends without \"complete = true\", so something may be missing: put a copy back, or "
                               "complete it",
                               path);
    }
    grantor_cfg_nodes(cfg, &overlay->nodes, &failed);
    grantor_cfg_requires(cfg, overlay->requires, &failed);
    return failed ? no_memory(error) : add_removed(cfg, path, &overlay->nodes, error);
}

aster_status grantor_overlay_parse(char *text, const char *path, struct grantor_overlay **overlay,
                                   struct aster_error *error)
{
    cfg_opt_t node[] = GRANTOR_CFG_NODE;
    cfg_opt_t requires[] = {GRANTOR_CFG_REQUIRES, CFG_STR("revoke", NULL, CFGF_NONE), CFG_END()};
    cfg_opt_t options[] = {CFG_SEC("node", node, GRANTOR_CFG_NODE_FLAGS), CFG_STR_LIST("removed", "{}", CFGF_NONE),
                           CFG_SEC("requires", requires, CFGF_NONE), CFG_BOOL("complete", cfg_false, CFGF_NONE),
                           CFG_END()};
    cfg_t *cfg = cfg_init(options, CFGF_NONE);
    struct grantor_overlay *made = calloc(1, sizeof *made);
    aster_status status = cfg != NULL && made != NULL ? ASTER_OK : no_memory(error);
    if (status == ASTER_OK) {
        add_checks(cfg);
        status = grantor_cfg_parse(cfg, path, text, HINT, error);
    }
    if (status == ASTER_OK) {
        status = take(cfg, path, made, error);
    }
    cfg_free(cfg);
    if (status != ASTER_OK) {
        grantor_overlay_destroy(made);
        return status;
    }
    *overlay = made;
    return ASTER_OK;
}

/* ---- life ---- */

struct grantor_overlay *grantor_overlay_copy(const struct grantor_overlay *overlay)
{
    struct grantor_overlay *made = calloc(1, sizeof *made);
    bool copied = made != NULL && grantor_nodes_copy(&overlay->nodes, &made->nodes);
    for (int verb = 0; copied && verb < ASTER_VERBS; verb++) {
        if (overlay->requires[verb] != NULL) {
            made->requires[verb] = grantor_text_copy(aster_text(overlay->requires[verb]));
            copied = made->requires[verb] != NULL;
        }
    }
    if (!copied) {
        grantor_overlay_destroy(made);
        return NULL;
    }
    return made;
}

void grantor_overlay_destroy(struct grantor_overlay *overlay)
{
    if (overlay != NULL) {
        grantor_nodes_free(&overlay->nodes);
        for (int verb = 0; verb < ASTER_VERBS; verb++) {
            free(overlay->requires[verb]);
        }
        free(overlay);
    }
}
