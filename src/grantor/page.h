/* Rows or events copied together until one frame is full. One thread at a time. */
#ifndef GRANTOR_PAGE_H
#define GRANTOR_PAGE_H

#include "wire/frame.h"
#include "wire/reply.h"

#define GRANTOR_PAGE_MAX 1024
#define GRANTOR_PAGE_BYTES 98304 /* of names and numbers; what surrounds them has the rest of the frame */

struct grantor_page {
    struct aster_snapshot rows[GRANTOR_PAGE_MAX];
    struct aster_event events[GRANTOR_PAGE_MAX];
    size_t count; /* of either */
    size_t used;  /* bytes that they will need at most */
    size_t kept;
    char names[GRANTOR_PAGE_BYTES];
    struct aster_scratch scratch;
    unsigned char frame[ASTER_FRAME_PAYLOAD_MAX];
};

/* An encoded reply that waits for room in a link's buffer. */
struct grantor_chunk {
    struct grantor_chunk *next;
    size_t size;
    unsigned char payload[];
};

/* NULL when out of memory. */
struct grantor_page *grantor_page_create(void);
void grantor_page_destroy(struct grantor_page *page);

void grantor_page_clear(struct grantor_page *page);
/* Copy one in, without its value; false when the page is full. */
bool grantor_page_add_row(struct grantor_page *page, const struct aster_snapshot *row);
bool grantor_page_add_event(struct grantor_page *page, const struct aster_event *event);

/* What is told with a page of events; see Events in the schema. */
struct grantor_page_end {
    int64_t revision;
    bool more;
    bool lost;
    bool cut;
};

/* The page as a reply; NULL when out of memory. */
struct grantor_chunk *grantor_page_rows(struct grantor_page *page, uint64_t id, bool more);
struct grantor_chunk *grantor_page_events(struct grantor_page *page, uint64_t id, const struct grantor_page_end *end);

#endif
