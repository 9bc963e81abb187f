/* The fenced value: compare-and-set under the fence. */
#include <stdlib.h>

#include "kit.h"

static void a_put_needs_the_revision_that_was_read(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE && s->reply.decision.snapshot.value_revision == 0);
    EXPECT(put(s, "r", "a", 1, 1, "x") == ASTER_REASON_REVISION_MISMATCH);
    EXPECT(put(s, "r", "a", 1, 0, "one") == ASTER_REASON_NONE && s->reply.decision.snapshot.value_revision == 1);
    EXPECT(put(s, "r", "a", 1, 0, "lost") == ASTER_REASON_REVISION_MISMATCH);
    EXPECT(put(s, "r", "a", 1, 1, "two") == ASTER_REASON_NONE);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && is_text(row->value, "two") && row->value_revision == 2 && row->epoch == 1);
}

static void a_successor_is_told_the_value_and_a_stale_revision_is_refused(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    EXPECT(put(s, "r", "a", 1, 0, "from a") == ASTER_REASON_NONE);
    EXPECT(release(s, "r", "a", 1) == ASTER_REASON_NONE);
    EXPECT(acquire(s, "r", "b") == ASTER_REASON_NONE);
    EXPECT(is_text(s->reply.decision.snapshot.value, "from a") && s->reply.decision.snapshot.value_revision == 1);
    EXPECT(put(s, "r", "b", 3, 1, "from b") == ASTER_REASON_NONE);
    EXPECT(release(s, "r", "b", 3) == ASTER_REASON_NONE);
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 5);
    EXPECT(is_text(s->reply.decision.snapshot.last_holder, "b") && s->reply.decision.snapshot.last_epoch_held == 3);
    EXPECT(put(s, "r", "a", 5, 1, "built on what a remembers") == ASTER_REASON_REVISION_MISMATCH);
}

static void release_with_value_stores_and_frees_or_does_neither(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    struct aster_operation ending = op(ASTER_OP_RELEASE, "r", "a", 1);
    ending.flags = ASTER_OP_WITH_VALUE;
    ending.value = aster_text("result");
    ending.value_revision = 3;
    EXPECT(decide(s, &ending) == ASTER_REASON_REVISION_MISMATCH);
    const struct aster_snapshot *row = look(s, "r");
    EXPECT(row != NULL && row->held && row->epoch == 1 && row->value_revision == 0 && row->value.size == 0);
    ending.value_revision = 0;
    EXPECT(decide(s, &ending) == ASTER_REASON_NONE && s->reply.decision.epoch == 2);
    row = look(s, "r");
    EXPECT(row != NULL && !row->held && is_text(row->value, "result") && row->value_revision == 1);
}

static void a_value_of_64_kib_fits_and_one_byte_more_is_refused(struct scenario *s)
{
    EXPECT(acquire(s, "r", "a") == ASTER_REASON_NONE);
    char *bytes = malloc(ASTER_VALUE_MAX + 1);
    EXPECT(bytes != NULL);
    memset(bytes, 0xab, ASTER_VALUE_MAX + 1);
    struct aster_operation operation = op(ASTER_OP_PUT, "r", "a", 1);
    operation.holder = aster_text("a");
    operation.value = (struct aster_bytes){bytes, ASTER_VALUE_MAX + 1};
    enum aster_reason too_long = decide(s, &operation);
    aster_status refused = s->status;
    operation.value.size = ASTER_VALUE_MAX;
    enum aster_reason longest = decide(s, &operation);
    const struct aster_snapshot *row = look(s, "r");
    bool kept = row != NULL && aster_bytes_equal(row->value, operation.value);
    operation.value.size = 0;
    operation.value_revision = 1;
    enum aster_reason empty = decide(s, &operation);
    free(bytes);
    EXPECT(too_long == FAILED && refused == ASTER_ERR_INVALID);
    EXPECT(longest == ASTER_REASON_NONE && kept);
    EXPECT(empty == ASTER_REASON_NONE);
    row = look(s, "r");
    EXPECT(row != NULL && row->value.size == 0 && row->value_revision == 2);
}

const struct scenario_entry aster_conformance_values[] = {
    {"a put needs the revision that was read", a_put_needs_the_revision_that_was_read},
    {"a successor is told the value, and a stale revision is refused",
     a_successor_is_told_the_value_and_a_stale_revision_is_refused},
    {"release with value stores and frees, or does neither", release_with_value_stores_and_frees_or_does_neither},
    {"a value of 64 KiB fits and one byte more is refused", a_value_of_64_kib_fits_and_one_byte_more_is_refused},
    {NULL, NULL},
};
