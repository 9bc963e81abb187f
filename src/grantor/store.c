#include "grantor/store.h"

#include <string.h>

#include "aster/memory.h"
#include "aster/sqlite.h"
#include "base/error.h"
#include "grantor/log.h"
#include "journal/journalled.h"
#include "journal/sqlite/journal.h"

#define HISTORY_MAX 65536 /* the log follows the history: it must not be overtaken between two looks */
#define STRIPES 16        /* one thread decides; a journal that fails locks them all */

/* The loop is woken once for the answers of an append. */
static void answering(bool begin, void *user)
{
    const struct grantor_state *state = user;
    if (begin) {
        aster_loop_gather(state->loop);
    } else {
        aster_loop_gathered(state->loop);
    }
}

static void failing(aster_status status, const struct aster_error *error, void *user)
{
    struct grantor_line line;
    (void)user;
    grantor_line_init(&line, status != ASTER_OK ? GRANTOR_ERROR : GRANTOR_INFO,
                      status != ASTER_OK ? "journal-failing" : "journal-works-again");
    if (status != ASTER_OK) {
        grantor_line_text(&line, "error", error->message);
        grantor_line_text(&line, "note", "grants are refused, renewals go on");
    }
    grantor_line_end(&line);
}

static void say_loaded(struct aster_serializer *serializer, const char *journal)
{
    struct grantor_line line;
    grantor_line_init(&line, GRANTOR_INFO, "journal-loaded");
    grantor_line_text(&line, "journal", journal);
    grantor_line_number(&line, "rows", (int64_t)aster_journalled_counts(serializer).rows_loaded);
    grantor_line_end(&line);
}

static aster_status open_journalled(const char *path, struct grantor_state *state,
                                    const struct aster_memory_options *memory, struct aster_error *error)
{
    struct aster_sqlite_journal_options journal_options = ASTER_SQLITE_JOURNAL_OPTIONS_INIT;
    struct aster_journalled_options options = ASTER_JOURNALLED_OPTIONS_INIT;
    struct aster_journal journal;
    journal_options.history_max = HISTORY_MAX;
    options.memory = *memory;
    options.answering = answering;
    options.failing = failing;
    options.user = state;
    aster_status status = aster_sqlite_journal_open(path, &journal_options, &journal, error);
    if (status != ASTER_OK) {
        return status;
    }
    status = aster_journalled_open(&options, &journal, &state->serializer, error);
    if (status != ASTER_OK) {
        journal.ops->destroy(journal.self);
        return status;
    }
    say_loaded(state->serializer, path);
    return ASTER_OK;
}

static aster_status open_shared(const char *path, struct grantor_state *state, struct aster_error *error)
{
    struct aster_sqlite_options options = ASTER_SQLITE_OPTIONS_INIT;
    options.history_max = HISTORY_MAX;
    options.authorize = grantor_admission_authorize;
    options.authorize_user = state->admission;
    return aster_sqlite_open(path, &options, &state->serializer, error);
}

aster_status grantor_store_open(const struct grantor_settings *settings, struct grantor_state *state,
                                struct aster_error *error)
{
    const size_t prefix = strlen("sqlite:"); /* the settings are checked */
    if (settings->store != NULL) {
        return open_shared(settings->store + prefix, state, error);
    }
    struct aster_memory_options options = ASTER_MEMORY_OPTIONS_INIT;
    options.history_max = HISTORY_MAX;
    options.stripes = STRIPES;
    options.authorize = grantor_admission_authorize;
    options.authorize_user = state->admission;
    return strcmp(settings->journal, "none") == 0 ? aster_memory_open(&options, &state->serializer, error)
                                                  : open_journalled(settings->journal + prefix, state, &options, error);
}
