/* Requests and handshakes over both transports on loopback, beside a bare UDP ping-pong between two threads. Client and
 * server have one network thread each; a request is a frame of 40 bytes that comes back. */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <netinet/in.h>

#include "physical.h"
#include "platform/files.h"
#include "quic/transport.h"

#define REQUEST_SIZE 40
#define RUN_NS INT64_C(2000000000)
#define SAMPLES_MAX 4000000
#define LINKS_MAX 256

typedef aster_status (*create_transport)(const struct aster_transport_options *options,
                                         struct aster_transport **transport, struct aster_error *error);

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_quic: %s: %s\n", what, why);
    exit(2);
}

struct load {
    struct aster_loop *loop;
    struct aster_transport *transport;
    struct aster_address remote;
    unsigned in_flight; /* per link */
    atomic_uint open;
    atomic_uint closed;
    atomic_bool running;
    struct aster_link *links[LINKS_MAX];
    unsigned link_count;
    uint64_t done;
    uint32_t *samples; /* ns */
    size_t sample_count;
};

static bool admit_all(struct aster_bytes identity, void *user)
{
    (void)identity;
    (void)user;
    return true;
}

static void server_opened(struct aster_link *link, void *user)
{
    (void)link;
    (void)user;
}

static void server_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    (void)user;
    aster_link_send(link, payload, NULL);
}

static void server_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    (void)end;
    (void)error;
    (void)user;
}

static void client_opened(struct aster_link *link, void *user)
{
    struct load *load = user;
    if (load->link_count < LINKS_MAX) {
        load->links[load->link_count++] = link;
    }
    atomic_fetch_add(&load->open, 1);
}

static void send_request(struct aster_link *link)
{
    unsigned char request[REQUEST_SIZE] = {0};
    int64_t now = bench_now_ns();
    memcpy(request, &now, sizeof now);
    aster_link_send(link, (struct aster_bytes){request, sizeof request}, NULL);
}

static void client_frame(struct aster_link *link, struct aster_bytes payload, void *user)
{
    struct load *load = user;
    int64_t sent;
    memcpy(&sent, payload.data, sizeof sent);
    if (load->sample_count < SAMPLES_MAX) {
        load->samples[load->sample_count++] = (uint32_t)(bench_now_ns() - sent);
    }
    load->done++;
    if (atomic_load_explicit(&load->running, memory_order_relaxed)) {
        send_request(link);
    }
}

static void client_closed(struct aster_link *link, enum aster_link_end end, const struct aster_error *error, void *user)
{
    (void)link;
    struct load *load = user;
    if (end != ASTER_LINK_END_LOCAL) {
        fail(aster_link_end_name(end), error->message);
    }
    atomic_fetch_add(&load->closed, 1);
}

static const struct aster_link_handler server_handler = {server_opened, server_frame, NULL, server_closed};
static const struct aster_link_handler client_handler = {client_opened, client_frame, NULL, client_closed};

static void open_side(struct load *side, const char *directory, create_transport create,
                      const struct aster_link_handler *handler)
{
    struct aster_transport_options options = ASTER_TRANSPORT_OPTIONS_INIT;
    struct aster_error error;
    if (aster_loop_create("bench", &side->loop, &error) != ASTER_OK ||
        aster_credentials_load_node(directory, &options.credentials, &error) != ASTER_OK) {
        fail(directory, error.message);
    }
    options.loop = side->loop;
    options.admit = admit_all;
    options.handler = handler;
    options.user = side;
    if (create(&options, &side->transport, &error) != ASTER_OK) {
        fail(directory, error.message);
    }
    aster_credentials_unref(options.credentials);
}

static void close_side(struct load *side)
{
    aster_transport_destroy(side->transport);
    aster_loop_destroy(side->loop);
}

