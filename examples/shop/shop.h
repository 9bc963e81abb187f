/* A small shop: seven modules over one database, each a process of its own (`shop MODULE`). Only one of them must act
 * alone, the invoice worker; the others are safe to repeat. */
#ifndef SHOP_H
#define SHOP_H

#include <stdbool.h>
#include <stdint.h>

#include "db.h"

struct shop {
    const char *url;    /* sqlite:PATH or postgresql://... */
    const char *order;  /* "B-1042" */
    const char *worker; /* who we are */
    int64_t ttl_ms;     /* of the invoice worker's lease */
    int64_t page_ms;    /* how long a page takes to render */
    bool without_fence; /* what happens when nobody checks at the write */
};

/* The modules. Each returns an exit status. */
int catalog_run(const struct shop *shop, struct db *db);
int cart_run(const struct shop *shop, struct db *db);
int order_run(const struct shop *shop, struct db *db);
int payment_run(const struct shop *shop, struct db *db);
int invoice_run(const struct shop *shop, struct db *db);
int shipping_run(const struct shop *shop, struct db *db);
int notification_run(const struct shop *shop, struct db *db);

/* How many of everything there is for the order. */
int report_run(const struct shop *shop, struct db *db);

#define SHOP_FAILED 74
#define SHOP_REFUSED 77

#endif
