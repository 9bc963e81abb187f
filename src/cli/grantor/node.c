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

/* The name stays, and so does the key: whoever holds leases goes on holding them. */
static int renew(const struct aster_cli *cli, const struct aster_node_place *place)
{
    struct aster_node_facts facts;
    struct aster_error error = ASTER_ERROR_INIT;
    if (place->roots[0] != '\0') {
        return aster_cli_usage(cli, "this node's certificate is its authority's: put a new one in %s",
                               place->directory);
    }
    if (aster_node_describe(place->directory, &facts, &error) != ASTER_OK ||
        aster_node_renew(place->directory, facts.name, ASTER_NODE_DAYS_DEFAULT, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return print_id(cli, facts.id);
}

static int run_own(const struct aster_cli *cli, const char *word, const char *name)
{
    struct aster_node_place place;
    struct aster_error error = ASTER_ERROR_INIT;
    char identity[ASTER_IDENTITY_MAX + 1];
    if (aster_node_place_find(cli->node, &place, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (name != NULL) {
        return make(cli, &place, name);
    }
    if (strcmp(word, "renew") == 0) {
        return renew(cli, &place);
    }
    if (aster_cli_grantor_identity(cli->node, identity, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return strcmp(word, "show") == 0 ? show(cli, &place, identity) : print_id(cli, identity);
}

enum node_option {
    OF_NAME = 1,
    OF_ROLE = 2,
    OF_RESOURCES = 4,
    OF_REPLACE = 8,
    OF_ADD = 16,
    OF_DROP = 32,
    OF_REVOKE = 64,
    OF_NO_ROLE = 128
};

/* What one may ask; without `run` it is about this node's own key. */
struct node_word {
    const char *word;
    const char *operand; /* NULL = none */
    unsigned options;    /* node_option */
    int (*run)(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand);
};

static const struct node_word words[] = {
    {"new", "NAME", 0, NULL},
    {"show", NULL, 0, NULL},
    {"id", NULL, 0, NULL},
    {"renew", NULL, 0, NULL},
    {"list", NULL, 0, aster_cli_node_list},
    {"add", "ID", OF_NAME | OF_ROLE | OF_RESOURCES | OF_REPLACE, aster_cli_node_add},
    {"role", "ID", OF_ADD | OF_DROP, aster_cli_node_role},
    {"remove", "ID", OF_REVOKE, aster_cli_node_remove},
    {"requires", "VERB", OF_ROLE | OF_NO_ROLE, aster_cli_node_requires},
};

static unsigned options_in(const struct aster_node_arguments *arguments)
{
    unsigned given = arguments->name != NULL ? OF_NAME : 0;
    given |= arguments->roles.count > 0 ? OF_ROLE : 0;
    given |= arguments->resources.count > 0 ? OF_RESOURCES : 0;
    given |= arguments->replace ? OF_REPLACE : 0;
    given |= arguments->added.count > 0 ? OF_ADD : 0;
    given |= arguments->dropped.count > 0 ? OF_DROP : 0;
    given |= arguments->revoke ? OF_REVOKE : 0;
    given |= arguments->no_role ? OF_NO_ROLE : 0;
    return given;
}

static const struct node_word *find_word(const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, word) == 0) {
            return &words[i];
        }
    }
    return NULL;
}

int aster_cli_node(const struct aster_cli *cli, const struct aster_node_arguments *arguments, int argc, char **argv)
{
    const struct node_word *word = find_word(argv[0]);
    if (word == NULL) {
        return aster_cli_usage(cli, "say new NAME, show, id, renew, list, add ID, role ID, remove ID or requires VERB");
    }
    if ((word->operand != NULL) != (argc == 2)) {
        return word->operand != NULL ? aster_cli_usage(cli, "%s needs its %s: aster node %s %s", word->word,
                                                       strcmp(word->operand, "NAME") == 0 ? "name" : word->operand,
                                                       word->word, word->operand)
                                     : aster_cli_usage(cli, "%s takes no name", word->word);
    }
    if ((options_in(arguments) & ~word->options) != 0) {
        return aster_cli_usage(cli, "an option does not belong to %s", word->word);
    }
    const char *operand = argc == 2 ? argv[1] : NULL;
    return word->run != NULL ? word->run(cli, arguments, operand) : run_own(cli, word->word, operand);
}