static aster_status run_connect(void *argument)
{
    struct load *load = argument;
    struct aster_link *link;
    struct aster_error error;
    aster_status status =
        aster_transport_connect(load->transport, &load->remote, (struct aster_bytes){NULL, 0}, load, &link, &error);
    if (status != ASTER_OK) {
        fail("connect", error.message);
    }
    return status;
}

static aster_status run_start(void *argument)
{
    struct load *load = argument;
    for (unsigned i = 0; i < load->link_count; i++) {
        for (unsigned k = 0; k < load->in_flight; k++) {
            send_request(load->links[i]);
        }
    }
    return ASTER_OK;
}

static aster_status run_close(void *argument)
{
    struct load *load = argument;
    for (unsigned i = 0; i < load->link_count; i++) {
        aster_link_close(load->links[i], "done");
    }
    load->link_count = 0;
    return ASTER_OK;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double cpu_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void wait_for(atomic_uint *counter, unsigned value)
{
    while (atomic_load(counter) < value) {
        aster_pause_ns(200000);
    }
}

static void measure_requests(const char *name, create_transport create, const char *const *directories, unsigned links,
                             unsigned in_flight)
{
    static struct load server;
    static struct load client;
    struct aster_error error;
    memset(&server, 0, sizeof server);
    memset(&client, 0, sizeof client);
    client.samples = malloc(SAMPLES_MAX * sizeof *client.samples);
    open_side(&server, directories[0], create, &server_handler);
    open_side(&client, directories[1], create, &client_handler);
    struct aster_address local;
    size_t count;
    if (client.samples == NULL || aster_address_resolve("127.0.0.1:0", true, &local, 1, &count, &error) != ASTER_OK ||
        aster_transport_listen(server.transport, &local, &client.remote, &error) != ASTER_OK) {
        fail(name, "cannot listen");
    }
    client.in_flight = in_flight;
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < links; i++) {
        aster_loop_call(client.loop, run_connect, &client);
    }
    wait_for(&client.open, links);
    size_t after = mallinfo2().uordblks;
    atomic_store(&client.running, true);
    double cpu = cpu_us();
    int64_t start = bench_now_ns();
    aster_loop_call(client.loop, run_start, &client);
    aster_pause_ns(RUN_NS);
    atomic_store(&client.running, false);
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    cpu = cpu_us() - cpu;
    struct aster_transport_counts counts = aster_transport_counts(server.transport);
    aster_loop_call(client.loop, run_close, &client);
    wait_for(&client.closed, links);
    qsort(client.samples, client.sample_count, sizeof *client.samples, compare);
    printf("%-5s %3u x %-4u %10.0f requests/s  p50 %6.1f us  p99 %6.1f us  %5.2f us CPU both sides  %6zu "
           "bytes/connection both sides",
           name, links, in_flight, (double)client.done / seconds, client.samples[client.sample_count / 2] / 1e3,
           client.samples[client.sample_count * 99 / 100] / 1e3, cpu / (double)client.done, (after - before) / links);
    if (counts.datagrams_sent > 0) {
        printf("  %.2f datagrams/reply, %.3f calls", (double)counts.datagrams_sent / (double)client.done,
               (double)counts.send_calls / (double)client.done);
    }
    printf("\n");
    close_side(&client);
    close_side(&server);
    free(client.samples);
}

static void measure_handshakes(const char *name, create_transport create, const char *const *directories)
{
    static struct load server;
    static struct load client;
    struct aster_error error;
    struct aster_address local;
    size_t count;
    memset(&server, 0, sizeof server);
    memset(&client, 0, sizeof client);
    open_side(&server, directories[0], create, &server_handler);
    open_side(&client, directories[1], create, &client_handler);
    if (aster_address_resolve("127.0.0.1:0", true, &local, 1, &count, &error) != ASTER_OK ||
        aster_transport_listen(server.transport, &local, &client.remote, &error) != ASTER_OK) {
        fail(name, "cannot listen");
    }
    unsigned done = 0;
    int64_t start = bench_now_ns();
    while (bench_now_ns() - start < RUN_NS) {
        for (unsigned i = 0; i < 16; i++) {
            aster_loop_call(client.loop, run_connect, &client);
        }
        done += 16;
        wait_for(&client.open, done);
        aster_loop_call(client.loop, run_close, &client);
        wait_for(&client.closed, done);
    }
    printf("%-5s %10.0f mutual handshakes/s, 16 at a time\n", name,
           (double)done * 1e9 / (double)(bench_now_ns() - start));
    close_side(&client);
    close_side(&server);
}

