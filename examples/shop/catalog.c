/* What there is to buy. It owns the tables, too: each module writes only its own. */
#include <stdio.h>
#include <stdlib.h>

#include "shop.h"

static const char *const tables[] = {
    "CREATE TABLE IF NOT EXISTS product (sku TEXT PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS cart (customer TEXT, sku TEXT, n INTEGER NOT NULL, PRIMARY KEY (customer, sku))",
    "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS payment (order_id TEXT PRIMARY KEY, cents INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS parcel (order_id TEXT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS mail (invoice BIGINT PRIMARY KEY, customer TEXT NOT NULL)",
};

/* No UNIQUE (order_id): an order may be invoiced again after a correction. So the table itself cannot tell a second
 * worker from a correction; the fence can. */
static bool create_invoice_table(struct db *db)
{
    char sql[300];
    snprintf(sql, sizeof sql,
             "CREATE TABLE IF NOT EXISTS invoice (number %s, order_id TEXT NOT NULL, worker TEXT NOT NULL, pdf %s NOT "
             "NULL)",
             db->ops->counter_type, db->ops->blob_type);
    return db_run(db, sql, 0, NULL);
}

int catalog_run(const struct shop *shop, struct db *db)
{
    static const struct db_value products[][3] = {
        {{"TEA-1", 0}, {"Assam, 250 g", 0}, {"890", 0}},
        {{"POT-2", 0}, {"Teapot, cast iron", 0}, {"5490", 0}},
        {{"CUP-4", 0}, {"Four cups", 0}, {"2400", 0}},
    };
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!db_run(db, tables[i], 0, NULL)) {
            return SHOP_FAILED;
        }
    }
    if (!create_invoice_table(db) || (!shop->without_fence && !db->ops->protect(db))) {
        return SHOP_FAILED;
    }
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (!db_run(db, "INSERT INTO product VALUES ($1, $2, CAST($3 AS INTEGER)) ON CONFLICT DO NOTHING", 3,
                    products[i])) {
            return SHOP_FAILED;
        }
    }
    printf("catalog: %lld products; the table invoice is %s\n", db_number(db, "SELECT count(*) FROM product", 0, NULL),
           shop->without_fence ? "NOT protected" : "protected: one fence for each order");
    return 0;
}
