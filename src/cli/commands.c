#include "cli/command.h"

#include <stdarg.h>
#include <string.h>

#include "cli/duration.h"
#include "cli/nearest.h"

extern const struct aster_command aster_command_run, aster_command_acquire, aster_command_renew, aster_command_release,
    aster_command_revoke, aster_command_forget, aster_command_inspect, aster_command_list, aster_command_watch,
    aster_command_history, aster_command_check, aster_command_put, aster_command_get, aster_command_publish,
    aster_command_fence, aster_command_plan, aster_command_demo, aster_command_bench, aster_command_doctor,
    aster_command_node, aster_command_schema, aster_command_version, aster_command_completion, aster_command_help;

const struct aster_command *const aster_commands[] = {
    &aster_command_run,
    &aster_command_plan,
    &aster_command_inspect,
    &aster_command_list,
    &aster_command_watch,
    &aster_command_history,
    &aster_command_acquire,
    &aster_command_renew,
    &aster_command_release,
    &aster_command_revoke,
    &aster_command_forget,
    &aster_command_check,
    &aster_command_put,
    &aster_command_get,
    &aster_command_publish,
    &aster_command_fence,
    &aster_command_node,
    &aster_command_schema,
    &aster_command_demo,
    &aster_command_bench,
    &aster_command_doctor,
    &aster_command_version,
    &aster_command_completion,
    &aster_command_help,
    NULL,
};

const struct aster_option aster_common_options[] = {
    {"store", 0, ASTER_OPTION_TEXT, "STORE",
     "where leases live: sqlite:PATH or aster://ID@HOST:PORT (default: ASTER_STORE, else a file of yours)",
     offsetof(struct aster_cli, store), NULL},
    {"node", 0, ASTER_OPTION_TEXT, "DIR",
     "whose key speaks to a grantor (default: ASTER_NODE, else ~/.config/aster/node)", offsetof(struct aster_cli, node),
     NULL},
    {"json", 0, ASTER_OPTION_FLAG, NULL, "print JSON", offsetof(struct aster_cli, json), NULL},
    {"help", 'h', ASTER_OPTION_FLAG, NULL, "print this help", offsetof(struct aster_cli, help), NULL},
    ASTER_OPTION_END,
};

const struct aster_option *aster_command_common_options(const struct aster_command *command)
{
    return aster_common_options + (command->storeless ? 1 : 0); /* --store is the first */
}

const struct aster_command *aster_command_find(const char *name)
{
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        if (strcmp(aster_commands[i]->name, name) == 0) {
            return aster_commands[i];
        }
    }
    return NULL;
}

const char *aster_command_nearest(const char *name)
{
    struct aster_nearest nearest = {name, NULL, 0};
    for (size_t i = 0; aster_commands[i] != NULL; i++) {
        aster_nearest_offer(&nearest, aster_commands[i]->name);
    }
    return nearest.found;
}

int aster_cli_check_ttl(const struct aster_cli *cli, int64_t ttl_ms)
{
    const struct aster_limits limits = ASTER_LIMITS_INIT;
    char given[ASTER_DURATION_TEXT_SIZE];
    char least[ASTER_DURATION_TEXT_SIZE];
    char most[ASTER_DURATION_TEXT_SIZE];
    if (ttl_ms >= limits.ttl_min_ms && ttl_ms <= limits.ttl_max_ms) {
        return ASTER_EXIT_OK;
    }
    return aster_cli_usage(cli, "--ttl %s: allowed are %s to %s", aster_duration_format(ttl_ms, given),
                           aster_duration_format(limits.ttl_min_ms, least),
                           aster_duration_format(limits.ttl_max_ms, most));
}

int aster_cli_fail(const struct aster_cli *cli, const struct aster_error *error)
{
    fprintf(stderr, "aster %s: %s\n", cli->command,
            error->message[0] != '\0' ? error->message : aster_status_name(error->status));
    return aster_exit_of(error->status);
}

int aster_cli_usage(const struct aster_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "aster %s: ", cli->command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see `aster %s --help`\n", cli->command);
    va_end(args);
    return ASTER_EXIT_USAGE;
}