/* ---- the reference ---- */

static void *echo(void *argument)
{
    int fd = *(int *)argument;
    unsigned char data[64];
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t got;
    while ((got = recvfrom(fd, data, sizeof data, 0, (struct sockaddr *)&from, &size)) > 1) {
        sendto(fd, data, (size_t)got, 0, (struct sockaddr *)&from, size);
    }
    return NULL;
}

static void measure_udp(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int far = socket(AF_INET, SOCK_DGRAM, 0);
    int near = socket(AF_INET, SOCK_DGRAM, 0);
    pthread_t thread;
    if (bind(far, (struct sockaddr *)&address, size) != 0 ||
        getsockname(far, (struct sockaddr *)&address, &size) != 0 ||
        connect(near, (struct sockaddr *)&address, size) != 0 || pthread_create(&thread, NULL, echo, &far) != 0) {
        fail("udp", "cannot open sockets");
    }
    static uint32_t samples[200000];
    size_t count = 0;
    unsigned char data[REQUEST_SIZE] = {0};
    int64_t start = bench_now_ns();
    while (bench_now_ns() - start < RUN_NS / 2 && count < sizeof samples / sizeof samples[0]) {
        int64_t sent = bench_now_ns();
        if (send(near, data, sizeof data, 0) < 0 || recv(near, data, sizeof data, 0) < 0) {
            fail("udp", "lost a datagram on loopback");
        }
        samples[count++] = (uint32_t)(bench_now_ns() - sent);
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    if (send(near, data, 1, 0) != 1) {
        fail("udp", "cannot stop the echo");
    }
    pthread_join(thread, NULL);
    close(near);
    close(far);
    qsort(samples, count, sizeof samples[0], compare);
    printf("udp     1 x 1    %10.0f requests/s  p50 %6.1f us  p99 %6.1f us  (bare ping-pong: the reference)\n",
           (double)count / seconds, samples[count / 2] / 1e3, samples[count * 99 / 100] / 1e3);
}

static void make_node(char *directory)
{
    char id[ASTER_NODE_ID_SIZE];
    struct aster_error error;
    if (mkdtemp(directory) == NULL || aster_node_create(directory, "bench", 1, id, &error) != ASTER_OK) {
        fail(directory, "cannot make a node");
    }
}

static void drop_node(const char *directory)
{
    struct aster_node_paths paths;
    if (aster_node_paths(directory, &paths, NULL) == ASTER_OK) {
        unlink(paths.key);
        unlink(paths.certificate);
        rmdir(directory);
    }
}

int main(void)
{
    static const unsigned shapes[][2] = {{1, 1}, {1, 64}, {64, 1}, {64, 16}};
    char server[] = "/tmp/aster-bench-XXXXXX";
    char client[] = "/tmp/aster-bench-XXXXXX";
    const char *const directories[] = {server, client};
    make_node(server);
    make_node(client);
    measure_udp();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        measure_requests("quic", aster_quic_transport_create, directories, shapes[i][0], shapes[i][1]);
        measure_requests("tcp", aster_tcp_transport_create, directories, shapes[i][0], shapes[i][1]);
    }
    measure_handshakes("quic", aster_quic_transport_create, directories);
    measure_handshakes("tcp", aster_tcp_transport_create, directories);
    drop_node(server);
    drop_node(client);
    return 0;
}
