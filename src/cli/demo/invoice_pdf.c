#include "cli/demo/invoice.h"

#include <hpdf.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* A4 in points, origin at the bottom left. */
#define PAGE_WIDTH 595.0f
#define LEFT 56.0f
#define RIGHT (PAGE_WIDTH - LEFT)
#define TABLE_TOP 512.0f
#define ROW_HEIGHT 26.0f

struct colour {
    float red, green, blue;
};

static const struct colour ink = {0.13f, 0.16f, 0.22f};
static const struct colour grey = {0.45f, 0.49f, 0.56f};
static const struct colour hairline = {0.84f, 0.86f, 0.90f};
static const struct colour stripe = {0.960f, 0.968f, 0.980f};
static const struct colour white = {1.0f, 1.0f, 1.0f};
static const struct colour first_epoch = {0.184f, 0.435f, 0.871f};
static const struct colour later_epoch = {0.098f, 0.588f, 0.376f};

enum fixed_step { STEP_LETTERHEAD, STEP_PARTIES, STEP_TABLE_HEAD, FIXED_STEPS };

struct demo_pdf {
    HPDF_Doc document;
    HPDF_Page page;
    HPDF_Font regular;
    HPDF_Font bold;
    HPDF_STATUS failure; /* first error of the library */
    struct demo_invoice invoice;
    char rendered_by[64];
    int64_t epoch;
};

static void on_failure(HPDF_STATUS code, HPDF_STATUS detail, void *user)
{
    (void)detail;
    struct demo_pdf *pdf = user;
    if (pdf->failure == HPDF_OK) {
        pdf->failure = code;
    }
}

static aster_status verdict_of(const struct demo_pdf *pdf, struct aster_error *error)
{
    if (pdf->failure == HPDF_OK) {
        return ASTER_OK;
    }
    return aster_error_set(error, ASTER_ERR_IO, "the PDF library failed with code 0x%04lx; see hpdf_error.h",
                           (unsigned long)pdf->failure);
}

static void fill_colour(struct demo_pdf *pdf, struct colour colour)
{
    HPDF_Page_SetRGBFill(pdf->page, colour.red, colour.green, colour.blue);
}

static void box(struct demo_pdf *pdf, float x, float y, float width, float height, struct colour colour)
{
    fill_colour(pdf, colour);
    HPDF_Page_Rectangle(pdf->page, x, y, width, height);
    HPDF_Page_Fill(pdf->page);
}

static void rule(struct demo_pdf *pdf, float y)
{
    box(pdf, LEFT, y, RIGHT - LEFT, 0.7f, hairline);
}

static void text_at(struct demo_pdf *pdf, float x, float y, bool bold, float size, struct colour colour,
                    const char *text)
{
    fill_colour(pdf, colour);
    HPDF_Page_BeginText(pdf->page);
    HPDF_Page_SetFontAndSize(pdf->page, bold ? pdf->bold : pdf->regular, size);
    HPDF_Page_TextOut(pdf->page, x, y, text);
    HPDF_Page_EndText(pdf->page);
}

static void text_right(struct demo_pdf *pdf, float right, float y, bool bold, float size, struct colour colour,
                       const char *text)
{
    HPDF_Page_SetFontAndSize(pdf->page, bold ? pdf->bold : pdf->regular, size);
    text_at(pdf, right - HPDF_Page_TextWidth(pdf->page, text), y, bold, size, colour, text);
}

static struct colour accent(const struct demo_pdf *pdf)
{
    return pdf->epoch <= 1 ? first_epoch : later_epoch;
}

static void draw_letterhead(struct demo_pdf *pdf)
{
    box(pdf, 0, 832, PAGE_WIDTH, 10, accent(pdf));
    box(pdf, LEFT, 768, 30, 30, accent(pdf));
    text_at(pdf, LEFT + 8.6f, 775.5f, true, 20, white, "A");
    text_at(pdf, LEFT + 42, 784, true, 15, ink, "Aster Print & Paper");
    text_at(pdf, LEFT + 42, 769, false, 9, grey, "14 Foundry Lane, 20457 Hamburg");
    text_right(pdf, RIGHT, 774, true, 26, ink, "INVOICE");
    rule(pdf, 746);
}

static void draw_field(struct demo_pdf *pdf, float x, float y, const char *label, const char *value)
{
    text_at(pdf, x, y, false, 8, grey, label);
    text_at(pdf, x, y - 14, true, 10.5f, ink, value);
}

