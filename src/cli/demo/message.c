#include "cli/demo/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[DEMO_SAYS_KINDS] = {"denied",   "waiting",  "granted",   "renewed",  "step",
                                                   "rendered", "armed",    "published", "rejected", "guarded",
                                                   "ended",    "released", "failed"};

const char *aster_demo_message_name(enum demo_message_kind kind)
{
    return kind < DEMO_SAYS_KINDS ? names[kind] : "unknown";
}

int aster_demo_message_format(const struct demo_message *message, char line[DEMO_MESSAGE_LINE_MAX])
{
    int length = snprintf(line, DEMO_MESSAGE_LINE_MAX - 1, "%s %" PRId64 " %" PRId64 " %" PRId64 " %s %s",
                          aster_demo_message_name(message->kind), message->at_ns, message->epoch, message->count,
                          message->word[0] != '\0' ? message->word : "-", message->text);
    if (length > DEMO_MESSAGE_LINE_MAX - 2) {
        length = DEMO_MESSAGE_LINE_MAX - 2;
    }
    for (int i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ') {
            line[i] = ' ';
        }
    }
    line[length] = '\n';
    line[length + 1] = '\0';
    return length + 1;
}

bool aster_demo_message_parse(const char *line, struct demo_message *message)
{
    struct demo_message parsed = {0};
    char name[16];
    int text_at = 0;
    if (sscanf(line, "%15s %" SCNd64 " %" SCNd64 " %" SCNd64 " %31s%n", name, &parsed.at_ns, &parsed.epoch,
               &parsed.count, parsed.word, &text_at) != 5) {
        return false;
    }
    if (line[text_at] == ' ') {
        text_at++;
    }
    snprintf(parsed.text, sizeof parsed.text, "%s", line + text_at);
    for (unsigned i = 0; i < DEMO_SAYS_KINDS; i++) {
        if (strcmp(name, names[i]) == 0) {
            parsed.kind = (enum demo_message_kind)i;
            *message = parsed;
            return true;
        }
    }
    return false;
}
