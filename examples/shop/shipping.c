/* An order with an invoice goes into a parcel, once. */
#include <stdio.h>

#include "shop.h"

int shipping_run(const struct shop *shop, struct db *db)
{
    const struct db_value values[] = {db_text(shop->order)};
    if (!db_run(db,
                "INSERT INTO parcel SELECT DISTINCT order_id FROM invoice WHERE order_id = $1 ON CONFLICT DO NOTHING",
                1, values)) {
        return SHOP_FAILED;
    }
    printf("shipping: %lld parcel for %s\n",
           db_number(db, "SELECT count(*) FROM parcel WHERE order_id = $1", 1, values), shop->order);
    return 0;
}
