#include "usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

double usage_self(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

static bool is_listed(const char *pids, long pid)
{
    for (const char *at = pids; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        if (strtol(at, NULL, 10) == pid) {
            return true;
        }
    }
    return false;
}

static double usage_of(const char *pids, long pid)
{
    char path[64];
    char text[1024];
    long parent;
    unsigned long user;
    unsigned long system;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *after_name = strrchr(text, ')');
    if (after_name == NULL ||
        sscanf(after_name + 2, "%*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &parent, &user, &system) != 3 ||
        (!is_listed(pids, pid) && !is_listed(pids, parent))) {
        return 0;
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double usage_servers(const char *pids)
{
    double total = 0;
    DIR *processes = pids != NULL ? opendir("/proc") : NULL;
    if (processes == NULL) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        long pid = strtol(entry->d_name, NULL, 10);
        total += pid > 0 ? usage_of(pids, pid) : 0;
    }
    closedir(processes);
    return total;
}

double usage_machine(void)
{
    unsigned long user;
    unsigned long nice;
    unsigned long system;
    unsigned long irq;
    unsigned long soft_irq;
    FILE *file = fopen("/proc/stat", "r");
    if (file == NULL) {
        return 0;
    }
    int fields = fscanf(file, "cpu %lu %lu %lu %*u %*u %lu %lu", &user, &nice, &system, &irq, &soft_irq);
    fclose(file);
    return fields == 5 ? (double)(user + nice + system + irq + soft_irq) / (double)sysconf(_SC_CLK_TCK) : 0;
}
