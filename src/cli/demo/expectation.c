#include "cli/demo/expectation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void aster_demo_expect(struct demo_expectations *expectations, bool met, const char *name, const char *text,
                       const char *observed_format, ...)
{
    if (expectations->count == DEMO_EXPECTATIONS_MAX) {
        abort(); /* a bug: a lost expectation could hide a failure */
    }
    struct demo_expectation *item = &expectations->items[expectations->count++];
    item->name = name;
    item->text = text;
    item->met = met;
    va_list arguments;
    va_start(arguments, observed_format);
    vsnprintf(item->observed, sizeof item->observed, observed_format, arguments);
    va_end(arguments);
}

size_t aster_demo_expectations_failed(const struct demo_expectations *expectations)
{
    size_t failed = 0;
    for (size_t i = 0; i < expectations->count; i++) {
        failed += !expectations->items[i].met;
    }
    return failed;
}
