/* Writing SVG elements. Coordinates are pixels; colours are "#rrggbb". Text is escaped. */
#ifndef DEMO_SVG_H
#define DEMO_SVG_H

#include <stdio.h>

void aster_svg_begin(FILE *out, double width, double height);
void aster_svg_end(FILE *out);

void aster_svg_box(FILE *out, double x, double y, double width, double height, double radius, const char *fill,
                   const char *stroke);
void aster_svg_line(FILE *out, double x1, double y1, double x2, double y2, const char *stroke, double width,
                    const char *dashes);
void aster_svg_circle(FILE *out, double x, double y, double radius, const char *fill, const char *stroke);
/* `points` as in the polygon element. */
void aster_svg_polygon(FILE *out, const char *points, const char *fill);

struct svg_font {
    double size;
    const char *weight; /* "400", "600", ... */
    const char *anchor; /* "start", "middle", "end" */
    const char *fill;
};

void aster_svg_text(FILE *out, double x, double y, const struct svg_font *font, const char *text);

#endif
