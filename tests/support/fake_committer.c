#include "support/fake_committer.h"

#include <stdlib.h>

#include "base/error.h"

static aster_status take(void *self, struct memory_change *change, const struct aster_row *row, bool same_value,
                         struct aster_error *error)
{
    struct fake_committer *fake = self;
    (void)row;
    (void)same_value;
    if (fake->refuses) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory in the fake committer");
    }
    change->event.revision = change->event.kind != 0 ? ++fake->revision : 0;
    change->next = NULL;
    *fake->end = change;
    fake->end = &change->next;
    fake->count++;
    return ASTER_OK;
}

static bool settle(void *self)
{
    struct fake_committer *fake = self;
    fake_committer_durable(fake, fake->count);
    return true;
}

static const struct aster_serializer_ops ops = {
    .struct_size = sizeof ops,
    .name = "committed",
    .traits = ASTER_SERIALIZER_QUEUES_WAITERS,
    .submit = aster_memory_submit,
    .cancel = aster_memory_cancel,
    .close = aster_memory_close,
    .wait = aster_memory_wait,
    .destroy = aster_memory_destroy,
    .list_page = aster_memory_list,
    .history = aster_memory_history,
};

void fake_committer_open(struct fake_committer *fake, const struct aster_clock *clock)
{
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    const struct memory_committer committer = {fake, take, settle};
    *fake = (struct fake_committer){.end = &fake->first};
    options.clock = clock;
    if (aster_memory_create(&options, &committer, &fake->memory, NULL) != ASTER_OK ||
        aster_serializer_create(&ops, fake->memory, clock, &fake->serializer, NULL) != ASTER_OK) {
        abort();
    }
}

void fake_committer_close(struct fake_committer *fake)
{
    fake_committer_durable(fake, fake->count);
    aster_serializer_destroy(fake->serializer);
}

static struct memory_change *pop(struct fake_committer *fake)
{
    struct memory_change *change = fake->first;
    fake->first = change->next;
    fake->end = fake->first == NULL ? &fake->first : fake->end;
    fake->count--;
    return change;
}

void fake_committer_durable(struct fake_committer *fake, size_t count)
{
    for (; count > 0; count--) {
        struct memory_change *change = pop(fake);
        aster_memory_durable(fake->memory, change);
        aster_memory_answer(change);
    }
}

void fake_committer_fail(struct fake_committer *fake, size_t count, aster_status status)
{
    struct memory_change *newest = NULL;
    struct memory_change *refused = NULL;
    struct aster_error error;
    aster_error_set(&error, status, "the fake journal failed");
    aster_memory_freeze(fake->memory);
    for (size_t i = 0; fake->count > 0; i++) {
        struct memory_change *change = pop(fake);
        change->tried = i < count;
        change->next = newest;
        newest = change;
    }
    for (struct memory_change *change = newest; change != NULL; change = change->next) {
        aster_memory_undo(fake->memory, change);
    }
    while (newest != NULL) {
        struct memory_change *change = newest;
        newest = change->next;
        if (change->request == NULL) {
            aster_memory_change_destroy(change);
        } else if (change->tried) {
            change->next = refused;
            refused = change;
        } else {
            aster_memory_redo(fake->memory, change);
        }
    }
    aster_memory_thaw(fake->memory);
    while (refused != NULL) {
        struct memory_change *change = refused;
        refused = change->next;
        aster_memory_refuse(change, status, &error);
    }
}
