#include "cli/demo/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "cli/demo/invoice.h"
#include "cli/demo/ownership.h"
#include "cli/demo/say.h"
#include "cli/demo/timeline.h"

#define WAIT_MS 30000
#define LOOK_MS 10 /* how often it looks at its renewals while it renders */

struct worker {
    const struct demo_ownership_ops *ops;
    void *ownership;
    struct demo_place place;
    const char *pdf_path;
    int64_t step_ms;
    int64_t epoch;
    int64_t renewals_seen;
    struct demo_publication publication;
    unsigned char *pdf; /* owned; publication.pdf */
};

static aster_status await_command(const char *expected, struct aster_error *error)
{
    char line[32];
    size_t length = 0;
    while (length + 1 < sizeof line && (length == 0 || line[length - 1] != '\n')) {
        ssize_t got = read(STDIN_FILENO, line + length, 1);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return aster_error_set(error, ASTER_ERR_CLOSED, "the director is gone");
        }
        length += got > 0 ? 1 : 0;
    }
    line[length] = '\0';
    if (strcmp(line, expected) != 0) {
        return aster_error_set(error, ASTER_ERR_INVALID, "an unexpected command from the director");
    }
    return ASTER_OK;
}

static aster_status own(struct worker *worker, struct aster_error *error)
{
    struct demo_grant grant = {0};
    aster_status status = worker->ops->acquire(worker->ownership, 0, &grant, error);
    if (status == ASTER_OK && !grant.granted) {
        aster_demo_say(DEMO_SAYS_DENIED, aster_demo_now_ns(), grant.epoch, 0, grant.reason, "%s", grant.other);
        aster_demo_say(DEMO_SAYS_WAITING, aster_demo_now_ns(), 0, 0, "-", "-");
        status = worker->ops->acquire(worker->ownership, WAIT_MS, &grant, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    if (!grant.granted) {
        return aster_error_set(error, ASTER_ERR_TIMEOUT, "not granted within %d ms: %s", WAIT_MS, grant.reason);
    }
    worker->epoch = grant.epoch;
    aster_demo_say(DEMO_SAYS_GRANTED, aster_demo_now_ns(), grant.epoch, 0, grant.takeover ? "TAKEOVER" : "FRESH", "%s",
                   grant.other[0] != '\0' ? grant.other : "-");
    return ASTER_OK;
}

/* The work of one step takes step_ms; renewals go on meanwhile. */
static aster_status work(struct worker *worker, struct aster_error *error)
{
    int64_t until_ns = aster_demo_now_ns() + aster_ms_to_ns(worker->step_ms);
    do {
        struct demo_renewals renewals = {0};
        aster_status status = worker->ops->renewals(worker->ownership, &renewals, error);
        if (status != ASTER_OK) {
            return status;
        }
        if (renewals.count > worker->renewals_seen) {
            worker->renewals_seen = renewals.count;
            aster_demo_say(DEMO_SAYS_RENEWED, renewals.last_ns, worker->epoch, renewals.count, "-", "-");
        }
        nanosleep(&(struct timespec){0, aster_ms_to_ns(LOOK_MS)}, NULL);
    } while (aster_demo_now_ns() < until_ns);
    return ASTER_OK;
}

static aster_status read_order(const struct worker *worker, struct demo_invoice *order, struct aster_error *error)
{
    sqlite3 *db = NULL;
    aster_status status = aster_demo_store_connect(worker->place.database, &db, error);
    if (status == ASTER_OK) {
        status = aster_demo_store_read_order(db, order, error);
        sqlite3_close(db);
    }
    return status;
}

static aster_status keep_file(const struct worker *worker, struct aster_error *error)
{
    FILE *file = fopen(worker->pdf_path, "wb");
    if (file == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create the PDF file");
    }
    size_t written = fwrite(worker->pdf, 1, worker->publication.pdf_size, file);
    if (fclose(file) != 0 || written != worker->publication.pdf_size) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write the PDF file");
    }
    return ASTER_OK;
}

static aster_status draw(struct worker *worker, struct demo_pdf *pdf, struct aster_error *error)
{
    aster_status status = ASTER_OK;
    for (unsigned step = 0; status == ASTER_OK && step < aster_demo_pdf_steps(pdf); step++) {
        status = aster_demo_pdf_step(pdf, step, error);
        if (status == ASTER_OK) {
            status = work(worker, error);
            aster_demo_say(DEMO_SAYS_STEP, aster_demo_now_ns(), worker->epoch, step + 1, "-", "of %u",
                           aster_demo_pdf_steps(pdf));
        }
    }
    if (status == ASTER_OK) {
        status = aster_demo_pdf_finish(pdf, &worker->pdf, &worker->publication.pdf_size, error);
    }
    return status;
}

static aster_status render(struct worker *worker, struct aster_error *error)
{
    struct demo_invoice order;
    struct demo_pdf *pdf = NULL;
    int64_t began_ns = aster_demo_now_ns();
    aster_status status = read_order(worker, &order, error);
    if (status == ASTER_OK) {
        status = aster_demo_pdf_create(&order, worker->place.worker, worker->epoch, &pdf, error);
    }
    if (status == ASTER_OK) {
        status = draw(worker, pdf, error);
    }
    aster_demo_pdf_destroy(pdf);
    if (status == ASTER_OK) {
        worker->publication.published_by = worker->place.worker;
        worker->publication.epoch = worker->epoch;
        worker->publication.total_cents = aster_demo_invoice_total_cents(&order);
        worker->publication.pdf = worker->pdf;
        status = keep_file(worker, error);
    }
    if (status == ASTER_OK) {
        char money[DEMO_MONEY_MAX];
        int64_t now_ns = aster_demo_now_ns();
        aster_demo_say(DEMO_SAYS_RENDERED, now_ns, worker->epoch, (now_ns - began_ns) / ASTER_NS_PER_MS, "-", "%s",
                       aster_demo_money(worker->publication.total_cents, money));
    }
    return status;
}

/* The gap that no lease can close: the check is made, the write is on its way, and anything may happen in between. */
static aster_status check_then_write(struct worker *worker, struct aster_verdict *verdict, struct aster_error *error)
{
    bool allowed = false;
    int64_t epoch = 0;
    aster_status status = worker->ops->check(worker->ownership, &allowed, &epoch, error);
    if (status == ASTER_OK && !allowed) {
        status = aster_error_set(error, ASTER_ERR_TIMEOUT, "the lease ended while rendering; the machine is too busy");
    }
    if (status == ASTER_OK) {
        aster_demo_say(DEMO_SAYS_ARMED, aster_demo_now_ns(), epoch, 0, "-", "-");
        status = await_command(DEMO_COMMAND_WRITE, error);
    }
    if (status == ASTER_OK) {
        status = worker->ops->publish(worker->ownership, &worker->publication, verdict, error);
    }
    if (status == ASTER_OK && verdict->reason == ASTER_REASON_NONE) {
        char money[DEMO_MONEY_MAX];
        aster_demo_say(DEMO_SAYS_PUBLISHED, aster_demo_now_ns(), worker->epoch, (int64_t)worker->publication.pdf_size,
                       "-", "%s", aster_demo_money(worker->publication.total_cents, money));
    } else if (status == ASTER_OK) {
        aster_demo_say(DEMO_SAYS_REJECTED, aster_demo_now_ns(), verdict->carried_epoch, verdict->current_epoch,
                       aster_reason_name(verdict->reason), "-");
    }
    return status;
}

static aster_status report_aftermath(struct worker *worker, struct aster_error *error)
{
    struct demo_aftermath aftermath;
    aster_status status = worker->ops->aftermath(worker->ownership, &worker->publication, &aftermath, error);
    if (status == ASTER_OK) {
        aster_demo_say(DEMO_SAYS_GUARDED, aster_demo_now_ns(), worker->epoch, 0,
                       aftermath.raw_write_refused ? "refused" : "ACCEPTED", "%s", aftermath.raw_message);
        aster_demo_say(DEMO_SAYS_ENDED, aster_demo_now_ns(), worker->epoch, aftermath.supplies_fence, aftermath.status,
                       "-");
    }
    return status;
}

static aster_status play(struct worker *worker, bool *refused, struct aster_error *error)
{
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    aster_status status = worker->ops->open(&worker->place, &worker->ownership, error);
    if (status == ASTER_OK) {
        status = own(worker, error);
    }
    if (status == ASTER_OK) {
        status = render(worker, error);
    }
    if (status == ASTER_OK) {
        status = check_then_write(worker, &verdict, error);
    }
    if (status != ASTER_OK) {
        return status;
    }
    *refused = verdict.reason != ASTER_REASON_NONE;
    if (*refused) {
        return worker->ops->aftermath != NULL ? report_aftermath(worker, error) : ASTER_OK;
    }
    status = await_command(DEMO_COMMAND_FINISH, error);
    if (status == ASTER_OK) {
        status = worker->ops->release(worker->ownership, error);
    }
    if (status == ASTER_OK) {
        aster_demo_say(DEMO_SAYS_RELEASED, aster_demo_now_ns(), worker->epoch, 0, "-", "-");
    }
    return status;
}

static const struct demo_ownership_ops *find_mode(const char *mode)
{
    if (strcmp(mode, DEMO_MODE_FENCED) == 0) {
        return &aster_demo_fenced_ownership;
    }
    if (strcmp(mode, DEMO_MODE_UNCHECKED) == 0) {
        return &aster_demo_unchecked_ownership;
    }
    if (strcmp(mode, DEMO_MODE_GRANTOR) == 0) {
        return &aster_demo_grantor_ownership;
    }
    return strcmp(mode, DEMO_MODE_PLAIN) == 0 ? &aster_demo_plain_ownership : NULL;
}

int aster_demo_worker_main(int argument_count, char *const arguments[])
{
    struct worker worker = {.ops = argument_count == DEMO_WORKER_ARGUMENTS ? find_mode(arguments[0]) : NULL};
    if (worker.ops == NULL) {
        fprintf(stderr, "aster demo: workers are started by the demo itself\n");
        return DEMO_WORKER_FAILED;
    }
    worker.place = (struct demo_place){arguments[2], arguments[6], arguments[7], arguments[1], 0};
    worker.place.ttl_ms = strtoll(arguments[3], NULL, 10);
    worker.step_ms = strtoll(arguments[4], NULL, 10);
    worker.pdf_path = arguments[5];
    struct aster_error error = ASTER_ERROR_INIT;
    bool refused = false;
    aster_status status = play(&worker, &refused, &error);
    if (status != ASTER_OK) {
        aster_demo_say(DEMO_SAYS_FAILED, aster_demo_now_ns(), 0, 0, aster_status_name(status), "%.*s",
                       DEMO_MESSAGE_TEXT_MAX - 1, error.message);
    }
    if (worker.ownership != NULL) {
        worker.ops->close(worker.ownership);
    }
    free(worker.pdf);
    if (status != ASTER_OK) {
        return DEMO_WORKER_FAILED;
    }
    return refused ? DEMO_WORKER_REFUSED : DEMO_WORKER_PUBLISHED;
}
