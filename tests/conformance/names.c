/* Names are bytes: compared one by one, refused when they are no text, never merged. */
#include <stdio.h>

#include "kit.h"

static enum aster_reason acquire_bytes(struct scenario *s, const void *data, size_t size)
{
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "", "a", 0);
    operation.resource = (struct aster_bytes){data, size};
    operation.ttl_ms = s->ttl_ms;
    return decide(s, &operation);
}

static void names_up_to_512_bytes_are_accepted_and_longer_ones_refused(struct scenario *s)
{
    char name[ASTER_RESOURCE_MAX + 1];
    memset(name, 'n', sizeof name);
    const size_t good[] = {1, 64, 255, 511, 512};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        EXPECT(acquire_bytes(s, name, good[i]) == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    }
    EXPECT(acquire_bytes(s, name, 513) == FAILED && s->status == ASTER_ERR_INVALID);
    EXPECT(acquire_bytes(s, name, 0) == FAILED && s->status == ASTER_ERR_INVALID);
    struct aster_operation operation = op(ASTER_OP_ACQUIRE, "who", NULL, 0);
    operation.ttl_ms = s->ttl_ms;
    operation.caller = (struct aster_bytes){name, ASTER_IDENTITY_MAX + 1};
    EXPECT(decide(s, &operation) == FAILED && s->status == ASTER_ERR_INVALID);
    operation.caller.size = ASTER_IDENTITY_MAX;
    EXPECT(decide(s, &operation) == ASTER_REASON_NONE && s->reply.decision.snapshot.holder.size == ASTER_IDENTITY_MAX);
}

static void names_that_are_no_text_are_refused(struct scenario *s)
{
    static const struct aster_bytes bad[] = {
        {"a\0b", 3}, {"a\nb", 3},     {"\x7f", 1},         {"\xc2\x85", 2},
        {"\x80", 1}, {"\xc0\xaf", 2}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        EXPECT(acquire_bytes(s, bad[i].data, bad[i].size) == FAILED && s->status == ASTER_ERR_INVALID);
    }
}

static void names_that_look_alike_are_different_rows(struct scenario *s)
{
    static const char *const names[] = {"a/b",         "a_b",          "a%2Fb",    "A/B",     "a/b ",    " a/b",
                                        "caf\xc3\xa9", "cafe\xcc\x81", "c:\\a\\b", "c:\\a_b", "a/b/../b"};
    const size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++) {
        EXPECT(acquire(s, names[i], "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    }
    for (size_t i = 0; i < count; i++) {
        const struct aster_snapshot *row = look(s, names[i]);
        EXPECT(row != NULL && row->held && row->epoch == 1 && is_text(row->resource, names[i]));
    }
    EXPECT(acquire(s, "who", "caf\xc3\xa9") == ASTER_REASON_NONE);
    EXPECT(renew(s, "who", "cafe\xcc\x81", 1) == ASTER_REASON_NOT_HOLDER);
}

static void many_resources_of_one_holder_are_independent(struct scenario *s)
{
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "row-%d", i);
        EXPECT(acquire(s, name, "a") == ASTER_REASON_NONE && s->reply.decision.epoch == 1);
    }
    for (int i = 0; i < 200; i += 2) {
        snprintf(name, sizeof name, "row-%d", i);
        EXPECT(release(s, name, "a", 1) == ASTER_REASON_NONE);
    }
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "row-%d", i);
        const struct aster_snapshot *row = look(s, name);
        EXPECT(row != NULL && row->held == (i % 2 == 1) && row->epoch == 2 - i % 2);
    }
}

const struct scenario_entry aster_conformance_names[] = {
    {"names up to 512 bytes are accepted and longer ones refused",
     names_up_to_512_bytes_are_accepted_and_longer_ones_refused},
    {"names that are no text are refused", names_that_are_no_text_are_refused},
    {"names that look alike are different rows", names_that_look_alike_are_different_rows},
    {"many resources of one holder are independent", many_resources_of_one_holder_are_independent},
    {NULL, NULL},
};
