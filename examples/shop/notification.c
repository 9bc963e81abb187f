/* Every invoice goes to the customer by mail: two invoices are two mails, and two payments that somebody must undo. */
#include <stdio.h>

#include "shop.h"

int notification_run(const struct shop *shop, struct db *db)
{
    const struct db_value values[] = {db_text(shop->order)};
    if (!db_run(db,
                "INSERT INTO mail SELECT i.number, o.customer FROM invoice i JOIN orders o ON o.id = i.order_id"
                " WHERE i.order_id = $1 ON CONFLICT DO NOTHING",
                1, values)) {
        return SHOP_FAILED;
    }
    printf("notification: ada got %lld mail(s) about %s\n",
           db_number(db, "SELECT count(*) FROM mail m JOIN invoice i ON i.number = m.invoice WHERE i.order_id = $1", 1,
                     values),
           shop->order);
    return 0;
}
