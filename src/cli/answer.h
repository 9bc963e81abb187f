/* Telling people a decision. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include "cli/command.h"

/* A denial of what `caller` asked: one line why, and up to two lines to paste next, on stderr; with --json the row as
 * JSON on stdout instead of those two. Returns `code`. */
int aster_cli_denied(const struct aster_cli *cli, const struct aster_decision *decision, struct aster_bytes caller,
                     int code);

/* One call to the serializer. Returns ASTER_EXIT_OK when granted (reply set), otherwise the exit status, having said
 * why on stderr. */
int aster_cli_call(const struct aster_cli *cli, struct aster_serializer *serializer,
                   const struct aster_operation *operation, struct aster_reply *reply);

#endif
