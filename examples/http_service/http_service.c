/* http_service SOCKET DATABASE: a service that holds its writers to their fence. It sits behind nginx, which ends TLS
 * and hands on the client's certificate; `run` starts all of it. GET reads the document, PUT replaces it under the
 * fence in the headers Aster-Resource and Aster-Epoch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "aster/grantor.h"
#include "document.h"
#include "scgi.h"

#define PATIENCE_S 10 /* for a request to arrive whole: one is served at a time */

static void answer(int fd, int status, const char *text)
{
    scgi_answer(fd, status, text, strlen(text));
}

/* Who the connection says it is: nginx's own parameter, which no header of the client's can be. */
static bool identify(const struct scgi_request *request, char identity[ASTER_IDENTITY_MAX + 1])
{
    const char *certificate = scgi_get(request, "CLIENT_CERTIFICATE");
    return certificate != NULL && certificate[0] != '\0' &&
           aster_grantor_certificate_identity(aster_text(certificate), false, identity, NULL) == ASTER_OK;
}

static void refuse(int fd, const struct aster_verdict *verdict)
{
    char text[200];
    snprintf(text, sizeof text, "%s: carried epoch %lld, current %lld; nothing was written\n",
             aster_reason_name(verdict->reason), (long long)verdict->carried_epoch, (long long)verdict->current_epoch);
    answer(fd, aster_http_status(verdict->reason), text);
}

static void put(int fd, sqlite3 *db, const struct scgi_request *request, struct aster_bytes identity)
{
    char storage[ASTER_HTTP_RESOURCE_MAX];
    struct aster_fence fence;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    struct aster_error error = ASTER_ERROR_INIT;
    const char *resource = scgi_get(request, "HTTP_ASTER_RESOURCE");
    const char *epoch = scgi_get(request, "HTTP_ASTER_EPOCH");
    if (aster_http_fence_parse(resource, epoch, identity, storage, &fence, &error) != ASTER_OK) {
        bool absent = resource == NULL || epoch == NULL;
        strncat(error.message, "\n", sizeof error.message - strlen(error.message) - 1);
        answer(fd, absent ? aster_http_status(ASTER_REASON_NO_FENCE) : 400, error.message);
        return;
    }
    const struct aster_bytes body = {request->body, request->body_size};
    if (document_write(db, &fence, identity, body, &verdict) != ASTER_OK) {
        answer(fd, 500, "the document could not be stored; nothing was written\n");
    } else if (verdict.reason != ASTER_REASON_NONE) {
        refuse(fd, &verdict);
    } else {
        answer(fd, 200, "stored\n");
    }
}

static void get(int fd, sqlite3 *db)
{
    size_t size = 0;
    char *document = document_read(db, &size);
    if (document != NULL) {
        scgi_answer(fd, 200, document, size);
    } else {
        answer(fd, 404, "nothing was stored yet\n");
    }
    free(document);
}

static void serve(int fd, sqlite3 *db)
{
    static struct scgi_request request;
    char identity[ASTER_IDENTITY_MAX + 1];
    const char *method = scgi_read(fd, &request) ? scgi_get(&request, "REQUEST_METHOD") : NULL;
    if (method == NULL) {
        answer(fd, 400, "malformed or too large\n");
    } else if (!identify(&request, identity)) {
        answer(fd, 401, "a client certificate of a node is needed: aster node new NAME makes one\n");
    } else if (strcmp(method, "PUT") == 0) {
        put(fd, db, &request, aster_text(identity));
    } else {
        get(fd, db);
    }
    scgi_free(&request);
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unlink(path);
    if (fd < 0 || snprintf(address.sun_path, sizeof address.sun_path, "%s", path) >= (int)sizeof address.sun_path ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 16) != 0) {
        perror(path);
        return -1;
    }
    return fd;
}

int main(int argc, char **argv)
{
    const struct timeval patience = {PATIENCE_S, 0};
    sqlite3 *db = argc == 3 ? document_open(argv[2]) : NULL;
    int listener = db != NULL ? listen_at(argv[1]) : -1;
    if (listener < 0) {
        fprintf(stderr, "usage: http_service SOCKET DATABASE\n");
        return 64;
    }
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd >= 0) {
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
            serve(fd, db);
            close(fd);
        }
    }
}
