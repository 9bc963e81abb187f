#include "platform/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"
#include "platform/entropy.h"

aster_status aster_host_boot_id(char boot_id[ASTER_BOOT_ID_SIZE], struct aster_error *error)
{
    static const char path[] = "/proc/sys/kernel/random/boot_id";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot open %s", path);
    }
    char text[ASTER_BOOT_ID_SIZE];
    ssize_t got = read(fd, text, sizeof text - 1);
    int code = errno;
    close(fd);
    if (got != (ssize_t)sizeof text - 1) {
        return aster_error_set_os(error, ASTER_ERR_IO, got < 0 ? code : EIO, "cannot read %s", path);
    }
    text[sizeof text - 1] = '\0';
    memcpy(boot_id, text, sizeof text);
    return ASTER_OK;
}

int64_t aster_host_boottime_offset_ns(void)
{
    FILE *file = fopen("/proc/self/timens_offsets", "re");
    char name[16];
    long long seconds;
    long long nanoseconds;
    int64_t offset_ns = 0;
    if (file == NULL) {
        return 0; /* a kernel without time namespaces */
    }
    while (fscanf(file, "%15s %lld %lld", name, &seconds, &nanoseconds) == 3) {
        if (strcmp(name, "boottime") == 0) {
            offset_ns = seconds * 1000000000 + nanoseconds;
        }
    }
    fclose(file);
    return offset_ns;
}

/* Host and user names become part of an identity: keep what every rule for names accepts. */
static void keep_plain(char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x21 || byte > 0x7e) {
            *text = '_';
        }
    }
}

aster_status aster_host_process_identity(char identity[ASTER_PROCESS_IDENTITY_SIZE], struct aster_error *error)
{
    unsigned char random[8];
    aster_status status = aster_entropy_fill(random, sizeof random, error);
    if (status != ASTER_OK) {
        return status;
    }
    char host[65] = "localhost";
    if (gethostname(host, sizeof host - 1) != 0) {
        snprintf(host, sizeof host, "localhost");
    }
    host[sizeof host - 1] = '\0';
    char user[65];
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[2048];
    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != NULL) {
        snprintf(user, sizeof user, "%s", found->pw_name);
    } else {
        snprintf(user, sizeof user, "uid%lu", (unsigned long)geteuid());
    }
    keep_plain(host);
    keep_plain(user);
    char hex[2 * sizeof random + 1];
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(hex + 2 * i, 3, "%02x", random[i]);
    }
    snprintf(identity, ASTER_PROCESS_IDENTITY_SIZE, "%s@%s:%ld:%s", user, host, (long)getpid(), hex);
    return ASTER_OK;
}

const char *aster_filesystem_network_name(uint64_t magic)
{
    /* linux/magic.h, and the file systems' own headers for those it lacks. */
    static const struct {
        uint64_t magic;
        const char *name;
    } table[] = {
        {0x6969, "nfs"},        {0x517b, "smb"},      {0xff534d42, "cifs"},  {0xfe534d42, "smb2"},
        {0x01021997, "9p"},     {0x00c36400, "ceph"}, {0x73757245, "coda"},  {0x5346414f, "afs"},
        {0x6b414653, "afs"},    {0x65735546, "fuse"}, {0x7461636f, "ocfs2"}, {0x01161970, "gfs2"},
        {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"}, {0x564c, "ncp"},       {0xaad7aaea, "panfs"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].magic == magic) {
            return table[i].name;
        }
    }
    return NULL;
}

const char *aster_filesystem_memory_name(uint64_t magic)
{
    return magic == 0x01021994 ? "tmpfs" : magic == 0x858458f6 ? "ramfs" : NULL;
}
