/* A stale writer against a user's own store. */
#ifndef CLI_CHECK_STORE_H
#define CLI_CHECK_STORE_H

#include "cli/command.h"

/* Acquire, write, be replaced, and try to write late, on a resource of its own that is forgotten afterwards; say of
 * each step whether the store did what it must. Returns ASTER_EXIT_FAILED when one was wrong. */
int aster_check_store(const struct aster_cli *cli, const char *store);

#endif
