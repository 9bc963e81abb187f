/* A loop and a reader without threads: they stand still until the fuzzer moves them. They take the place of
 * src/platform/loop.c and src/grantor/reader.c when the program is linked. */
#ifndef FUZZ_STILL_H
#define FUZZ_STILL_H

#include "grantor/state.h"

/* Begin with an empty loop and a reader that has seen nothing. */
void still_init(struct grantor_state *state);
void still_fini(void);

/* Let time pass for the loop's timers, and run what was posted. */
void still_advance_ns(int64_t ns);
/* Run what was posted. */
void still_run_posted(void);
/* The reader does everything that it was given, and tells the news. */
void still_read(void);

#endif