static void draw_parties(struct demo_pdf *pdf)
{
    text_at(pdf, LEFT, 716, false, 8, grey, "BILL TO");
    text_at(pdf, LEFT, 700, true, 12, ink, "Harbour Books GmbH");
    text_at(pdf, LEFT, 685, false, 10, ink, "Accounts payable");
    text_at(pdf, LEFT, 671, false, 10, ink, "Am Sandtorkai 3");
    text_at(pdf, LEFT, 657, false, 10, ink, "20457 Hamburg");
    draw_field(pdf, 352, 716, "INVOICE NUMBER", DEMO_INVOICE_NUMBER);
    draw_field(pdf, 462, 716, "CUSTOMER", "C-0817");
    draw_field(pdf, 352, 680, "DATE", "2 March 2026");
    draw_field(pdf, 462, 680, "DUE", "16 March 2026");
    box(pdf, LEFT, 574, RIGHT - LEFT, 46, stripe);
    box(pdf, LEFT, 574, 3, 46, accent(pdf));
    char total[DEMO_MONEY_MAX + 8];
    char money[DEMO_MONEY_MAX];
    snprintf(total, sizeof total, "EUR %s", aster_demo_money(aster_demo_invoice_total_cents(&pdf->invoice), money));
    text_at(pdf, LEFT + 16, 592, false, 10.5f, ink, "Amount due, VAT included");
    text_right(pdf, RIGHT - 14, 590, true, 18, accent(pdf), total);
}

static void draw_table_head(struct demo_pdf *pdf)
{
    box(pdf, LEFT, TABLE_TOP, RIGHT - LEFT, ROW_HEIGHT, ink);
    float y = TABLE_TOP + 9;
    text_at(pdf, LEFT + 10, y, true, 9, white, "#");
    text_at(pdf, LEFT + 34, y, true, 9, white, "Description");
    text_right(pdf, 356, y, true, 9, white, "Quantity");
    text_right(pdf, 446, y, true, 9, white, "Unit price");
    text_right(pdf, RIGHT - 10, y, true, 9, white, "Amount");
}

static void draw_line(struct demo_pdf *pdf, size_t index)
{
    const struct demo_invoice_line *line = &pdf->invoice.lines[index];
    float bottom = TABLE_TOP - ROW_HEIGHT * (float)(index + 1);
    float y = bottom + 9;
    char text[DEMO_MONEY_MAX];
    if (index % 2 == 1) {
        box(pdf, LEFT, bottom, RIGHT - LEFT, ROW_HEIGHT, stripe);
    }
    snprintf(text, sizeof text, "%zu", index + 1);
    text_at(pdf, LEFT + 10, y, false, 10, grey, text);
    text_at(pdf, LEFT + 34, y, false, 10, ink, line->text);
    snprintf(text, sizeof text, "%" PRId64, line->quantity);
    text_right(pdf, 356, y, false, 10, ink, text);
    text_right(pdf, 446, y, false, 10, ink, aster_demo_money(line->unit_cents, text));
    text_right(pdf, RIGHT - 10, y, false, 10, ink, aster_demo_money(line->quantity * line->unit_cents, text));
}

static void draw_sum(struct demo_pdf *pdf, float y, bool bold, const char *label, int64_t cents)
{
    char money[DEMO_MONEY_MAX];
    text_at(pdf, 352, y, bold, bold ? 12 : 10, bold ? ink : grey, label);
    text_right(pdf, RIGHT - 10, y, bold, bold ? 12 : 10, ink, aster_demo_money(cents, money));
}

static void draw_totals(struct demo_pdf *pdf)
{
    float bottom = TABLE_TOP - ROW_HEIGHT * (float)pdf->invoice.line_count;
    rule(pdf, bottom - 6);
    char vat[32];
    snprintf(vat, sizeof vat, "VAT %d %%", DEMO_VAT_PERCENT);
    draw_sum(pdf, bottom - 28, false, "Net amount, EUR", aster_demo_invoice_net_cents(&pdf->invoice));
    draw_sum(pdf, bottom - 46, false, vat, aster_demo_invoice_vat_cents(&pdf->invoice));
    box(pdf, 352, bottom - 58, RIGHT - 352, 1.4f, accent(pdf));
    draw_sum(pdf, bottom - 78, true, "Total, EUR", aster_demo_invoice_total_cents(&pdf->invoice));
}

