/* What decodes obeys every rule and encodes to something that decodes again; what does not is refused without harm. */
#include <stdint.h>
#include <stdlib.h>

#include "wire/frame.h"
#include "wire/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char memory[3][ASTER_SCRATCH_SIZE] __attribute__((aligned(16)));
static unsigned char wire[ASTER_FRAME_PAYLOAD_MAX];

static struct aster_scratch *scratch(int index)
{
    static struct aster_scratch scratches[3];
    scratches[index] = (struct aster_scratch){memory[index], sizeof memory[index], 0};
    return &scratches[index];
}

static void must(int truth)
{
    if (!truth) {
        abort();
    }
}

static void check_decision(const struct aster_decision *decision)
{
    must((decision->outcome == ASTER_GRANTED) == (decision->reason == ASTER_REASON_NONE));
    must(decision->kind >= ASTER_OP_ACQUIRE && decision->kind <= ASTER_OP_INSPECT);
    must(decision->epoch >= 0 && decision->snapshot.epoch >= 0 && decision->snapshot.remaining_ns >= 0);
    must(decision->snapshot.held == (decision->snapshot.holder.size > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aster_answer answer;
    struct aster_answer again;
    size_t length;
    if (aster_answer_decode((struct aster_bytes){data, size}, scratch(0), &answer, NULL) != ASTER_OK) {
        return 0;
    }
    if (answer.kind == ASTER_ANSWER_DECISION) {
        check_decision(&answer.decision);
    }
    if (answer.kind == ASTER_ANSWER_ERROR) {
        must(answer.error.status < 0 && answer.error.message.size < ASTER_ERROR_MESSAGE_MAX);
    }
    if (answer.kind == ASTER_ANSWER_NODES) {
        for (size_t i = 0; i < answer.nodes.count; i++) {
            must(aster_node_record_check(&answer.nodes.records[i], NULL) == ASTER_OK);
        }
    }
    if (answer.kind == ASTER_ANSWER_CHANGED) {
        must(answer.changed.held_ns >= 0);
        must(!answer.changed.is_rule || aster_verb_name(answer.changed.rule.verb) != NULL);
    }
    if (aster_answer_encode(&answer, scratch(1), wire, sizeof wire, &length, NULL) != ASTER_OK) {
        return 0; /* does not fit one frame: only a fuzzer's input can be that large */
    }
    must(aster_answer_decode((struct aster_bytes){wire, length}, scratch(2), &again, NULL) == ASTER_OK);
    must(again.kind == answer.kind && again.id == answer.id);
    return 0;
}
