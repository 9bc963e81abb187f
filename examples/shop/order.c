/* A cart becomes an order. */
#include <stdio.h>

#include "shop.h"

int order_run(const struct shop *shop, struct db *db)
{
    const struct db_value values[] = {db_text(shop->order)};
    if (!db_run(db,
                "INSERT INTO orders SELECT $1, 'ada', sum(p.cents * c.n) FROM cart c JOIN product p ON p.sku = c.sku"
                " WHERE c.customer = 'ada' ON CONFLICT DO NOTHING",
                1, values)) {
        return SHOP_FAILED;
    }
    printf("order: %s over %lld cents\n", shop->order,
           db_number(db, "SELECT cents FROM orders WHERE id = $1", 1, values));
    return 0;
}
