/* What one append to the SQLite journal costs beside a bare fdatasync of a file whose space is there already, how many
 * records a second that makes with entries of many, and how long a load takes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/entry.h"
#include "journal/sqlite/journal.h"
#include "physical.h"

#define SMALL_APPENDS 1500
#define BATCHES 1200
#define BATCH_DECISIONS 32 /* a row and its event each */
#define LOAD_ROWS 100000
#define RAW_BYTES (4 << 20)
#define SMALL_BOUND 1.3 /* of a bare sync, median */
#define BATCH_BOUND 1.6 /* the same, with the folding that follows, mean */
#define LOAD_BOUND_MS 1000

static void check(bool good, const char *what, const struct aster_error *error)
{
    if (!good) {
        fprintf(stderr, "bench_journal: %s: %s\n", what, error != NULL ? error->message : "failed");
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* A file whose blocks are all written, over which syncs go round and round. */
struct raw {
    int fd;
    off_t at;
};

static struct raw raw_open(const char *directory)
{
    static char zeros[RAW_BYTES];
    char path[600];
    snprintf(path, sizeof path, "%s/raw", directory);
    struct raw raw = {open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 0};
    check(raw.fd >= 0 && write(raw.fd, zeros, sizeof zeros) == (ssize_t)sizeof zeros && fsync(raw.fd) == 0,
          "cannot write a file", NULL);
    unlink(path);
    return raw;
}

static double raw_sync_us(struct raw *raw, size_t bytes)
{
    static const char data[1 << 17];
    int64_t start = bench_now_ns();
    check(pwrite(raw->fd, data, bytes, raw->at) == (ssize_t)bytes && fdatasync(raw->fd) == 0, "cannot sync", NULL);
    raw->at = (raw->at + 8192 + (off_t)bytes) % (RAW_BYTES - (1 << 17));
    return (double)(bench_now_ns() - start) / 1000;
}

/* Bytes that this process has given to write(). (write_bytes counts whole folios of the page cache.) */
static double written_bytes(void)
{
    char line[128];
    double bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "wchar:", 6) == 0) {
            bytes = atof(line + 6);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static aster_status count_row(void *user, struct aster_bytes resource, const struct aster_row *row,
                              struct aster_error *error)
{
    (void)resource;
    (void)row;
    (void)error;
    (*(size_t *)user)++;
    return ASTER_OK;
}

static aster_status ignore_floor(void *user, int64_t floor, struct aster_error *error)
{
    (void)user;
    (void)floor;
    (void)error;
    return ASTER_OK;
}

static aster_status ignore_event(void *user, const struct aster_event *event, struct aster_error *error)
{
    (void)user;
    (void)event;
    (void)error;
    return ASTER_OK;
}

struct bench {
    const char *directory;
    char path[600];
    struct aster_journal journal;
    int64_t position;
    struct aster_entry_builder builder;
};

/* Open and load; the rows, and the time it took. */
static size_t open_journal(struct bench *bench, double *ms)
{
    struct aster_error error = ASTER_ERROR_INIT;
    size_t rows = 0;
    const struct aster_journal_loading into = {&rows, ignore_floor, count_row, ignore_event};
    int64_t start = bench_now_ns();
    check(aster_sqlite_journal_open(bench->path, NULL, &bench->journal, &error) == ASTER_OK, "open", &error);
    check(bench->journal.ops->load(bench->journal.self, &into, &bench->position, &error) == ASTER_OK, "load", &error);
    *ms = (double)(bench_now_ns() - start) / 1e6;
    return rows;
}

static double append_us(struct bench *bench, struct aster_bytes entry)
{
    struct aster_error error = ASTER_ERROR_INIT;
    int64_t start = bench_now_ns();
    check(bench->journal.ops->append(bench->journal.self, ++bench->position, entry, &error) == ASTER_OK, "append",
          &error);
    return (double)(bench_now_ns() - start) / 1000;
}

static void checkpoint(struct bench *bench)
{
    struct aster_error error = ASTER_ERROR_INIT;
    bool more;
    check(bench->journal.ops->checkpoint(bench->journal.self, &more, &error) == ASTER_OK, "checkpoint", &error);
}

static void add_decision(struct bench *bench, int index, int64_t epoch)
{
    char resource[32];
    char holder[32];
    snprintf(resource, sizeof resource, "resource/%011d", index); /* 20 bytes */
    snprintf(holder, sizeof holder, "holder/%013d", index);
    struct aster_record record = {.kind = ASTER_RECORD_ROW, .resource = aster_text(resource), .keep_value = true};
    record.row = (struct aster_row){
        .epoch = epoch,
        .held = true,
        .holder = aster_text(holder),
        .ttl_ms = 30000,
        .last_holder = aster_text(holder),
        .last_epoch_held = epoch,
        .applied = {{1, 2, 3, (unsigned char)epoch}, aster_text(holder), ASTER_OP_ACQUIRE, false, epoch}};
    struct aster_error error = ASTER_ERROR_INIT;
    check(aster_entry_add(&bench->builder, &record, &error) == ASTER_OK, "add", &error);
    record = (struct aster_record){.kind = ASTER_RECORD_EVENT,
                                   .event = {.revision = bench->position * LOAD_ROWS + index + 1,
                                             .unix_ms = 1700000000000,
                                             .kind = ASTER_EVENT_GRANTED,
                                             .resource = aster_text(resource),
                                             .actor = aster_text(holder),
                                             .epoch = epoch}};
    check(aster_entry_add(&bench->builder, &record, &error) == ASTER_OK, "add", &error);
}

static struct aster_bytes seal(struct bench *bench)
{
    struct aster_bytes entry;
    check(aster_entry_seal(&bench->builder, &entry, NULL) == ASTER_OK, "seal", NULL);
    return entry;
}

/* Both in turn, so that a change in the disk's mood hits both. */
static bool measure_small(struct bench *bench, struct raw *raw)
{
    static double syncs[SMALL_APPENDS];
    static double appends[SMALL_APPENDS];
    aster_entry_builder_reset(&bench->builder);
    add_decision(bench, 1, 1);
    struct aster_bytes entry = seal(bench);
    for (int i = 0; i < SMALL_APPENDS; i++) {
        syncs[i] = raw_sync_us(raw, 4096);
        appends[i] = append_us(bench, entry);
        checkpoint(bench);
    }
    double sync = median(syncs, SMALL_APPENDS);
    double append = median(appends, SMALL_APPENDS);
    bool pass = append / sync <= SMALL_BOUND;
    printf("one sync (4 KiB in place + fdatasync), p50     %9.1f us   p99 %9.1f us\n", sync,
           syncs[SMALL_APPENDS * 99 / 100]);
    printf("one append of %3zu bytes, p50                   %9.1f us   p99 %9.1f us\n", entry.size, append,
           appends[SMALL_APPENDS * 99 / 100]);
    printf("append / sync                                  %9.2f      bound %.1f  %s\n", append / sync, SMALL_BOUND,
           pass ? "PASS" : "FAIL");
    return pass;
}

static bool measure_batches(struct bench *bench, struct raw *raw)
{
    double syncs_us = 0;
    double appends_us = 0;
    size_t bytes = 0;
    double before = written_bytes();
    for (int i = 0; i < BATCHES; i++) {
        aster_entry_builder_reset(&bench->builder);
        for (int decision = 0; decision < BATCH_DECISIONS; decision++) {
            add_decision(bench, decision, i + 2);
        }
        struct aster_bytes entry = seal(bench);
        bytes += entry.size;
        syncs_us += raw_sync_us(raw, entry.size);
        int64_t start = bench_now_ns();
        append_us(bench, entry);
        checkpoint(bench);
        appends_us += (double)(bench_now_ns() - start) / 1000;
    }
    double records = 2.0 * BATCH_DECISIONS * BATCHES;
    double ratio = appends_us / syncs_us;
    bool pass = ratio <= BATCH_BOUND;
    printf("appends of %d records, folding included       %9.0f /s\n", 2 * BATCH_DECISIONS, BATCHES * 1e6 / appends_us);
    printf("records                                        %9.0f /s\n", records * 1e6 / appends_us);
    printf("append / sync of as many bytes, mean           %9.2f      bound %.1f  %s\n", ratio, BATCH_BOUND,
           pass ? "PASS" : "FAIL");
    printf("bytes of entries per record                    %9.1f\n", (double)bytes / records);
    printf("bytes written per record, folding included     %9.1f\n",
           (written_bytes() - before - (double)bytes) / records);
    return pass;
}

static bool measure_load(struct bench *bench)
{
    double ms = 0;
    for (int row = 0; row < LOAD_ROWS;) {
        aster_entry_builder_reset(&bench->builder);
        for (int end = row + 1000; row < end; row++) {
            add_decision(bench, row, 1);
        }
        append_us(bench, seal(bench));
        checkpoint(bench);
    }
    bench->journal.ops->destroy(bench->journal.self);
    size_t rows = open_journal(bench, &ms);
    bool pass = rows == LOAD_ROWS && ms <= LOAD_BOUND_MS;
    printf("opening and loading %zu rows               %9.0f ms   bound %d  %s\n", rows, ms, LOAD_BOUND_MS,
           pass ? "PASS" : "FAIL");
    return pass;
}

int main(int argc, char **argv)
{
    const char *parent = argc > 1 ? argv[1] : ".";
    char directory[512];
    double ms;
    struct bench bench = {.directory = directory};
    snprintf(directory, sizeof directory, "%s/aster-bench-XXXXXX", parent);
    check(mkdtemp(directory) != NULL, "cannot make a directory", NULL);
    snprintf(bench.path, sizeof bench.path, "%s/journal.db", directory);
    struct raw raw = raw_open(directory);
    open_journal(&bench, &ms);
    bool pass = measure_small(&bench, &raw);
    pass = measure_batches(&bench, &raw) && pass;
    pass = measure_load(&bench) && pass;
    bench.journal.ops->destroy(bench.journal.self);
    aster_entry_builder_fini(&bench.builder);
    close(raw.fd);
    unlink(bench.path);
    rmdir(directory);
    return pass ? 0 : 1;
}
