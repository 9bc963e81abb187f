/* Printing the audit history, for `history` and `watch`. */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include "cli/command.h"

/* Print the newest `limit` events (0 = all) after `after_revision` (< 0: only those to come), oldest first, one line or
 * one JSON object each; then, with `follow`, new ones as they come, until a signal or a failure. Returns an exit
 * status. */
int aster_events_print(const struct aster_cli *cli, const char *resource, int64_t after_revision, int64_t limit,
                       bool follow);

#endif
