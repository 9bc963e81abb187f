/* Where the demo keeps its databases, PDFs and the picture. */
#ifndef DEMO_OUTPUT_DIRECTORY_H
#define DEMO_OUTPUT_DIRECTORY_H

#include "aster/status.h"
#include "cli/demo/acts.h"

/* Make `wanted` (NULL = a fresh directory under TMPDIR) usable and write its absolute path to `directory`. The files of
 * an earlier demo in it are removed; somebody else's of the same names are a reason to refuse. Errors: ASTER_ERR_IO,
 * ASTER_ERR_INVALID. */
aster_status aster_demo_directory_open(const char *wanted, char directory[DEMO_PATH_MAX], struct aster_error *error);

/* Remove the demo's files, and the directory if nothing else is in it. */
void aster_demo_directory_remove(const char *directory);

#endif
