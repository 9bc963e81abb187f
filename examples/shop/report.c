#include <stdio.h>

#include "shop.h"

int report_run(const struct shop *shop, struct db *db)
{
    const struct db_value values[] = {db_text(shop->order)};
    long long invoices = db_number(db, "SELECT count(*) FROM invoice WHERE order_id = $1", 1, values);
    printf("%s: %lld invoice(s), %lld parcel(s), %lld mail(s)\n", shop->order, invoices,
           db_number(db, "SELECT count(*) FROM parcel WHERE order_id = $1", 1, values),
           db_number(db, "SELECT count(*) FROM mail m JOIN invoice i ON i.number = m.invoice WHERE i.order_id = $1", 1,
                     values));
    return invoices < 0 ? SHOP_FAILED : 0;
}
