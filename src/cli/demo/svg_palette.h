/* The colours of the picture, and what they stand for. */
#ifndef DEMO_SVG_PALETTE_H
#define DEMO_SVG_PALETTE_H

#define SVG_INK "#1f2733"
#define SVG_GREY "#667085"
#define SVG_HAIRLINE "#e3e7ee"
#define SVG_LANE "#f6f8fb"
#define SVG_WHITE "#ffffff"
#define SVG_PAGE "#f1f4f8"
#define SVG_EPOCH_1 "#2f6fde"
#define SVG_EPOCH_2 "#18935c"
#define SVG_RED "#d1282a"
#define SVG_RED_PALE "#fdeceb"
#define SVG_AMBER "#b7791f"
#define SVG_STOPPED "url(#stopped)"

#define SVG_PAGE_WIDTH 1180.0
#define SVG_MARGIN 24.0

#endif
