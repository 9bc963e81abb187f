/* The invoice as a PDF, page by page: it takes a while, as real ones do. */
#ifndef PDF_H
#define PDF_H

#include <stddef.h>

#define PDF_PAGES 4

struct pdf;

struct pdf *pdf_new(void);
void pdf_page(struct pdf *pdf, int page, const char *order, const char *worker);
/* The document, from malloc, and its size; NULL when something failed. The pdf is freed. */
unsigned char *pdf_finish(struct pdf *pdf, size_t *size);

#endif
