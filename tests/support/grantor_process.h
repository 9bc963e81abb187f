/* A real asterd on the loopback: its files, its process and its log. */
#ifndef SUPPORT_GRANTOR_PROCESS_H
#define SUPPORT_GRANTOR_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct grantor_process {
    char directory[64]; /* of the configuration, the node's files and the store */
    char config[128];
    const char *journal; /* "none"; "sqlite": a journal in the directory; NULL: a shared SQLite file there */
    const char *files;   /* CA mode: the lines of key, certificate and roots; NULL = the node in the directory */
    pid_t pid;
    uint16_t quic;
    uint16_t tcp;
    int log_fd;
    pthread_t reader;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char *log; /* everything so far, under `lock` */
    size_t log_size;
};

/* Make the directory and the node. */
void grantor_process_init(struct grantor_process *process, const char *journal);
/* Drain what runs, which must end with success (a sanitizer's report would not be one), and remove the directory. */
void grantor_process_fini(struct grantor_process *process);

/* Write the configuration: what is always there, then `rest`. */
void grantor_process_configure(struct grantor_process *process, const char *rest);
/* Start it and wait until it is ready. Ports that were given once are asked for again. */
void grantor_process_start(struct grantor_process *process);
/* The port that "http" was given. */
uint16_t grantor_process_http_port(struct grantor_process *process);
/* One HTTP/1.0 request to it; what came back. */
void grantor_process_fetch(struct grantor_process *process, const char *path, char *text, size_t size);
/* Send a signal and wait for the end; the exit status, or 256 + the signal that ended it. */
int grantor_process_end(struct grantor_process *process, int signal_number);
void grantor_process_signal(struct grantor_process *process, int signal_number);

/* Wait until the log has a line with both texts (`second` may be NULL); the test fails after 20 s. */
void grantor_process_await_log(struct grantor_process *process, const char *first, const char *second);
/* How often the log says `text`. */
size_t grantor_process_count_log(struct grantor_process *process, const char *text);

#endif
