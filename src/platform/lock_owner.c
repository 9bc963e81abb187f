#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/error.h"
#include "platform/files.h"

static void name_program(long pid, char *name, size_t size)
{
    char path[64];
    char text[64] = "";
    char printable[ASTER_PRINTABLE_MAX];
    snprintf(path, sizeof path, "/proc/%ld/comm", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(text, sizeof text, file) == NULL) {
        snprintf(text, sizeof text, "unknown");
    }
    if (file != NULL) {
        fclose(file);
    }
    text[strcspn(text, "\n")] = '\0';
    snprintf(name, size, "%s", aster_printable(aster_text(text), printable));
}

bool aster_file_lock_owner(const char *path, struct aster_lock_owner *owner)
{
    struct stat facts;
    FILE *file = stat(path, &facts) == 0 ? fopen("/proc/locks", "re") : NULL;
    char line[256];
    long found = 0;
    while (file != NULL && found <= 0 && fgets(line, sizeof line, file) != NULL) {
        long pid;
        unsigned major_number;
        unsigned minor_number;
        unsigned long long inode;
        /* A waiting lock has an arrow behind its number, and does not match. */
        if (sscanf(line, "%*d: POSIX %*s WRITE %ld %x:%x:%llu", &pid, &major_number, &minor_number, &inode) == 4 &&
            major_number == major(facts.st_dev) && minor_number == minor(facts.st_dev) && inode == facts.st_ino) {
            found = pid; /* 0: of another namespace */
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    if (found > 0) {
        owner->pid = found;
        name_program(found, owner->name, sizeof owner->name);
    }
    return found > 0;
}
