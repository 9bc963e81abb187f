#include "grantor/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <microhttpd.h>

#include "base/error.h"
#include "grantor/log.h"
#include "platform/address.h"

#define TEXT_MAX 16384
#define CONNECTIONS_MAX 16
#define TIMEOUT_SECONDS 10

struct grantor_http {
    struct MHD_Daemon *daemon;
    const struct grantor_counters *counters;
    void (*measure)(struct grantor_gauges *gauges, void *user);
    void *user;
};

static void count(_Atomic(uint64_t) *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

void grantor_count_decision(struct grantor_counters *counters, enum aster_operation_kind kind, aster_status status,
                            const struct aster_decision *decision)
{
    enum grantor_result result = status != ASTER_OK                   ? GRANTOR_FAILED
                                 : decision->outcome == ASTER_GRANTED ? GRANTOR_GRANTED
                                                                      : GRANTOR_DENIED;
    if ((unsigned)kind < GRANTOR_METRIC_KINDS) {
        count(&counters->decisions[kind][result]);
    }
}

void grantor_count_event(struct grantor_counters *counters, const struct aster_event *event)
{
    if ((unsigned)event->kind < GRANTOR_METRIC_KINDS) {
        count(&counters->events[event->kind]);
    }
    if (event->reason == ASTER_REASON_FUTURE_EPOCH) {
        count(&counters->future_epochs);
    }
}

static void write_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_gauge(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    write_head(out, name, type, help);
    fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void write_counters(FILE *out, const struct grantor_counters *counters)
{
    static const char *const results[] = {"granted", "denied", "failed"};
    write_head(out, "aster_decisions_total", "counter", "Answered operations by verb and outcome.");
    for (int kind = ASTER_OP_ACQUIRE; kind < GRANTOR_METRIC_KINDS; kind++) {
        for (int result = 0; result < GRANTOR_RESULTS && kind != ASTER_OP_EXPIRE; result++) {
            fprintf(out, "aster_decisions_total{verb=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                    aster_operation_name((enum aster_operation_kind)kind), results[result],
                    atomic_load_explicit(&counters->decisions[kind][result], memory_order_relaxed));
        }
    }
    write_head(out, "aster_events_total", "counter", "Lines of the audit history by kind.");
    for (int kind = ASTER_EVENT_GRANTED; kind < GRANTOR_METRIC_KINDS; kind++) {
        fprintf(out, "aster_events_total{kind=\"%s\"} %" PRIu64 "\n", aster_event_name((enum aster_event_kind)kind),
                atomic_load_explicit(&counters->events[kind], memory_order_relaxed));
    }
    write_gauge(out, "aster_future_epochs_total", "counter", "Fences from the future: an integrity alarm.",
                atomic_load_explicit(&counters->future_epochs, memory_order_relaxed));
}

static void write_gauges(FILE *out, const struct grantor_gauges *gauges)
{
    write_gauge(out, "aster_connections", "gauge", "Open connections.", gauges->connections);
    write_gauge(out, "aster_handshakes", "gauge", "Unfinished handshakes.", gauges->handshakes);
    write_gauge(out, "aster_operations_in_flight", "gauge", "Unanswered operations, waiters included.",
                gauges->in_flight);
    write_gauge(out, "aster_handshakes_refused_total", "counter", "Handshakes that failed.", gauges->refused);
}

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **context)
{
    (void)version;
    (void)data;
    (void)size;
    (void)context;
    const struct grantor_http *http = user;
    char text[TEXT_MAX] = "";
    unsigned code = MHD_HTTP_OK;
    struct grantor_gauges gauges;
    FILE *out = fmemopen(text, sizeof text, "w");
    if (out == NULL || strcmp(method, "GET") != 0) {
        code = out == NULL ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_METHOD_NOT_ALLOWED;
    } else {
        http->measure(&gauges, http->user); /* passes through the loop: whoever answers is alive */
        if (strcmp(url, "/metrics") == 0) {
            write_counters(out, http->counters);
            write_gauges(out, &gauges);
        } else if (strcmp(url, "/livez") == 0) {
            fputs("alive\n", out);
        } else if (strcmp(url, "/readyz") == 0) {
            code = gauges.draining ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
            fputs(gauges.draining ? "draining\n" : "ready\n", out);
        } else {
            code = MHD_HTTP_NOT_FOUND;
        }
    }
    if (out != NULL) {
        fclose(out);
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
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

aster_status grantor_http_open(const char *address, const struct grantor_counters *counters,
                               void (*measure)(struct grantor_gauges *gauges, void *user), void *user,
                               struct grantor_http **http, struct aster_error *error)
{
    struct aster_address local;
    size_t found = 0;
    aster_status status = aster_address_resolve(address, true, &local, 1, &found, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (!is_loopback(&local)) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "http = \"%.100s\" is no loopback address, and nobody is asked who he is there: write "
                               "127.0.0.1:PORT",
                               address);
    }
    struct grantor_http *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the HTTP server");
    }
    *made = (struct grantor_http){NULL, counters, measure, user};
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | (local.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0);
    made->daemon = MHD_start_daemon(flags, 0, NULL, NULL, answer, made, MHD_OPTION_SOCK_ADDR, &local.any,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
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
