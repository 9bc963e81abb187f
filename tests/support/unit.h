/* cmocka and the headers that it needs first. */
#ifndef SUPPORT_UNIT_H
#define SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
