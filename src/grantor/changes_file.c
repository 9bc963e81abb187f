#include "grantor/changes_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "grantor/log.h"

#define LINES_MAX 100 /* about single nodes; the rest is in `aster node list` */

bool grantor_changes_file_init(struct grantor_changes_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    file->path = path != NULL ? strdup(path) : NULL;
    return path == NULL || file->path != NULL;
}

void grantor_changes_file_fini(struct grantor_changes_file *file)
{
    free(file->path);
    free(file->known);
    free(file->drafted);
}

/* *content is NULL when there is no file. */
static aster_status load(const char *path, char **content, size_t *size, struct aster_error *error)
{
    *content = NULL;
    *size = 0;
    if (path == NULL || (access(path, F_OK) != 0 && errno == ENOENT)) {
        return ASTER_OK;
    }
    return aster_private_file_read(path, GRANTOR_OVERLAY_FILE_MAX, true, content, size, error);
}

static aster_status parse(const struct grantor_changes_file *file, const char *content,
                          struct grantor_overlay **overlay, struct aster_error *error)
{
    if (content != NULL) {
        char *copy = strdup(content); /* the content itself is kept as it is */
        aster_status status = copy != NULL
                                  ? grantor_overlay_parse(copy, file->path, overlay, error)
                                  : aster_error_set(error, ASTER_ERR_NOMEM, "no memory to read %s", file->path);
        free(copy);
        return status;
    }
    struct grantor_overlay *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the nodes that operators changed");
    }
    *overlay = made;
    return ASTER_OK;
}

static void tell_node(const struct grantor_node *node)
{
    struct grantor_line line;
    grantor_line_init(&line, node->removed ? GRANTOR_WARNING : GRANTOR_INFO,
                      node->removed ? "node-stays-removed" : "node-differs");
    grantor_line_text(&line, "node", node->id);
    grantor_line_text(&line, "note",
                      node->removed ? "the configuration lists it, an operator removed it"
                                    : "an operator changed it: what the configuration says does not count");
    grantor_line_end(&line);
}

/* Whoever reads the configuration shall not believe it where it does not count. */
static void tell(const struct grantor_changes_file *file, const struct grantor_overlay *overlay,
                 const struct grantor_settings *settings)
{
    int64_t removed = 0;
    int64_t lines = 0;
    int64_t rules = 0;
    for (size_t i = 0; i < overlay->nodes.count; i++) {
        const struct grantor_node *node = &overlay->nodes.items[i];
        removed += node->removed;
        if (grantor_nodes_find(&settings->nodes, aster_text(node->id)) != NULL && lines++ < LINES_MAX) {
            tell_node(node);
        }
    }
    for (int verb = 0; verb < ASTER_VERBS; verb++) {
        rules += overlay->requires[verb] != NULL;
    }
    if (overlay->nodes.count > 0 || rules > 0) {
        struct grantor_line line;
        grantor_line_init(&line, GRANTOR_INFO, "changed-by-operators");
        grantor_line_text(&line, "file", file->path);
        grantor_line_number(&line, "nodes", (int64_t)overlay->nodes.count - removed);
        grantor_line_number(&line, "removed", removed);
        grantor_line_number(&line, "rules", rules);
        grantor_line_end(&line);
    }
}

aster_status grantor_changes_file_read(struct grantor_changes_file *file, const struct grantor_settings *settings,
                                       struct grantor_overlay **overlay, struct aster_error *error)
{
    char *content;
    size_t size;
    struct grantor_overlay *made = NULL;
    aster_status status = load(file->path, &content, &size, error);
    if (status == ASTER_OK) {
        status = parse(file, content, &made, error);
    }
    if (status == ASTER_OK) {
        status = grantor_settings_fit(settings, &made->nodes, file->path, error);
    }
    if (status != ASTER_OK) {
        grantor_overlay_destroy(made);
        free(content);
        return status;
    }
    free(file->known);
    file->known = content;
    file->known_size = size;
    tell(file, made, settings);
    *overlay = made;
    return ASTER_OK;
}

/* An editor, or another server with the same file: what they wrote would be lost. */
static aster_status check_unchanged(const struct grantor_changes_file *file, struct aster_error *error)
{
    char *content;
    size_t size;
    aster_status status = load(file->path, &content, &size, error);
    bool same = (content != NULL) == (file->known != NULL) && size == file->known_size &&
                (size == 0 || memcmp(content, file->known, size) == 0);
    free(content);
    if (status == ASTER_OK && !same) {
        status = aster_error_set(
            error, ASTER_ERR_REFUSED,
            "%.200s was changed by somebody else: have the server reload it (SIGHUP), then try again", file->path);
    }
    return status;
}

aster_status grantor_changes_file_draft(struct grantor_changes_file *file, const struct grantor_overlay *overlay,
                                        struct aster_error *error)
{
    char *text = NULL;
    size_t size = 0;
    if (file->path == NULL) {
        return aster_error_set(error, ASTER_ERR_REFUSED,
                               "the server has no place to keep changes: give it nodes-file in its configuration");
    }
    aster_status status = check_unchanged(file, error);
    if (status == ASTER_OK) {
        status = grantor_overlay_print(overlay, &text, &size, error);
    }
    if (status == ASTER_OK) {
        status = aster_private_file_draft(file->path, (struct aster_bytes){text, size}, 0600, file->temporary, error);
    }
    if (status != ASTER_OK) {
        free(text);
        return status;
    }
    file->drafted = text;
    file->drafted_size = size;
    return ASTER_OK;
}

aster_status grantor_changes_file_place(struct grantor_changes_file *file, struct aster_error *error)
{
    aster_status status = aster_private_file_place(file->temporary, file->path, true, error);
    char **to = status == ASTER_OK ? &file->known : &file->drafted;
    free(*to);
    if (status == ASTER_OK) {
        file->known = file->drafted;
        file->known_size = file->drafted_size;
    }
    file->drafted = NULL;
    return status;
}

void grantor_changes_file_discard(struct grantor_changes_file *file)
{
    aster_private_file_discard(file->temporary);
    free(file->drafted);
    file->drafted = NULL;
}
