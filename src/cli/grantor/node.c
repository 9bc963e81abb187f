/* `aster node new NAME | show | id`: this machine's key, by which grantors know it. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/grantor/grantor.h"
#include "cli/grantor/place.h"
#include "cli/output.h"

/* mkdir -p for the parents, mode 0700; the directory itself is made with the key. */
static aster_status make_parents(const char *directory, struct aster_error *error)
{
    char part[ASTER_NODE_PATH_MAX];
    snprintf(part, sizeof part, "%s", directory);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            char shown[ASTER_PRINTABLE_MAX];
            return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot make the directory %s",
                                      aster_printable(aster_text(part), shown));
        }
        *slash = '/';
    }
    return ASTER_OK;
}

static int print_id(const struct aster_cli *cli, const char *id)
{
    if (cli->json) {
        return aster_json_print(json_pack("{s:s}", "id", id), JSON_COMPACT, stdout);
    }
    puts(id);
    return ASTER_EXIT_OK;
}

static int make(const struct aster_cli *cli, const struct aster_node_place *place, const char *name)
{
    char id[ASTER_NODE_ID_SIZE];
    struct aster_error error = ASTER_ERROR_INIT;
    if (make_parents(place->directory, &error) != ASTER_OK ||
        aster_node_create(place->directory, name, ASTER_NODE_DAYS_DEFAULT, id, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return print_id(cli, id);
}

static int show(const struct aster_cli *cli, const struct aster_node_place *place, const char *identity)
{
    struct aster_node_facts facts;
    struct aster_error error = ASTER_ERROR_INIT;
    char from[ASTER_TEXT_MAX];
    char until[ASTER_TEXT_MAX];
    if (aster_node_describe(place->directory, &facts, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    aster_text_instant(facts.from_unix_s * 1000, from);
    aster_text_instant(facts.until_unix_s * 1000, until);
    const char *mode = place->roots[0] != '\0' ? "CA" : "key";
    if (cli->json) {
        return aster_json_print(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", identity, "name", facts.name, "mode",
                                          mode, "directory", place->directory, "from", from, "until", until),
                                JSON_COMPACT, stdout);
    }
    printf("id         %s\nname       %s\nmode       %s\ndirectory  %s\nvalid      %s to %s\n", identity, facts.name,
           mode, place->directory, from, until);
    return ASTER_EXIT_OK;
}

int aster_cli_node(const struct aster_cli *cli, int argc, char **argv)
{
    struct aster_node_place place;
    struct aster_error error = ASTER_ERROR_INIT;
    char identity[ASTER_IDENTITY_MAX + 1];
    bool is_new = strcmp(argv[0], "new") == 0;
    bool is_show = strcmp(argv[0], "show") == 0;
    if (!is_new && !is_show && strcmp(argv[0], "id") != 0) {
        return aster_cli_usage(cli, "say new NAME, show or id");
    }
    if (is_new != (argc == 2)) {
        return aster_cli_usage(cli, is_new ? "new needs a name: aster node new NAME" : "%s takes no name", argv[0]);
    }
    if (aster_node_place_find(cli->node, &place, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (is_new) {
        return make(cli, &place, argv[1]);
    }
    if (aster_cli_grantor_identity(cli->node, identity, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return is_show ? show(cli, &place, identity) : print_id(cli, identity);
}
