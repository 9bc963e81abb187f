#include "grantor/page.h"

#include <stdlib.h>

#define ENTRY_SIZE 112 /* numbers and tags of one row or event */

struct grantor_page *grantor_page_create(void)
{
    struct grantor_page *page = calloc(1, sizeof *page);
    unsigned char *scratch = malloc(ASTER_SCRATCH_SIZE);
    if (page == NULL || scratch == NULL) {
        free(page);
        free(scratch);
        return NULL;
    }
    page->scratch = (struct aster_scratch){scratch, ASTER_SCRATCH_SIZE, 0};
    return page;
}

void grantor_page_destroy(struct grantor_page *page)
{
    if (page != NULL) {
        free(page->scratch.data);
        free(page);
    }
}

void grantor_page_clear(struct grantor_page *page)
{
    page->count = 0;
    page->used = 0;
    page->kept = 0;
}

static bool reserve(struct grantor_page *page, size_t names)
{
    if (page->count == GRANTOR_PAGE_MAX || page->used + names + ENTRY_SIZE > GRANTOR_PAGE_BYTES) {
        return false;
    }
    page->used += names + ENTRY_SIZE;
    return true;
}

static void keep(struct grantor_page *page, struct aster_bytes *bytes)
{
    if (bytes->size > 0) {
        memcpy(page->names + page->kept, bytes->data, bytes->size);
        bytes->data = page->names + page->kept;
        page->kept += bytes->size;
    }
}

bool grantor_page_add_row(struct grantor_page *page, const struct aster_snapshot *row)
{
    if (!reserve(page, row->resource.size + row->holder.size + row->last_holder.size)) {
        return false;
    }
    struct aster_snapshot *copy = &page->rows[page->count++];
    *copy = *row;
    copy->value = (struct aster_bytes){NULL, 0};
    keep(page, &copy->resource);
    keep(page, &copy->holder);
    keep(page, &copy->last_holder);
    return true;
}

bool grantor_page_add_event(struct grantor_page *page, const struct aster_event *event)
{
    if (!reserve(page, event->resource.size + event->actor.size + event->previous.size)) {
        return false;
    }
    struct aster_event *copy = &page->events[page->count++];
    *copy = *event;
    keep(page, &copy->resource);
    keep(page, &copy->actor);
    keep(page, &copy->previous);
    return true;
}

static struct grantor_chunk *encode(struct grantor_page *page, const struct aster_answer *answer)
{
    size_t length;
    page->scratch.used = 0;
    if (aster_answer_encode(answer, &page->scratch, page->frame, sizeof page->frame, &length, NULL) != ASTER_OK) {
        return NULL;
    }
    struct grantor_chunk *chunk = malloc(sizeof *chunk + length);
    if (chunk != NULL) {
        chunk->next = NULL;
        chunk->size = length;
        memcpy(chunk->payload, page->frame, length);
    }
    return chunk;
}

struct grantor_chunk *grantor_page_rows(struct grantor_page *page, uint64_t id, bool more)
{
    struct aster_answer answer = {.id = id, .kind = ASTER_ANSWER_ROWS};
    answer.rows.rows = page->rows;
    answer.rows.count = page->count;
    answer.rows.more = more;
    return encode(page, &answer);
}

struct grantor_chunk *grantor_page_events(struct grantor_page *page, uint64_t id, const struct grantor_page_end *end)
{
    struct aster_answer answer = {.id = id, .kind = ASTER_ANSWER_EVENTS};
    answer.events.events = page->events;
    answer.events.count = page->count;
    answer.events.more = end->more;
    answer.events.revision = end->revision;
    answer.events.lost = end->lost;
    answer.events.cut = end->cut;
    return encode(page, &answer);
}
