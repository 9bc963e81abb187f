#include "support/grantor_process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quic/node.h"
#include "support/quic_side.h"

#define PATIENCE_SECONDS 20

void grantor_process_init(struct grantor_process *process, const char *journal)
{
    char node[96];
    char id[ASTER_NODE_ID_SIZE];
    struct aster_error error = ASTER_ERROR_INIT;
    memset(process, 0, sizeof *process);
    process->journal = journal;
    snprintf(process->directory, sizeof process->directory, "/tmp/aster-asterd-XXXXXX");
    assert_non_null(mkdtemp(process->directory));
    snprintf(process->config, sizeof process->config, "%s/asterd.conf", process->directory);
    snprintf(node, sizeof node, "%s/node", process->directory);
    assert_int_equal(aster_node_create(node, "asterd", 1, id, &error), ASTER_OK);
    pthread_mutex_init(&process->lock, NULL);
    pthread_cond_init(&process->changed, NULL);
    process->log_fd = -1;
}

static void remove_files(const char *directory)
{
    DIR *entries = opendir(directory);
    assert_non_null(entries);
    struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && strcmp(entry->d_name, "node") != 0) {
            unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    closedir(entries);
    rmdir(directory);
}

void grantor_process_fini(struct grantor_process *process)
{
    char node[96];
    int status = process->pid > 0 ? grantor_process_end(process, SIGTERM) : 0;
    snprintf(node, sizeof node, "%s/node", process->directory);
    remove_files(node);
    remove_files(process->directory);
    if (status != 0) {
        fail_msg("asterd ended with %d:\n%s", status, process->log != NULL ? process->log : "");
    }
    free(process->log);
    pthread_cond_destroy(&process->changed);
    pthread_mutex_destroy(&process->lock);
}

void grantor_process_configure(struct grantor_process *process, const char *rest)
{
    FILE *file = fopen(process->config, "w");
    assert_non_null(file);
    if (process->journal == NULL) {
        fprintf(file, "store = \"sqlite:%s/leases.db\"\n", process->directory);
    } else if (strcmp(process->journal, "sqlite") == 0) {
        fprintf(file, "journal = \"sqlite:%s/journal.db\"\n", process->directory);
    } else {
        fprintf(file, "journal = \"%s\"\n", process->journal);
    }
    if (process->files != NULL) {
        fputs(process->files, file);
    } else {
        fprintf(file, "node-directory = \"%s/node\"\n", process->directory);
    }
    fprintf(file, "listen {\n quic = {\"127.0.0.1:%u\"}\n tcp = {\"127.0.0.1:%u\"}\n}\n%s", process->quic, process->tcp,
            rest);
    assert_int_equal(fclose(file), 0);
}

static void *read_log(void *argument)
{
    struct grantor_process *process = argument;
    char bytes[4096];
    ssize_t got;
    while ((got = read(process->log_fd, bytes, sizeof bytes)) > 0) {
        pthread_mutex_lock(&process->lock);
        char *log = realloc(process->log, process->log_size + (size_t)got + 1);
        if (log != NULL) {
            memcpy(log + process->log_size, bytes, (size_t)got);
            process->log = log;
            process->log_size += (size_t)got;
            log[process->log_size] = '\0';
        }
        pthread_cond_broadcast(&process->changed);
        pthread_mutex_unlock(&process->lock);
        if (getenv("ASTER_TEST_LOG") != NULL) {
            fwrite(bytes, 1, (size_t)got, stderr);
        }
    }
    return NULL;
}

static uint16_t number_after(struct grantor_process *process, const char *text)
{
    grantor_process_await_log(process, text, NULL);
    pthread_mutex_lock(&process->lock);
    const char *at = strstr(process->log, text);
    unsigned long port = strtoul(at + strlen(text), NULL, 10);
    pthread_mutex_unlock(&process->lock);
    return (uint16_t)port;
}

static uint16_t port_of(struct grantor_process *process, const char *transport)
{
    char text[64];
    snprintf(text, sizeof text, "transport=%s address=127.0.0.1:", transport);
    return number_after(process, text);
}

uint16_t grantor_process_http_port(struct grantor_process *process)
{
    return number_after(process, "transport=http port=");
}

void grantor_process_fetch(struct grantor_process *process, const char *path, char *text, size_t size)
{
    char request[128];
    size_t used = 0;
    ssize_t got = 0;
    struct aster_address address = loopback_address(grantor_process_http_port(process));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &address.any, address.size), 0);
    snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    assert_int_equal(write(fd, request, strlen(request)), (ssize_t)strlen(request));
    while (used + 1 < size && (got = read(fd, text + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    text[used] = '\0';
    close(fd);
}

void grantor_process_start(struct grantor_process *process)
{
    char program[512];
    int ends[2];
    const char *build = getenv("ASTER_BUILD");
    assert_non_null(build);
    snprintf(program, sizeof program, "%s/src/grantor/asterd", build);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    free(process->log);
    process->log = NULL;
    process->log_size = 0;
    process->pid = fork();
    assert_true(process->pid >= 0);
    if (process->pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        execl(program, program, "--config", process->config, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    process->log_fd = ends[0];
    assert_int_equal(pthread_create(&process->reader, NULL, read_log, process), 0);
    grantor_process_await_log(process, "event=ready", NULL);
    process->quic = port_of(process, "quic");
    process->tcp = port_of(process, "tcp");
}

void grantor_process_signal(struct grantor_process *process, int signal_number)
{
    assert_int_equal(kill(process->pid, signal_number), 0);
}

int grantor_process_end(struct grantor_process *process, int signal_number)
{
    int status = 0;
    if (signal_number != 0) {
        grantor_process_signal(process, signal_number);
    }
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    process->pid = 0;
    pthread_join(process->reader, NULL);
    close(process->log_fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* Under the lock. */
static bool has_line(const struct grantor_process *process, const char *first, const char *second)
{
    const char *at = process->log;
    while (at != NULL && (at = strstr(at, first)) != NULL) {
        const char *end = strchr(at, '\n');
        const char *begin = at;
        while (begin > process->log && begin[-1] != '\n') {
            begin--;
        }
        const char *found = second != NULL ? strstr(begin, second) : begin;
        if (end != NULL && found != NULL && found < end) {
            return true;
        }
        at++;
    }
    return false;
}

void grantor_process_await_log(struct grantor_process *process, const char *first, const char *second)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_SECONDS;
    int code = 0;
    pthread_mutex_lock(&process->lock);
    bool found;
    while (!(found = has_line(process, first, second)) && code == 0) {
        code = pthread_cond_timedwait(&process->changed, &process->lock, &until);
    }
    pthread_mutex_unlock(&process->lock);
    if (!found) {
        fail_msg("the log never said %s %s:\n%s", first, second != NULL ? second : "",
                 process->log != NULL ? process->log : "");
    }
}

size_t grantor_process_count_log(struct grantor_process *process, const char *text)
{
    size_t count = 0;
    pthread_mutex_lock(&process->lock);
    for (const char *at = process->log; at != NULL && (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    pthread_mutex_unlock(&process->lock);
    return count;
}
