/* s3_publish URL FILE: publish a file as an object of an S3-compatible store, under the fence in ASTER_FENCE, as
 * `aster run` sets it. A recipe to copy: the store's conditional write is the atomic step, and the object's metadata
 * holds the fence of the last publication.
 *
 *     aster run catalog -- sh -c 'make-catalog > new && s3_publish https://s3.example/bucket/catalog.json new'
 *
 * AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION sign the requests; without the first they are not signed.
 * Exit status: 0 published, 77 refused by the fence, 74 the store cannot be written, 64 usage.
 *
 * What it gives: an older epoch never replaces a newer one. The store hears of a takeover with the successor's first
 * publication, so until then the former holder's write is still let in; a successor that must shut it out before it
 * reads publishes what it found once more, under its own epoch, and then begins. Writers that do not send the condition
 * are not held to anything: give write access to the publishers only. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <curl/curl.h>

#include "aster/aster.h"
#include "object.h"

#define ATTEMPTS 20
#define PAUSE_MS_FIRST 20
#define PAUSE_MS_MAX 1000

enum { PUBLISHED = 0, USAGE = 64, FAILED = 74, REFUSED = 77 };

static void random_bytes(void *to, size_t size)
{
    if (getrandom(to, size, 0) != (ssize_t)size) {
        abort();
    }
}

/* A header value has no room for arbitrary bytes. */
static void encode(struct aster_bytes name, char text[OBJECT_NAME_MAX])
{
    const unsigned char *bytes = name.data;
    size_t at = 0;
    for (size_t i = 0; i < name.size; i++) {
        bool plain = (bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '%');
        at += (size_t)snprintf(text + at, OBJECT_NAME_MAX - at, plain ? "%c" : "%%%02X", bytes[i]);
    }
    text[at] = '\0';
}

static void describe(const struct aster_fence *fence, struct object_facts *next)
{
    unsigned char random[16];
    memset(next, 0, sizeof *next);
    next->epoch = fence->epoch;
    encode(fence->holder, next->holder);
    encode(fence->resource, next->resource);
    random_bytes(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(next->write_id + 2 * i, 3, "%02x", random[i]);
    }
}

/* May `next` follow what is there? */
static bool refused(const struct object_facts *seen, const struct object_facts *next)
{
    const char *why = NULL;
    if (seen->exists && seen->epoch > 0 && strcmp(seen->resource, next->resource) != 0) {
        why = "WRONG_RESOURCE: the object is published under another resource";
    } else if (seen->epoch > next->epoch) {
        why = "STALE_EPOCH: this writer was replaced";
    } else if (seen->epoch == next->epoch && seen->epoch > 0 && strcmp(seen->holder, next->holder) != 0) {
        why = "NOT_HOLDER: the epoch is another holder's";
    }
    if (why != NULL) {
        fprintf(stderr, "s3_publish: %s; carried %" PRId64 ", current %" PRId64 "; nothing was written\n", why,
                next->epoch, seen->epoch);
    }
    return why != NULL;
}

/* With jitter, so that two that met do not meet again. */
static void pause_before(int attempt)
{
    uint32_t random = 0;
    int64_t bound_ms = PAUSE_MS_FIRST;
    for (int i = 0; i < attempt && bound_ms < PAUSE_MS_MAX; i++) {
        bound_ms *= 2;
    }
    random_bytes(&random, sizeof random);
    int64_t ms = 1 + (int64_t)random % bound_ms;
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static int publish(const struct object_store *store, const struct aster_fence *fence, FILE *body, int64_t size)
{
    struct object_facts seen;
    struct object_facts next;
    describe(fence, &next);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (object_look(store, &seen) != OBJECT_OK) {
            return FAILED;
        }
        if (seen.exists && strcmp(seen.write_id, next.write_id) == 0) {
            return PUBLISHED; /* the write whose answer was lost */
        }
        if (refused(&seen, &next)) {
            return REFUSED;
        }
        enum object_answer answer = object_write(store, &seen, &next, body, size);
        if (answer == OBJECT_OK || answer == OBJECT_FAILED) {
            return answer == OBJECT_OK ? PUBLISHED : FAILED;
        }
        pause_before(attempt); /* changed, in conflict or unknown: look again, and let the fence decide */
    }
    fprintf(stderr, "s3_publish: %s: %d attempts met other writers or no answer; whether it was written is unknown\n",
            store->url, ATTEMPTS);
    return FAILED;
}

static const char *sign(struct object_store *store, char credentials[512])
{
    const char *key = getenv("AWS_ACCESS_KEY_ID");
    const char *secret = getenv("AWS_SECRET_ACCESS_KEY");
    store->region = getenv("AWS_REGION") != NULL ? getenv("AWS_REGION") : "us-east-1";
    if (key == NULL) {
        return "";
    }
    if (secret == NULL || snprintf(credentials, 512, "%s:%s", key, secret) >= 512) {
        return "AWS_SECRET_ACCESS_KEY is missing or too long";
    }
    store->credentials = credentials;
    return "";
}

int main(int argc, char **argv)
{
    struct aster_fence fence;
    struct aster_error error = ASTER_ERROR_INIT;
    static char storage[ASTER_FENCE_TEXT_MAX];
    char credentials[512];
    const char *text = getenv("ASTER_FENCE");
    if (argc != 3 || text == NULL) {
        fprintf(stderr, "usage: s3_publish URL FILE, with ASTER_FENCE as `aster run` sets it\n");
        return USAGE;
    }
    struct object_store store = {argv[1], NULL, NULL};
    const char *wrong = sign(&store, credentials);
    if (wrong[0] != '\0' || aster_fence_parse(text, storage, sizeof storage, &fence, &error) != ASTER_OK) {
        fprintf(stderr, "s3_publish: %s\n", wrong[0] != '\0' ? wrong : error.message);
        return USAGE;
    }
    FILE *body = fopen(argv[2], "rb");
    if (body == NULL || fseek(body, 0, SEEK_END) != 0) {
        fprintf(stderr, "s3_publish: cannot read %s\n", argv[2]);
        return FAILED;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int code = publish(&store, &fence, body, ftell(body));
    curl_global_cleanup();
    fclose(body);
    return code;
}
