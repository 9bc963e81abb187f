/* `aster bench`: what a fence costs here, beside what this machine itself costs in the same run. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "aster/sqlite.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/output.h"
#include "physical.h"

#define FENCES 2000000
#define WRITES 1000000
#define ROUNDS 5
#define CYCLES_PER_ROUND 20
#define SYNC_MS 100

struct arguments {
    const char *directory;
};

static const struct arguments defaults = {NULL};

static const struct aster_option options[] = {
    {"directory", 'd', ASTER_OPTION_TEXT, "DIR", "the disk to measure (default: TMPDIR, else /var/tmp)",
     offsetof(struct arguments, directory), NULL},
    ASTER_OPTION_END,
};

struct figure {
    const char *name;
    const char *reference;
    double ns;
    double reference_ns;
    double bound; /* of ns / reference_ns */
};

static aster_status expect(aster_status status, bool as_expected, struct aster_error *error)
{
    if (status == ASTER_OK && !as_expected) {
        return aster_error_set(error, ASTER_ERR_IO, "the benchmark's own lease was refused");
    }
    return status;
}

static aster_status measure_fence(struct aster_serializer *serializer, struct figure *figure, struct aster_error *error)
{
    struct aster_lease *lease = NULL;
    aster_status status =
        aster_lease_acquire(serializer, aster_text("bench/fence"), aster_text("bench"), NULL, &lease, NULL, error);
    status = expect(status, lease != NULL, error);
    if (status != ASTER_OK) {
        return status;
    }
    uint64_t supplied = 0;
    figure->reference_ns = bench_clock_read_ns();
    int64_t start_ns = bench_now_ns();
    for (int i = 0; i < FENCES; i++) {
        supplied += aster_lease_fence(lease) != NULL;
    }
    figure->ns = (double)(bench_now_ns() - start_ns) / FENCES;
    bench_keep(supplied);
    status = aster_lease_release(lease, 1000, NULL, error);
    aster_lease_destroy(lease);
    return status;
}

static aster_status count(void *tx, void *user)
{
    (void)tx;
    *(uint64_t *)user += 1;
    return ASTER_OK;
}

static aster_status acquire(struct aster_serializer *serializer, const char *resource, struct aster_reply *reply,
                            struct aster_error *error)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_ACQUIRE;
    operation.resource = aster_text(resource);
    operation.caller = aster_text("bench");
    operation.ttl_ms = ASTER_LEASE_TTL_DEFAULT_MS;
    aster_status status = aster_serializer_call(serializer, &operation, 0, reply, error);
    return expect(status, status == ASTER_OK && reply->decision.outcome == ASTER_GRANTED, error);
}

static aster_status release(struct aster_serializer *serializer, const char *resource, struct aster_reply *reply,
                            struct aster_error *error)
{
    struct aster_operation operation = ASTER_OPERATION_INIT;
    operation.kind = ASTER_OP_RELEASE;
    operation.resource = aster_text(resource);
    operation.caller = aster_text("bench");
    operation.epoch = reply->decision.epoch;
    aster_status status = aster_serializer_call(serializer, &operation, 0, reply, error);
    return expect(status, status == ASTER_OK && reply->decision.outcome == ASTER_GRANTED, error);
}

static aster_status measure_write(struct aster_serializer *serializer, struct figure *figure, struct aster_error *error)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    struct aster_verdict verdict = ASTER_VERDICT_INIT;
    uint64_t writes = 0;
    aster_status status = acquire(serializer, "bench/write", &reply, error);
    if (status == ASTER_OK) {
        const struct aster_fence fence = {aster_text("bench/write"), reply.decision.epoch, aster_text("bench")};
        figure->reference_ns = bench_mutex_pair_ns();
        int64_t start_ns = bench_now_ns();
        for (int i = 0; i < WRITES; i++) {
            aster_mutate_fenced(serializer, &fence, fence.holder, count, &writes, &verdict, NULL);
        }
        figure->ns = (double)(bench_now_ns() - start_ns) / WRITES;
        status = expect(ASTER_OK, writes == WRITES, error);
    }
    aster_reply_fini(&reply);
    return status;
}

