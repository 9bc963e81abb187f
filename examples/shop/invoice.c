/* The one worker that must act alone. It holds a lease on its order while it renders, renewed in the background, and
 * stores the PDF under the fence of that lease: whether it may still write is decided in the transaction that writes,
 * not by what it believes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "aster/aster.h"
#include "pdf.h"
#include "shop.h"

#define WAIT_MS 120000

struct work {
    const struct shop *shop;
    const struct db_ops *ops;
    unsigned char *pdf;
    size_t pdf_size;
};

static bool insert(struct db *db, const struct work *work)
{
    const struct db_value values[] = {
        db_text(work->shop->order), db_text(work->shop->worker), {work->pdf, work->pdf_size}};
    return db_run(db, "INSERT INTO invoice (order_id, worker, pdf) VALUES ($1, $2, $3)", 3, values);
}

/* Runs inside the transaction in which the fence was checked. */
static aster_status insert_fenced(void *tx, void *user)
{
    struct work *work = user;
    struct db *db = work->ops->within(tx);
    bool stored = db != NULL && insert(db, work);
    db_close(db);
    return stored ? ASTER_OK : ASTER_ERR_IO;
}

static bool render(const struct shop *shop, struct work *work)
{
    const struct timespec pause = {shop->page_ms / 1000, shop->page_ms % 1000 * 1000000};
    struct pdf *pdf = pdf_new();
    for (int page = 1; pdf != NULL && page <= PDF_PAGES; page++) {
        pdf_page(pdf, page, shop->order, shop->worker);
        printf("invoice: %s rendered page %d of %d\n", shop->worker, page, PDF_PAGES);
        nanosleep(&pause, NULL);
    }
    work->pdf = pdf != NULL ? pdf_finish(pdf, &work->pdf_size) : NULL;
    return work->pdf != NULL;
}

/* The fence is the one of the grant, as a program remembers it that does not ask aster_lease_fence() again: the worst
 * that a writer can do. It is refused all the same. */
static int store(struct aster_serializer *serializer, const struct aster_fence *granted, struct work *work)
{
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_mutate_fenced(serializer, granted, granted->holder, insert_fenced, work, &verdict, &error) != ASTER_OK) {
        fprintf(stderr, "invoice: %s cannot store: %s\n", work->shop->worker, error.message);
        return SHOP_FAILED;
    }
    if (verdict.reason != ASTER_REASON_NONE) {
        printf("invoice: %s was REFUSED: %s, carried epoch %" PRId64 ", current %" PRId64 "\n", work->shop->worker,
               aster_reason_name(verdict.reason), verdict.carried_epoch, verdict.current_epoch);
        return SHOP_REFUSED;
    }
    printf("invoice: %s stored the invoice under epoch %" PRId64 "\n", work->shop->worker, granted->epoch);
    return 0;
}

static int work_under(struct aster_lease *lease, struct aster_serializer *serializer, struct db *db, struct work *work)
{
    const struct shop *shop = work->shop;
    char storage[ASTER_FENCE_TEXT_MAX];
    char text[ASTER_FENCE_TEXT_MAX];
    struct aster_fence granted;
    const struct db_value values[] = {db_text(shop->order)};
    const struct aster_fence *fence = aster_lease_fence(lease);
    if (fence == NULL || aster_fence_format(fence, text, sizeof text, NULL) != ASTER_OK ||
        aster_fence_parse(text, storage, sizeof storage, &granted, NULL) != ASTER_OK) {
        return SHOP_FAILED;
    }
    printf("invoice: %s was granted %s's invoice, epoch %" PRId64 "\n", shop->worker, shop->order, granted.epoch);
    if (db_number(db, "SELECT count(*) FROM invoice WHERE order_id = $1", 1, values) != 0) {
        printf("invoice: %s found %s invoiced already\n", shop->worker, shop->order);
        return 0;
    }
    if (!render(shop, work)) {
        return SHOP_FAILED;
    }
    if (!shop->without_fence) {
        return store(serializer, &granted, work);
    }
    if (!insert(db, work)) {
        return SHOP_FAILED;
    }
    printf("invoice: %s stored the invoice; nobody asked under which epoch\n", shop->worker);
    return 0;
}

int invoice_run(const struct shop *shop, struct db *db)
{
    struct work work = {shop, db->ops, NULL, 0};
    struct aster_serializer *serializer = NULL;
    struct aster_lease *lease = NULL;
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_lease_options options = ASTER_LEASE_OPTIONS_INIT;
    char resource[100];
    options.ttl_ms = shop->ttl_ms;
    options.wait_ms = WAIT_MS;
    snprintf(resource, sizeof resource, "invoice/%s", shop->order);
    aster_status status = db->ops->serializer(shop->url, &serializer, &error);
    if (status == ASTER_OK) {
        status = aster_lease_acquire(serializer, aster_text(resource), aster_text(shop->worker), &options, &lease,
                                     &reply, &error);
    }
    int code = SHOP_FAILED;
    if (status != ASTER_OK || lease == NULL) {
        fprintf(stderr, "invoice: %s was not granted: %s\n", shop->worker,
                status != ASTER_OK ? error.message : "somebody else holds it");
    } else {
        code = work_under(lease, serializer, db, &work);
        aster_lease_release(lease, 5000, NULL, NULL);
        aster_lease_destroy(lease);
    }
    free(work.pdf);
    aster_reply_fini(&reply);
    aster_serializer_destroy(serializer);
    return code;
}
