/* Threads of the library. */
#ifndef PLATFORM_THREAD_H
#define PLATFORM_THREAD_H

#include <pthread.h>

/* As pthread_create(), with every signal blocked in the new thread: the application's handlers run on the application's
 * own threads. Returns 0 or an errno. */
int aster_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
