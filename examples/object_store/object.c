#include "object.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#define TIMEOUT_S 20L

static CURL *prepare(const struct object_store *store, char signer[128])
{
    CURL *curl = curl_easy_init();
    if (curl == NULL) {
        return NULL;
    }
    curl_easy_setopt(curl, CURLOPT_URL, store->url);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (store->credentials != NULL) {
        snprintf(signer, 128, "aws:amz:%s:s3", store->region);
        curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, signer);
        curl_easy_setopt(curl, CURLOPT_USERPWD, store->credentials);
    }
    return curl;
}

/* The value of the header line when it has that name, copied without the end of line. */
static bool read_header(const char *line, size_t size, const char *name, char *value, size_t capacity)
{
    size_t skip = strlen(name);
    if (size <= skip || strncasecmp(line, name, skip) != 0) {
        return false;
    }
    while (skip < size && line[skip] == ' ') {
        skip++;
    }
    while (size > skip && (line[size - 1] == '\r' || line[size - 1] == '\n')) {
        size--;
    }
    return snprintf(value, capacity, "%.*s", (int)(size - skip), line + skip) < (int)capacity;
}

static size_t take_header(char *line, size_t one, size_t size, void *user)
{
    struct object_facts *facts = user;
    char number[24];
    (void)one;
    if (read_header(line, size, "x-amz-meta-aster-epoch:", number, sizeof number)) {
        facts->epoch = strtoll(number, NULL, 10);
    }
    read_header(line, size, "etag:", facts->etag, sizeof facts->etag);
    read_header(line, size, "x-amz-meta-aster-holder:", facts->holder, sizeof facts->holder);
    read_header(line, size, "x-amz-meta-aster-resource:", facts->resource, sizeof facts->resource);
    read_header(line, size, "x-amz-meta-aster-write:", facts->write_id, sizeof facts->write_id);
    return size;
}

static enum object_answer fail(const char *what, const struct object_store *store, const char *why, long code)
{
    fprintf(stderr, "s3_publish: cannot %s %s: %s (HTTP %ld)\n", what, store->url, why, code);
    return OBJECT_FAILED;
}

enum object_answer object_look(const struct object_store *store, struct object_facts *facts)
{
    char signer[128];
    long code = 0;
    CURL *curl = prepare(store, signer);
    if (curl == NULL) {
        return fail("look at", store, "out of memory", 0);
    }
    memset(facts, 0, sizeof *facts);
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, facts);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_cleanup(curl);
    facts->exists = code == 200;
    if (result != CURLE_OK || (code != 200 && code != 404)) {
        return fail("look at", store, result != CURLE_OK ? curl_easy_strerror(result) : "the store refused", code);
    }
    if (facts->exists && facts->etag[0] == '\0') {
        return fail("look at", store, "the store gives no ETag, so no write can be conditional", code);
    }
    return OBJECT_OK;
}

static bool add(struct curl_slist **headers, const char *name, const char *value)
{
    char line[OBJECT_NAME_MAX + 64];
    snprintf(line, sizeof line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*headers, line);
    *headers = longer != NULL ? longer : *headers;
    return longer != NULL;
}

/* The condition is what makes it safe: the store compares and writes in one step. */
static bool add_all(struct curl_slist **headers, const struct object_facts *seen, const struct object_facts *next)
{
    char epoch[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, next->epoch);
    return add(headers, seen->exists ? "If-Match" : "If-None-Match", seen->exists ? seen->etag : "*") &&
           add(headers, "x-amz-meta-aster-epoch", epoch) && add(headers, "x-amz-meta-aster-holder", next->holder) &&
           add(headers, "x-amz-meta-aster-resource", next->resource) &&
           add(headers, "x-amz-meta-aster-write", next->write_id) &&
           add(headers, "x-amz-content-sha256", "UNSIGNED-PAYLOAD") && add(headers, "Expect", "");
}

static size_t discard(char *data, size_t one, size_t size, void *user)
{
    (void)data;
    (void)one;
    (void)user;
    return size;
}

static enum object_answer judge(const struct object_store *store, const struct object_facts *seen, CURLcode result,
                                long code)
{
    if (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST) {
        return fail("write", store, curl_easy_strerror(result), code);
    }
    if (result != CURLE_OK || code >= 500) {
        return OBJECT_UNKNOWN;
    }
    if (code == 412 || (code == 404 && seen->exists)) {
        return OBJECT_CHANGED;
    }
    if (code == 409) {
        return OBJECT_CONFLICT;
    }
    return code == 200 || code == 201 ? OBJECT_OK : fail("write", store, "the store refused", code);
}

enum object_answer object_write(const struct object_store *store, const struct object_facts *seen,
                                const struct object_facts *next, FILE *body, int64_t size)
{
    char signer[128];
    long code = 0;
    struct curl_slist *headers = NULL;
    CURL *curl = prepare(store, signer);
    if (curl == NULL || !add_all(&headers, seen, next) || fseek(body, 0, SEEK_SET) != 0) {
        curl_slist_free_all(headers);
        curl_easy_cleanup(curl);
        return fail("write", store, "out of memory, or the file cannot be read again", 0);
    }
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_READDATA, body);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    CURLcode result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return judge(store, seen, result, code);
}
