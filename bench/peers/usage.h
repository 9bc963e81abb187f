/* CPU seconds used so far. */
#ifndef BENCH_USAGE_H
#define BENCH_USAGE_H

double usage_self(void);
/* Of the processes in a list "PID,PID" and their children; 0 for NULL. */
double usage_servers(const char *pids);
/* Of the whole machine: what neither client nor server used tells of a noisy neighbour. */
double usage_machine(void);

#endif
