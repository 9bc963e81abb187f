/* What a customer means to buy. */
#include <stdio.h>

#include "shop.h"

int cart_run(const struct shop *shop, struct db *db)
{
    (void)shop;
    if (!db_run(db, "INSERT INTO cart SELECT 'ada', sku, 1 FROM product WHERE cents > 1000 ON CONFLICT DO NOTHING", 0,
                NULL)) {
        return SHOP_FAILED;
    }
    printf("cart: ada has %lld things in it\n",
           db_number(db, "SELECT count(*) FROM cart WHERE customer = 'ada'", 0, NULL));
    return 0;
}