/* Rounds in turn, and the best of each: what the disk's mood does to one round it does to the other. */
static aster_status measure_cycles(struct aster_serializer *serializer, const char *directory, struct figure *figure,
                                   struct aster_error *error)
{
    struct aster_reply reply = ASTER_REPLY_INIT;
    aster_status status = ASTER_OK;
    for (int round = 0; round < ROUNDS && status == ASTER_OK; round++) {
        double rate = bench_append_sync_per_second(directory, SYNC_MS);
        if (rate <= 0) {
            status = aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot write and sync in the directory");
            break;
        }
        int64_t start_ns = bench_now_ns();
        for (int i = 0; i < CYCLES_PER_ROUND && status == ASTER_OK; i++) {
            status = acquire(serializer, "bench/cycle", &reply, error);
            if (status == ASTER_OK) {
                status = release(serializer, "bench/cycle", &reply, error);
            }
        }
        double cycle_ns = (double)(bench_now_ns() - start_ns) / CYCLES_PER_ROUND;
        double syncs_ns = 2e9 / rate;
        figure->ns = round == 0 || cycle_ns < figure->ns ? cycle_ns : figure->ns;
        figure->reference_ns = round == 0 || syncs_ns < figure->reference_ns ? syncs_ns : figure->reference_ns;
    }
    aster_reply_fini(&reply);
    return status;
}

static aster_status measure_sqlite(const char *parent, struct figure *figure, struct aster_error *error)
{
    static const char *const files[] = {"bench.db", "bench.db-wal", "bench.db-shm"};
    char directory[512];
    char path[600];
    struct aster_serializer *serializer = NULL;
    snprintf(directory, sizeof directory, "%s/aster-bench-XXXXXX", parent);
    if (strlen(parent) > 400 || mkdtemp(directory) == NULL) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno,
                                  "cannot make a directory in %.100s; name one with "
                                  "--directory",
                                  parent);
    }
    snprintf(path, sizeof path, "%s/bench.db", directory);
    aster_status status = aster_sqlite_open(path, NULL, &serializer, error);
    if (status == ASTER_OK) {
        status = measure_cycles(serializer, directory, figure, error);
    }
    aster_serializer_destroy(serializer);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        unlink(path);
    }
    rmdir(directory);
    return status;
}

static int print(const struct aster_cli *cli, const struct figure *figures, size_t size)
{
    json_t *json = cli->json ? json_array() : NULL;
    int missed = 0;
    for (size_t i = 0; i < size; i++) {
        const struct figure *f = &figures[i];
        double ratio = f->ns / f->reference_ns;
        bool pass = ratio <= f->bound;
        missed += !pass;
        if (cli->json) {
            json_array_append_new(json, json_pack("{s:s, s:f, s:s, s:f, s:f, s:f, s:b}", "name", f->name, "ns", f->ns,
                                                  "reference", f->reference, "reference_ns", f->reference_ns, "ratio",
                                                  ratio, "bound", f->bound, "pass", pass));
        } else {
            printf("%-44s %12.1f ns  = %5.2f x %s (%.1f ns), bound %.1f  %s\n", f->name, f->ns, ratio, f->reference,
                   f->reference_ns, f->bound, pass ? "PASS" : "FAIL");
        }
    }
    int code = missed == 0 ? ASTER_EXIT_OK : ASTER_EXIT_FAILED;
    int failed = cli->json ? aster_json_print(json, JSON_INDENT(1), stdout) : ASTER_EXIT_OK;
    return failed != ASTER_EXIT_OK ? failed : code;
}

static int run(const struct aster_cli *cli, const void *user, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const struct arguments *arguments = user;
    struct figure figures[] = {
        {"lease: fence()", "one clock read", 0, 0, 2.0},
        {"memory: fenced write on a hot resource", "one mutex lock+unlock", 0, 0, 8.0},
        {"sqlite: acquire + release, durable", "two syncs", 0, 0, 2.3},
    };
    struct aster_error error = ASTER_ERROR_INIT;
    struct aster_serializer *memory = NULL;
    const char *directory = arguments->directory != NULL ? arguments->directory : getenv("TMPDIR");
    /* The lease handle's threads live from here on, so that both sides pay for locks of a process with threads. */
    aster_status status = aster_memory_open(NULL, &memory, &error);
    if (status == ASTER_OK) {
        status = measure_fence(memory, &figures[0], &error);
    }
    if (status == ASTER_OK) {
        status = measure_write(memory, &figures[1], &error);
    }
    aster_serializer_destroy(memory);
    if (status == ASTER_OK) {
        status = measure_sqlite(directory != NULL ? directory : "/var/tmp", &figures[2], &error);
    }
    return status == ASTER_OK ? print(cli, figures, sizeof figures / sizeof figures[0]) : aster_cli_fail(cli, &error);
}

const struct aster_command aster_command_bench = {
    .name = "bench",
    .summary = "Measure what a fence costs on this machine, beside the machine itself",
    .operands = "",
    .details = "Takes about three seconds. Exits 1 when a bound is missed. The full benchmarks are in bench/.",
    .example = "aster bench --directory /srv/data",
    .options = options,
    .defaults = &defaults,
    .arguments_size = sizeof defaults,
    .storeless = true,
    .run = run,
};
