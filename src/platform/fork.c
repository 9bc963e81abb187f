#include "platform/fork.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

_Atomic(uint64_t) *aster_fork_page;

static pthread_once_t page_once = PTHREAD_ONCE_INIT;
static int page_error;

static void map_page(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        page_error = errno;
        return;
    }
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        page_error = errno;
        munmap(page, size);
        return;
    }
    aster_fork_page = page;
}

uint64_t aster_fork_generation(struct aster_error *error)
{
    /* Plain, so a child inherits the count and continues it: generations of ancestors are never given out again. */
    static _Atomic(uint64_t) last;
    pthread_once(&page_once, map_page);
    if (aster_fork_page == NULL) {
        aster_error_set_os(error, ASTER_ERR_IO, page_error, "cannot map a page that fork() wipes (MADV_WIPEONFORK)");
        return 0;
    }
    uint64_t current = atomic_load(aster_fork_page);
    if (current == 0) {
        uint64_t fresh = atomic_fetch_add(&last, 1) + 1;
        current = 0;
        if (!atomic_compare_exchange_strong(aster_fork_page, &current, fresh)) {
            return current; /* another thread was first */
        }
        return fresh;
    }
    return current;
}
