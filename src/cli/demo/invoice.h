/* The invoice of the demo: its data, and the page rendered from it. */
#ifndef DEMO_INVOICE_H
#define DEMO_INVOICE_H

#include <stdint.h>

#include "aster/status.h"

#define DEMO_INVOICE_NUMBER "B-1042"
#define DEMO_RESOURCE "invoice/" DEMO_INVOICE_NUMBER
#define DEMO_LINES_MAX 8
#define DEMO_VAT_PERCENT 19

struct demo_invoice_line {
    char text[64];
    int64_t quantity;
    int64_t unit_cents;
};

struct demo_invoice {
    struct demo_invoice_line lines[DEMO_LINES_MAX];
    size_t line_count;
};

int64_t aster_demo_invoice_net_cents(const struct demo_invoice *invoice);
int64_t aster_demo_invoice_vat_cents(const struct demo_invoice *invoice);
int64_t aster_demo_invoice_total_cents(const struct demo_invoice *invoice);

/* "1,234.50" of cents; writes at most `size` bytes with the NUL and returns `text`. */
#define DEMO_MONEY_MAX 40
const char *aster_demo_money(int64_t cents, char text[DEMO_MONEY_MAX]);

/* A page being rendered, one step at a time, so that the caller decides how long it takes. Not thread-safe. */
struct demo_pdf;

/* `invoice` and `rendered_by` are copied. Errors: ASTER_ERR_NOMEM, ASTER_ERR_IO (the PDF library, with its code). */
aster_status aster_demo_pdf_create(const struct demo_invoice *invoice, const char *rendered_by, int64_t epoch,
                                   struct demo_pdf **pdf, struct aster_error *error);
unsigned aster_demo_pdf_steps(const struct demo_pdf *pdf);
/* Draw step 0..steps-1, each once, in order. */
aster_status aster_demo_pdf_step(struct demo_pdf *pdf, unsigned step, struct aster_error *error);
/* The file's bytes, to be freed with free(). */
aster_status aster_demo_pdf_finish(struct demo_pdf *pdf, unsigned char **bytes, size_t *size,
                                   struct aster_error *error);
void aster_demo_pdf_destroy(struct demo_pdf *pdf); /* NULL is legal */

#endif
