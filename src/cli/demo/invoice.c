#include "cli/demo/invoice.h"

#include <inttypes.h>
#include <stdio.h>

int64_t aster_demo_invoice_net_cents(const struct demo_invoice *invoice)
{
    int64_t net = 0;
    for (size_t i = 0; i < invoice->line_count; i++) {
        net += invoice->lines[i].quantity * invoice->lines[i].unit_cents;
    }
    return net;
}

int64_t aster_demo_invoice_vat_cents(const struct demo_invoice *invoice)
{
    return (aster_demo_invoice_net_cents(invoice) * DEMO_VAT_PERCENT + 50) / 100;
}

int64_t aster_demo_invoice_total_cents(const struct demo_invoice *invoice)
{
    return aster_demo_invoice_net_cents(invoice) + aster_demo_invoice_vat_cents(invoice);
}

const char *aster_demo_money(int64_t cents, char text[DEMO_MONEY_MAX])
{
    char digits[DEMO_MONEY_MAX];
    int count = snprintf(digits, sizeof digits, "%" PRId64, cents / 100);
    int out = 0;
    for (int i = 0; i < count; i++) {
        text[out++] = digits[i];
        int left = count - 1 - i;
        if (left > 0 && left % 3 == 0) {
            text[out++] = ',';
        }
    }
    snprintf(text + out, (size_t)(DEMO_MONEY_MAX - out), ".%02d", (int)(cents % 100));
    return text;
}
