#include "support/postgres_server.h"

#include "support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_helper(int commands, int answers)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/support/postgres_serve.py", getenv("ASTER_SOURCE"));
    dup2(commands, STDIN_FILENO);
    dup2(answers, STDOUT_FILENO);
    unsetenv("LD_PRELOAD");
    execlp("python3", "python3", path, (char *)NULL);
    _exit(127);
}

static void read_line(struct postgres_server *server, char *line, size_t size)
{
    assert_non_null(fgets(line, (int)size, server->answers));
    line[strcspn(line, "\n")] = '\0';
}

void postgres_server_init(struct postgres_server *server)
{
    int commands[2];
    int answers[2];
    assert_int_equal(pipe2(commands, O_CLOEXEC), 0);
    assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        run_helper(commands[0], answers[1]);
    }
    close(commands[0]);
    close(answers[1]);
    server->commands = fdopen(commands[1], "w");
    server->answers = fdopen(answers[0], "r");
    assert_non_null(server->commands);
    assert_non_null(server->answers);
    read_line(server, server->conninfo, sizeof server->conninfo);
    if (strcmp(server->conninfo, "absent") == 0) {
        printf("skipped: PostgreSQL is not installed\n");
        exit(77);
    }
}

void postgres_server_fini(struct postgres_server *server)
{
    fclose(server->commands);
    fclose(server->answers);
    int status = 0;
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
}

void postgres_server_do(struct postgres_server *server, const char *command, char answer[256])
{
    char line[512];
    fprintf(server->commands, "%s\n", command);
    fflush(server->commands);
    read_line(server, line, sizeof line);
    if (strncmp(line, "ok", 2) != 0) {
        fail_msg("%s: %s", command, line);
    }
    if (answer != NULL) {
        snprintf(answer, 256, "%.250s", strlen(line) > 3 ? line + 3 : "");
    }
}
