/* The thread that reads rows and history, because reading may block: it answers list and history, starts watches,
 * writes the log of ownership decisions, and tells the loop the news for those who watch. */
#ifndef GRANTOR_READER_H
#define GRANTOR_READER_H

#include "grantor/page.h"
#include "grantor/state.h"

/* One read. Made by the session, handed to the reader, and handed back on the loop's thread. */
struct grantor_job {
    struct aster_task task;
    struct grantor_job *next;
    struct grantor_state *state;
    struct grantor_session *session;
    struct grantor_peer *peer; /* counts it */
    uint64_t id;
    enum aster_call_kind kind;   /* LIST, HISTORY or WATCH */
    struct aster_bytes identity; /* whose eyes: views into bytes[] */
    struct aster_bytes name;     /* prefix or resource */
    struct aster_bytes after;
    int64_t after_revision;
    uint32_t limit;
    aster_status status; /* the result */
    struct aster_error error;
    int64_t revision; /* WATCH: everything up to it is in the chunks */
    struct grantor_chunk *chunks;
    struct grantor_chunk **chunks_end;
    char bytes[];
};

/* News for those who watch: events in order. */
struct grantor_news {
    struct aster_task task;
    struct grantor_state *state;
    struct grantor_happening *first;
    struct grantor_happening **end;
    bool lost; /* some did not find memory */
};

struct grantor_happening {
    struct grantor_happening *next;
    struct aster_event event;
    char bytes[];
};

/* Starts after what the history already has. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO. */
aster_status grantor_reader_create(struct grantor_state *state, struct grantor_reader **reader,
                                   struct aster_error *error);
/* Read once more to the end, then end the thread. Jobs must have been handed back. NULL is legal. */
void grantor_reader_destroy(struct grantor_reader *reader);

void grantor_reader_submit(struct grantor_reader *reader, struct grantor_job *job);
/* Something was decided: look soon. NULL is legal for these two. */
void grantor_reader_poke(struct grantor_reader *reader);
/* A watch ended; it was counted when its job was done. */
void grantor_reader_unwatch(struct grantor_reader *reader);

#endif
