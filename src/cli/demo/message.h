/* One line from a worker process to the director: what it just did, stamped by itself. */
#ifndef DEMO_MESSAGE_H
#define DEMO_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

enum demo_message_kind {
    DEMO_SAYS_DENIED,    /* epoch: the row's; word: the reason; text: who holds it */
    DEMO_SAYS_WAITING,   /* queued for the lease */
    DEMO_SAYS_GRANTED,   /* epoch; word: TAKEOVER or FRESH; text: the previous holder */
    DEMO_SAYS_RENEWED,   /* epoch; count: renewals so far */
    DEMO_SAYS_STEP,      /* count: step of rendering that is done */
    DEMO_SAYS_RENDERED,  /* epoch; count: milliseconds it took; text: total */
    DEMO_SAYS_ARMED,     /* epoch: of the fence it checked and keeps; the write comes next */
    DEMO_SAYS_PUBLISHED, /* epoch; count: bytes of the PDF */
    DEMO_SAYS_REJECTED,  /* epoch: carried; count: current; word: the reason */
    DEMO_SAYS_GUARDED,   /* plain SQL under the old fence: word: refused or ACCEPTED; text: SQLite's message */
    DEMO_SAYS_ENDED, /* word: status of its handle; count: 1 if it still supplies a fence; text: the self-limit in ns
                        of CLOCK_BOOTTIME, when the handle ended by itself */
    DEMO_SAYS_RELEASED,
    DEMO_SAYS_FAILED, /* text: the error */
    DEMO_SAYS_KINDS
};

#define DEMO_WORD_MAX 32
#define DEMO_MESSAGE_TEXT_MAX 300
#define DEMO_MESSAGE_LINE_MAX 512

struct demo_message {
    enum demo_message_kind kind;
    int64_t at_ns; /* CLOCK_BOOTTIME of the worker's host, which is the director's */
    int64_t epoch;
    int64_t count;
    char word[DEMO_WORD_MAX];         /* without blanks; "-" = none */
    char text[DEMO_MESSAGE_TEXT_MAX]; /* one line */
};

/* "granted", ... Never NULL. */
const char *aster_demo_message_name(enum demo_message_kind kind);

/* Write the message as one line with its newline; control characters of the text become blanks. Returns the length. */
int aster_demo_message_format(const struct demo_message *message, char line[DEMO_MESSAGE_LINE_MAX]);

/* The inverse, for a line without its newline. False when the line is not a message. */
bool aster_demo_message_parse(const char *line, struct demo_message *message);

#endif
