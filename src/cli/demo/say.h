/* A worker's voice: one message to the director on standard output. */
#ifndef DEMO_SAY_H
#define DEMO_SAY_H

#include "cli/demo/message.h"

/* Thread-safe: a line is shorter than PIPE_BUF, so the kernel takes it whole. Ends the process when the director is
 * gone. */
void aster_demo_say(enum demo_message_kind kind, int64_t at_ns, int64_t epoch, int64_t count, const char *word,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
