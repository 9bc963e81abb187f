#include "cli/run/processes.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS_MAX 50

struct process {
    pid_t pid;
    pid_t parent;
    pid_t group;
    char state;
};

/* The name in parentheses may hold anything, so what follows is read from the last ')'. */
static bool read_process(const char *name, struct process *process)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    const char *end = strrchr(text, ')');
    int parent;
    int group;
    if (end == NULL || sscanf(end + 1, " %c %d %d", &process->state, &parent, &group) != 3) {
        return false;
    }
    process->pid = (pid_t)atoi(name);
    process->parent = parent;
    process->group = group;
    return true;
}

/* Calls `visit` for every process until it returns false; false when /proc cannot be read. */
static bool each_process(bool (*visit)(const struct process *process, void *user), void *user)
{
    DIR *directory = opendir("/proc");
    if (directory == NULL) {
        return false;
    }
    struct dirent *entry;
    struct process process;
    bool more = true;
    while (more && (entry = readdir(directory)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && read_process(entry->d_name, &process)) {
            more = visit(&process, user);
        }
    }
    closedir(directory);
    return true;
}

struct group_search {
    pid_t group;
    bool found;
};

static bool match_group(const struct process *process, void *user)
{
    struct group_search *search = user;
    search->found = process->group == search->group && process->state != 'Z' && process->state != 'X';
    return !search->found;
}

bool aster_processes_in_group(pid_t group)
{
    struct group_search search = {group, false};
    return !each_process(match_group, &search) || search.found;
}

struct child_search {
    pid_t parent;
    pid_t spare;
    int count;
};

static bool kill_child(const struct process *process, void *user)
{
    struct child_search *search = user;
    if (process->parent == search->parent && process->pid != search->spare) {
        search->count++;
        kill(process->pid, SIGKILL);
        waitpid(process->pid, NULL, 0);
    }
    return true;
}

void aster_processes_kill_children(pid_t spare)
{
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct child_search search = {getpid(), spare, 0};
        if (!each_process(kill_child, &search) || search.count == 0) {
            return;
        }
    }
}

static bool reap_child(const struct process *process, void *user)
{
    const pid_t *spare = user;
    if (process->state == 'Z' && process->parent == getpid() && process->pid != spare[0] && process->pid != spare[1]) {
        waitpid(process->pid, NULL, WNOHANG);
    }
    return true;
}

void aster_processes_reap(pid_t spare, pid_t spare_too)
{
    pid_t spares[] = {spare, spare_too};
    each_process(reap_child, spares);
}
