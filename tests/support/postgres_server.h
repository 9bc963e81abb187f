/* A private PostgreSQL for a test program, run by postgres_serve.py. */
#ifndef SUPPORT_POSTGRES_SERVER_H
#define SUPPORT_POSTGRES_SERVER_H

#include <stdio.h>
#include <sys/types.h>

struct postgres_server {
    pid_t pid;
    FILE *commands;
    FILE *answers;
    char conninfo[512]; /* as the role "tester", who may do everything */
};

/* Start it with the schema and a protected table note(id, text), whose resource is "note". Exits with 77 (skipped) when
 * PostgreSQL is not installed. */
void postgres_server_init(struct postgres_server *server);
void postgres_server_fini(struct postgres_server *server);

/* "restart", "kill" (-9, and start), "stop", "start", "reset" (no rows), "bouncer" (answers the connection
 * string of a PgBouncer in transaction mode) or "sql STATEMENT", as the superuser. Fails the
 * test when it fails. `answer` (optional) gets the values of the rows, separated by spaces. */
void postgres_server_do(struct postgres_server *server, const char *command, char answer[256]);

#endif