static void draw_footer(struct demo_pdf *pdf)
{
    char stamp[128];
    snprintf(stamp, sizeof stamp, "Rendered by %s under epoch %" PRId64 " of " DEMO_RESOURCE, pdf->rendered_by,
             pdf->epoch);
    text_at(pdf, LEFT, 190, true, 10, ink, "Payment");
    text_at(pdf, LEFT, 175, false, 9.5f, grey, "Please pay within 14 days and quote the invoice number.");
    text_at(pdf, LEFT, 161, false, 9.5f, grey, "This is a sample document of the Aster demo; no goods were sold.");
    rule(pdf, 92);
    box(pdf, LEFT, 73, 8, 8, accent(pdf));
    text_at(pdf, LEFT + 15, 74, false, 8.5f, grey, stamp);
    text_right(pdf, RIGHT, 74, false, 8.5f, grey, "Page 1 of 1");
}

aster_status aster_demo_pdf_create(const struct demo_invoice *invoice, const char *rendered_by, int64_t epoch,
                                   struct demo_pdf **pdf, struct aster_error *error)
{
    struct demo_pdf *created = calloc(1, sizeof *created);
    if (created == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a page");
    }
    created->invoice = *invoice;
    created->epoch = epoch;
    snprintf(created->rendered_by, sizeof created->rendered_by, "%s", rendered_by);
    created->document = HPDF_New(on_failure, created);
    if (created->document == NULL) {
        free(created);
        return aster_error_set(error, ASTER_ERR_NOMEM, "the PDF library cannot make a document");
    }
    HPDF_SetCompressionMode(created->document, HPDF_COMP_ALL);
    HPDF_SetInfoAttr(created->document, HPDF_INFO_TITLE, "Invoice " DEMO_INVOICE_NUMBER);
    HPDF_SetInfoAttr(created->document, HPDF_INFO_AUTHOR, created->rendered_by);
    created->page = HPDF_AddPage(created->document);
    HPDF_Page_SetSize(created->page, HPDF_PAGE_SIZE_A4, HPDF_PAGE_PORTRAIT);
    created->regular = HPDF_GetFont(created->document, "Helvetica", "WinAnsiEncoding");
    created->bold = HPDF_GetFont(created->document, "Helvetica-Bold", "WinAnsiEncoding");
    aster_status status = verdict_of(created, error);
    if (status != ASTER_OK) {
        aster_demo_pdf_destroy(created);
        return status;
    }
    *pdf = created;
    return ASTER_OK;
}

unsigned aster_demo_pdf_steps(const struct demo_pdf *pdf)
{
    return (unsigned)pdf->invoice.line_count + FIXED_STEPS + 2;
}

aster_status aster_demo_pdf_step(struct demo_pdf *pdf, unsigned step, struct aster_error *error)
{
    unsigned after_lines = FIXED_STEPS + (unsigned)pdf->invoice.line_count;
    if (step == STEP_LETTERHEAD) {
        draw_letterhead(pdf);
    } else if (step == STEP_PARTIES) {
        draw_parties(pdf);
    } else if (step == STEP_TABLE_HEAD) {
        draw_table_head(pdf);
    } else if (step < after_lines) {
        draw_line(pdf, step - FIXED_STEPS);
    } else if (step == after_lines) {
        draw_totals(pdf);
    } else {
        draw_footer(pdf);
    }
    return verdict_of(pdf, error);
}

aster_status aster_demo_pdf_finish(struct demo_pdf *pdf, unsigned char **bytes, size_t *size, struct aster_error *error)
{
    HPDF_SaveToStream(pdf->document);
    aster_status status = verdict_of(pdf, error);
    if (status != ASTER_OK) {
        return status;
    }
    HPDF_UINT32 length = HPDF_GetStreamSize(pdf->document);
    unsigned char *copy = malloc(length > 0 ? length : 1);
    if (copy == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for a PDF of %" PRIu32 " bytes", (uint32_t)length);
    }
    HPDF_ResetStream(pdf->document);
    HPDF_UINT32 got = length;
    HPDF_ReadFromStream(pdf->document, copy, &got);
    status = verdict_of(pdf, error);
    if (status != ASTER_OK || got != length) {
        free(copy);
        return status != ASTER_OK ? status : aster_error_set(error, ASTER_ERR_IO, "the PDF came out cut short");
    }
    *bytes = copy;
    *size = length;
    return ASTER_OK;
}

void aster_demo_pdf_destroy(struct demo_pdf *pdf)
{
    if (pdf != NULL) {
        HPDF_Free(pdf->document);
        free(pdf);
    }
}
