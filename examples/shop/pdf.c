#include "pdf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <hpdf.h>

struct pdf {
    HPDF_Doc document;
    bool failed;
};

static void on_error(HPDF_STATUS code, HPDF_STATUS detail, void *user)
{
    (void)code;
    (void)detail;
    ((struct pdf *)user)->failed = true;
}

struct pdf *pdf_new(void)
{
    struct pdf *pdf = calloc(1, sizeof *pdf);
    if (pdf != NULL) {
        pdf->document = HPDF_New(on_error, pdf);
    }
    return pdf;
}

void pdf_page(struct pdf *pdf, int page, const char *order, const char *worker)
{
    char line[200];
    HPDF_Page sheet = HPDF_AddPage(pdf->document);
    snprintf(line, sizeof line, "Invoice for %s, page %d of %d, rendered by %s", order, page, PDF_PAGES, worker);
    HPDF_Page_SetFontAndSize(sheet, HPDF_GetFont(pdf->document, "Helvetica", NULL), 14);
    HPDF_Page_BeginText(sheet);
    HPDF_Page_TextOut(sheet, 60, 720, line);
    HPDF_Page_EndText(sheet);
}

unsigned char *pdf_finish(struct pdf *pdf, size_t *size)
{
    unsigned char *bytes = NULL;
    if (HPDF_SaveToStream(pdf->document) == HPDF_OK && !pdf->failed) {
        HPDF_UINT32 length = HPDF_GetStreamSize(pdf->document);
        bytes = malloc(length);
        if (bytes != NULL && HPDF_ReadFromStream(pdf->document, bytes, &length) > HPDF_STREAM_EOF) {
            free(bytes);
            bytes = NULL;
        }
        *size = length;
    }
    HPDF_Free(pdf->document);
    free(pdf);
    return bytes;
}
