/* Looking at /proc: who is left of the command. */
#ifndef RUN_PROCESSES_H
#define RUN_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>

/* Is a process of this group still running (a zombie is not)? True when /proc cannot tell. */
bool aster_processes_in_group(pid_t group);

/* Kill every child of this process except `spare`, reap them, and go on until there are none: descendants that left
 * the command's group become our children when their parents die, because we are their subreaper. */
void aster_processes_kill_children(pid_t spare);

/* Reap zombies that were handed to us, but not `spare`. */
void aster_processes_reap(pid_t spare, pid_t spare_too);

#endif
