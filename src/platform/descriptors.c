#include "platform/descriptors.h"

#include <stdint.h>
#include <sys/resource.h>

size_t aster_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024; /* what every system grants */
    }
    struct rlimit raised = {limit.rlim_max, limit.rlim_max};
    rlim_t now = setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
    return now < SIZE_MAX ? (size_t)now : SIZE_MAX;
}
