/* `aster node list | add | role | remove | requires`: what operators ask a grantor. */
#include "cli/grantor/admit.h"

#include <string.h>

#include "base/error.h"
#include "cli/grantor/grantor.h"
#include "cli/store.h"

/* One question on its way, and the exit status that its answer gives. */
struct asking {
    const struct aster_cli *cli;
    const struct aster_call *call;
    int code;
};

static void print_changed(const struct aster_answer *answer, void *user)
{
    struct asking *asking = user;
    asking->code = aster_node_changed_print(asking->cli, asking->call, answer);
}

static int open_grantor(const struct aster_cli *cli, struct aster_serializer **serializer)
{
    struct aster_store_name name;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_store_resolve(cli->store, &name, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    if (name.kind != ASTER_STORE_GRANTOR) {
        return aster_cli_usage(cli, "only a grantor admits nodes: name one with --store aster://ID@HOST:PORT");
    }
    return aster_store_open(cli, ASTER_STORE_MUST_EXIST, &name, serializer);
}

/* Make one change. */
static int order(const struct aster_cli *cli, const struct aster_call *call)
{
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct asking asking = {cli, call, ASTER_EXIT_OK};
    int code = open_grantor(cli, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    if (remote_nodes_ask(serializer, call, print_changed, &asking, &error) != ASTER_OK) {
        asking.code = aster_cli_fail(cli, &error);
    }
    aster_serializer_destroy(serializer);
    return asking.code;
}

static void view(const struct aster_option_texts *texts, struct aster_bytes items[ASTER_OPTION_TEXTS_MAX],
                 struct aster_bytes_list *list)
{
    for (size_t i = 0; i < texts->count; i++) {
        items[i] = aster_text(texts->items[i]);
    }
    *list = (struct aster_bytes_list){items, texts->count};
}

/* Mistakes of the command line are told before anybody is asked. */
static int check(const struct aster_cli *cli, const struct aster_node_record *record)
{
    struct aster_error error = ASTER_ERROR_INIT;
    return aster_node_record_check(record, &error) == ASTER_OK ? ASTER_EXIT_OK : aster_cli_fail(cli, &error);
}

int aster_cli_node_add(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand)
{
    struct aster_bytes roles[ASTER_OPTION_TEXTS_MAX];
    struct aster_bytes resources[ASTER_OPTION_TEXTS_MAX];
    struct aster_call call = {.kind = ASTER_CALL_NODE_ADD};
    call.node.record.id = aster_text(operand);
    call.node.record.name = aster_text(arguments->name);
    call.node.replace = arguments->replace;
    view(&arguments->roles, roles, &call.node.record.roles);
    view(&arguments->resources, resources, &call.node.record.resources);
    int code = check(cli, &call.node.record);
    return code == ASTER_EXIT_OK ? order(cli, &call) : code;
}

int aster_cli_node_role(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand)
{
    struct aster_bytes added[ASTER_OPTION_TEXTS_MAX];
    struct aster_bytes dropped[ASTER_OPTION_TEXTS_MAX];
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_call call = {.kind = ASTER_CALL_NODE_ROLE};
    if (arguments->added.count + arguments->dropped.count == 0) {
        return aster_cli_usage(cli, "role needs --add ROLE or --drop ROLE");
    }
    call.node.record.id = aster_text(operand);
    view(&arguments->added, added, &call.node.record.roles);
    view(&arguments->dropped, dropped, &call.node.dropped);
    if (aster_roles_check(&call.node.dropped, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    int code = check(cli, &call.node.record);
    return code == ASTER_EXIT_OK ? order(cli, &call) : code;
}

int aster_cli_node_remove(const struct aster_cli *cli, const struct aster_node_arguments *arguments,
                          const char *operand)
{
    struct aster_call call = {.kind = ASTER_CALL_NODE_REMOVE};
    call.node.record.id = aster_text(operand);
    call.node.revoke = arguments->revoke;
    int code = check(cli, &call.node.record);
    return code == ASTER_EXIT_OK ? order(cli, &call) : code;
}

int aster_cli_node_requires(const struct aster_cli *cli, const struct aster_node_arguments *arguments,
                            const char *operand)
{
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_call call = {.kind = ASTER_CALL_REQUIRE};
    call.require.verb = aster_verb_find(operand);
    if (call.require.verb < 0) {
        return aster_cli_usage(cli,
                               "\"%.40s\" is no verb: say acquire, renew, release, revoke, put, forget, inspect, "
                               "list, history or watch",
                               operand);
    }
    if (arguments->roles.count + arguments->no_role != 1) {
        return aster_cli_usage(cli, "requires needs one --role ROLE, or --no-role");
    }
    call.require.role = arguments->no_role ? aster_text(NULL) : aster_text(arguments->roles.items[0]);
    if (!arguments->no_role && aster_role_check(call.require.role, &error) != ASTER_OK) {
        return aster_cli_fail(cli, &error);
    }
    return order(cli, &call);
}

/* The pages of a list. */
struct paging {
    struct aster_node_listing listing;
    char last[ASTER_IDENTITY_MAX];
    size_t last_size;
    bool more;
};

static void add_page(const struct aster_answer *answer, void *user)
{
    struct paging *paging = user;
    aster_node_listing_add(&paging->listing, answer);
    paging->more = answer->nodes.more && answer->nodes.count > 0 && !paging->listing.failed;
    if (paging->more) {
        struct aster_bytes last = answer->nodes.records[answer->nodes.count - 1].id;
        memcpy(paging->last, last.data, last.size);
        paging->last_size = last.size;
    }
}

int aster_cli_node_list(const struct aster_cli *cli, const struct aster_node_arguments *arguments, const char *operand)
{
    (void)arguments;
    (void)operand;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    struct paging paging = {.more = true};
    aster_status status = ASTER_OK;
    int code = open_grantor(cli, &serializer);
    if (code != ASTER_EXIT_OK) {
        return code;
    }
    paging.listing.nodes = cli->json ? json_array() : NULL;
    paging.listing.rules = cli->json ? json_object() : NULL;
    while (status == ASTER_OK && paging.more) {
        struct aster_call call = {.kind = ASTER_CALL_NODE_LIST};
        char after[ASTER_IDENTITY_MAX];
        memcpy(after, paging.last, paging.last_size);
        call.node.record.id = (struct aster_bytes){after, paging.last_size};
        status = remote_nodes_ask(serializer, &call, add_page, &paging, &error);
    }
    if (status == ASTER_OK && paging.listing.failed) {
        status = aster_error_set(&error, ASTER_ERR_NOMEM, "out of memory for the list");
    }
    code = status == ASTER_OK ? aster_node_listing_print(cli, &paging.listing) : aster_cli_fail(cli, &error);
    aster_node_listing_fini(&paging.listing);
    aster_serializer_destroy(serializer);
    return code;
}
