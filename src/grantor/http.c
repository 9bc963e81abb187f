#include "grantor/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "grantor/http_page.h"
#include "grantor/log.h"
#include "platform/address.h"

#define CONNECTIONS_MAX 16
#define READS_MAX 2
#define TIMEOUT_SECONDS 10
#define CONNECTION_MEMORY 16384 /* bytes of a request's line and headers */
#define STACK_SIZE 262144
#define HOST_MAX 64

struct grantor_http {
    struct MHD_Daemon *daemon;
    struct grantor_http_source source;
    _Atomic(int) reads;
};

void grantor_http_fail(struct grantor_http_page *page, unsigned code, const char *format, ...)
{
    char text[ASTER_ERROR_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    free(page->text);
    json_t *json = json_pack("{s:s}", "error", text);
    char *dumped = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    *page = (struct grantor_http_page){code, GRANTOR_TYPE_JSON, dumped, dumped != NULL ? strlen(dumped) : 0};
}

static void write_metrics(const struct grantor_http *http, struct grantor_http_page *page)
{
    struct grantor_gauges gauges;
    http->source.measure(&gauges, http->source.user);
    FILE *out = open_memstream(&page->text, &page->size);
    if (out == NULL) {
        return;
    }
    grantor_metrics_write(out, http->source.counters, &gauges);
    fclose(out);
    page->type = GRANTOR_TYPE_METRICS;
}

static void write_health(const struct grantor_http *http, bool ready_wanted, struct grantor_http_page *page)
{
    struct grantor_gauges gauges;
    http->source.measure(&gauges, http->source.user); /* passes through the loop: whoever answers is alive */
    bool fails = grantor_store_fails(http->source.counters);
    const char *text = "alive\n";
    if (ready_wanted) {
        text = gauges.draining ? "draining\n" : fails ? "the store fails\n" : "ready\n";
        page->code = gauges.draining || fails ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
    }
    page->type = GRANTOR_TYPE_TEXT;
    page->text = strdup(text);
    page->size = strlen(text);
}

static void read_store(struct grantor_http *http, struct MHD_Connection *connection,
                       void (*read)(struct MHD_Connection *connection, struct aster_serializer *serializer,
                                    struct grantor_http_page *page),
                       struct grantor_http_page *page)
{
    if (atomic_fetch_add(&http->reads, 1) >= READS_MAX) {
        grantor_http_fail(page, MHD_HTTP_SERVICE_UNAVAILABLE, "%d reads run already: ask again", READS_MAX);
    } else {
        read(connection, http->source.serializer, page);
    }
    atomic_fetch_sub(&http->reads, 1);
}

static void route(struct grantor_http *http, struct MHD_Connection *connection, const char *url,
                  struct grantor_http_page *page)
{
    if (strcmp(url, "/metrics") == 0) {
        write_metrics(http, page);
    } else if (strcmp(url, "/livez") == 0) {
        write_health(http, false, page);
    } else if (strcmp(url, "/readyz") == 0) {
        write_health(http, true, page);
    } else if (strcmp(url, "/api/v1/leases") == 0) {
        read_store(http, connection, grantor_http_leases, page);
    } else if (strcmp(url, "/api/v1/history") == 0) {
        read_store(http, connection, grantor_http_history, page);
    } else {
        grantor_http_fail(page, MHD_HTTP_NOT_FOUND,
                          "nothing is here: ask for /metrics, /livez, /readyz, /api/v1/leases or /api/v1/history");
    }
}

/* A page of the web that has its own name resolve to 127.0.0.1 reaches this port from the user's browser, but cannot
 * choose what the browser says about the host. */
static bool is_loopback_host(const char *host)
{
    char name[HOST_MAX];
    struct in_addr v4;
    size_t size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (size >= sizeof name || size > strlen(host)) {
        return false;
    }
    const char *port = host + size;
    if (*port != '\0' && (*port != ':' || port[1 + strspn(port + 1, "0123456789")] != '\0')) {
        return false;
    }
    memcpy(name, host, size);
    name[size] = '\0';
    return strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0 ||
           (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}

static enum MHD_Result send_page(struct MHD_Connection *connection, const struct grantor_http_page *page)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(page->size, page->text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(page->text);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (page->code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    } else if (page->code == MHD_HTTP_SERVICE_UNAVAILABLE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    enum MHD_Result result = MHD_queue_response(connection, page->code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context)
{
    (void)version;
    (void)data;
    (void)size;
    (void)context;
    struct grantor_http_page page = {MHD_HTTP_OK, GRANTOR_TYPE_JSON, NULL, 0};
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (host != NULL && !is_loopback_host(host)) {
        grantor_http_fail(&page, MHD_HTTP_FORBIDDEN,
                          "the Host \"%.100s\" is no loopback address: ask for localhost or 127.0.0.1", host);
    } else if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        grantor_http_fail(&page, MHD_HTTP_METHOD_NOT_ALLOWED, "%.20s is not served here: only GET and HEAD are",
                          method);
    } else {
        route(user, connection, url, &page);
    }
    return page.text != NULL ? send_page(connection, &page) : MHD_NO;
}

static bool is_loopback(const struct aster_address *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    return address->any.sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
                                             : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static void say_listening(struct MHD_Daemon *daemon)
{
    struct grantor_line line;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    grantor_line_init(&line, GRANTOR_INFO, "listening");
    grantor_line_text(&line, "transport", "http");
    grantor_line_number(&line, "port", info != NULL ? info->port : 0);
    grantor_line_end(&line);
}

aster_status grantor_http_resolve(const char *text, struct aster_address *address, struct aster_error *error)
{
    struct aster_address found;
    size_t count = 0;
    aster_status status = aster_address_resolve(text, true, &found, 1, &count, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (!is_loopback(&found)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "\"%.100s\" is no loopback address, and nobody is asked who he is there: write "
                               "127.0.0.1:PORT",
                               text);
    }
    *address = found;
    return ASTER_OK;
}

aster_status grantor_http_open(const char *address, const struct grantor_http_source *source,
                               struct grantor_http **http, struct aster_error *error)
{
    struct aster_address local;
    aster_status status = grantor_http_resolve(address, &local, error);
    if (status != ASTER_OK) {
        return status;
    }
    struct grantor_http *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the HTTP server");
    }
    made->source = *source;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                     (local.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    made->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, answer, made, MHD_OPTION_SOCK_ADDR, &local.any,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)CONNECTION_MEMORY, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_SIZE,
                         MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_SECONDS, MHD_OPTION_END);
    if (made->daemon == NULL) {
        free(made);
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "http cannot listen at %.100s", address);
    }
    say_listening(made->daemon);
    *http = made;
    return ASTER_OK;
}

void grantor_http_close(struct grantor_http *http)
{
    if (http != NULL) {
        MHD_stop_daemon(http->daemon);
        free(http);
    }
}
