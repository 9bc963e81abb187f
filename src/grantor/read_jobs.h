/* Doing one job of the reader's. */
#ifndef GRANTOR_READ_JOBS_H
#define GRANTOR_READ_JOBS_H

#include "grantor/ahead.h"
#include "grantor/reader.h"

/* `ahead` belongs to the reader, as the page does; `revision` is up to where the history has been followed: a watch
 * starts there. */
void grantor_job_do(struct grantor_job *job, struct grantor_page *page, struct grantor_ahead *ahead, int64_t revision);

#endif
