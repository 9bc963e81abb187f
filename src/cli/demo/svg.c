#include "cli/demo/svg.h"

static void escape(FILE *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        switch (*at) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc((unsigned char)*at < ' ' ? ' ' : *at, out);
        }
    }
}

void aster_svg_begin(FILE *out, double width, double height)
{
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"Inter, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif\">\n"
            "<defs><pattern id=\"stopped\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
            "patternTransform=\"rotate(45)\"><rect width=\"8\" height=\"8\" fill=\"#eef0f4\"/>"
            "<rect width=\"3\" height=\"8\" fill=\"#c3c8d2\"/></pattern></defs>\n",
            width, height, width, height);
}

void aster_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void aster_svg_box(FILE *out, double x, double y, double width, double height, double radius, const char *fill,
                   const char *stroke)
{
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\" fill=\"%s\" stroke=\"%s\"/>\n",
            x, y, width, height, radius, fill, stroke);
}

void aster_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke, double width,
                    const char *dashes)
{
    fprintf(out,
            "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"%.1f\" "
            "stroke-dasharray=\"%s\"/>\n",
            x1, y1, x2, y2, stroke, width, dashes);
}

void aster_svg_circle(FILE *out, double x, double y, double radius, const char *fill, const char *stroke)
{
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"%s\" stroke=\"%s\" stroke-width=\"2\"/>\n", x, y,
            radius, fill, stroke);
}

void aster_svg_polygon(FILE *out, const char *points, const char *fill)
{
    fprintf(out, "<polygon points=\"%s\" fill=\"%s\"/>\n", points, fill);
}

void aster_svg_text(FILE *out, double x, double y, const struct svg_font *font, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\" font-weight=\"%s\" text-anchor=\"%s\" fill=\"%s\">", x,
            y, font->size, font->weight, font->anchor, font->fill);
    escape(out, text);
    fputs("</text>\n", out);
}
