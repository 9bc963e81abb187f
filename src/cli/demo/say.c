#include "cli/demo/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/demo/worker.h"

void aster_demo_say(enum demo_message_kind kind, int64_t at_ns, int64_t epoch, int64_t count, const char *word,
                    const char *format, ...)
{
    struct demo_message message = {.kind = kind, .at_ns = at_ns, .epoch = epoch, .count = count};
    snprintf(message.word, sizeof message.word, "%s", word);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message.text, sizeof message.text, format, arguments);
    va_end(arguments);
    char line[DEMO_MESSAGE_LINE_MAX];
    size_t length = (size_t)aster_demo_message_format(&message, line);
    ssize_t written;
    do {
        written = write(STDOUT_FILENO, line, length);
    } while (written < 0 && errno == EINTR);
    if (written != (ssize_t)length) {
        _exit(DEMO_WORKER_FAILED);
    }
}
