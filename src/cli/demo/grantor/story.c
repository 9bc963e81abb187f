#include <stdlib.h>

#include "base/error.h"
#include "cli/demo/grantor/parts.h"

static aster_status open_world(struct demo_stage *stage, struct aster_error *error)
{
    stage->grantor = calloc(1, sizeof *stage->grantor);
    if (stage->grantor == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the demo's grantor");
    }
    return aster_demo_grantor_open(stage, stage->grantor, error);
}

static void close_world(struct demo_stage *stage)
{
    if (stage->grantor == NULL) {
        return;
    }
    bool served = stage->grantor->pid > 0;
    int code = aster_demo_grantor_close(stage->grantor);
    if (served) {
        aster_demo_expect(stage->expectations, code == 0, "grantor.drained",
                          "asterd served to the end and drained when it was told to", "exit status %d", code);
    }
    free(stage->grantor);
    stage->grantor = NULL;
}

const struct demo_story aster_demo_grantor_story = {
    .parts = {{aster_demo_takeover_run, "takeover.played", "act 1 was played to its end"},
              {aster_demo_identity_check, "identity.played", "act 2 was played to its end"}},
    .part_count = 2,
    .caption =
        {"A worker is cut off, another takes over, the first one's write arrives late",
         "Real processes and a real asterd over QUIC; a relay is worker A's network. Every time below was measured.",
         "network cut", "the grantor's history, the decisions and the processes"},
    .kept_label = "log",
    .kept = "asterd.log",
    .open = open_world,
    .close = close_world};
