/* etcd v3, one connection per client. Variants:
 *   key    one etcd lease per client, as its sessions do; acquire is a transaction that creates the key when it is
 *          absent, release one that deletes it when its create revision is ours
 *   lease  an etcd lease per acquire, revoked by the release: what each of many leases costs in memory
 *   mutex  the recipe of its concurrency package: a key per client under a prefix; each waits, by a watch, for the key
 *          just before its own to go away
 * The epoch is the key's create revision; renew is a message on a long-lived keep-alive stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd_wire.h"

#define ACK_ABOVE (1u << 29) /* bytes received before window is given back */
#define OPEN_PATIENCE_MS 20000

enum state {
    STATE_IDLE,
    STATE_GRANT,
    STATE_CREATE,
    STATE_CHECKED_DELETE,
    STATE_DELETE,
    STATE_KEEP_ALIVE,
    STATE_ENQUEUE,
    STATE_PREDECESSOR,
    STATE_WATCH
};

struct connection {
    struct buffer in;
    uint32_t next_stream;
    uint32_t call_stream; /* of the call in flight */
    uint32_t keep_alive_stream;
    uint32_t watch_stream;
    struct buffer call; /* bytes of those streams */
    struct buffer keep_alive;
    struct buffer watch;
    uint32_t unacknowledged;
    enum state state;
    bool opening;
    int64_t lease;
    char key[160];
    char previous[256];
    int64_t revision;
    int64_t watch_id;
};

static bool is_variant(const char *name)
{
    return strcmp(options.variant, name) == 0;
}

static enum outcome call(struct client *client, const char *path, const struct message *message, enum state state)
{
    struct connection *connection = client->own;
    connection->call_stream = connection->next_stream;
    connection->next_stream += 2;
    connection->call.size = connection->call.taken = 0;
    connection->state = state;
    return send_grpc(client->fd, path, message, connection->call_stream, true);
}

static enum outcome send_on(struct client *client, const char *path, const struct message *message, uint32_t *stream)
{
    struct connection *connection = client->own;
    bool fresh = *stream == 0;
    if (fresh) {
        *stream = connection->next_stream;
        connection->next_stream += 2;
    }
    return send_grpc(client->fd, fresh ? path : NULL, message, *stream, false);
}

/* ---- requests ---- */

static enum outcome grant(struct client *client)
{
    struct message message = {.size = 0};
    put_int(&message, 1, (options.ttl_ms + 999) / 1000);
    return call(client, "/etcdserverpb.Lease/LeaseGrant", &message, STATE_GRANT);
}

static void put_created_at(struct message *transaction, const char *key, int64_t revision)
{
    struct message compare = {.size = 0};
    put_int(&compare, 2, 1); /* the create revision; equal is 0 */
    put_text(&compare, 3, key);
    put_int_always(&compare, 5, revision);
    put_message(transaction, 1, &compare);
}

static void put_put(struct message *transaction, const char *key, int64_t lease)
{
    struct message put = {.size = 0};
    struct message operation = {.size = 0};
    put_text(&put, 1, key);
    put_text(&put, 2, "me");
    put_int(&put, 3, lease);
    put_message(&operation, 2, &put);
    put_message(transaction, 2, &operation);
}

static enum outcome create_key(struct client *client)
{
    struct connection *connection = client->own;
    struct message transaction = {.size = 0};
    put_created_at(&transaction, connection->key, 0);
    put_put(&transaction, connection->key, connection->lease);
    return call(client, "/etcdserverpb.KV/Txn", &transaction, STATE_CREATE);
}

/* All keys of the queue: from the prefix to just behind it. */
static void put_prefix(struct message *range, const struct client *client, int limit, int order)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "lock-%s/", client->resource);
    put_text(range, 1, prefix);
    prefix[strlen(prefix) - 1]++;
    put_text(range, 2, prefix);
    put_int(range, 3, limit);
    put_int(range, 5, order);
    put_int(range, 6, 2); /* by create revision */
}

static enum outcome enqueue(struct client *client)
{
    struct connection *connection = client->own;
    struct message transaction = {.size = 0};
    struct message first = {.size = 0};
    struct message own = {.size = 0};
    struct message operation = {.size = 0};
    struct message own_operation = {.size = 0};
    snprintf(connection->key, sizeof connection->key, "lock-%s/%llx", client->resource,
             (unsigned long long)connection->lease);
    put_prefix(&first, client, 1, 1);
    put_message(&operation, 1, &first);
    put_text(&own, 1, connection->key);
    put_message(&own_operation, 1, &own);
    put_created_at(&transaction, connection->key, 0);
    put_put(&transaction, connection->key, connection->lease);
    put_message(&transaction, 2, &operation);
    put_message(&transaction, 3, &own_operation);
    put_message(&transaction, 3, &operation);
    return call(client, "/etcdserverpb.KV/Txn", &transaction, STATE_ENQUEUE);
}

static enum outcome ask_predecessor(struct client *client)
{
    const struct connection *connection = client->own;
    struct message range = {.size = 0};
    put_prefix(&range, client, 1, 2);
    put_int(&range, 13, connection->revision - 1); /* created before ours */
    return call(client, "/etcdserverpb.KV/Range", &range, STATE_PREDECESSOR);
}

static enum outcome watch_predecessor(struct client *client, int64_t from_revision)
{
    struct connection *connection = client->own;
    struct message create = {.size = 0};
    struct message message = {.size = 0};
    put_text(&create, 1, connection->previous);
    put_int(&create, 3, from_revision);
    put_int_always(&create, 5, 0); /* no puts */
    put_message(&message, 1, &create);
    connection->state = STATE_WATCH;
    return send_on(client, "/etcdserverpb.Watch/Watch", &message, &connection->watch_stream);
}

static enum outcome cancel_watch(struct client *client)
{
    struct connection *connection = client->own;
    struct message cancel = {.size = 0};
    struct message message = {.size = 0};
    put_int(&cancel, 1, connection->watch_id);
    put_message(&message, 2, &cancel);
    return send_on(client, NULL, &message, &connection->watch_stream);
}

static enum outcome etcd_open(struct client *client)
{
    struct connection *connection = calloc(1, sizeof *connection);
    client->own = connection;
    client->fd = socket_connect(options.port);
    if (connection == NULL || client->fd < 0 || send_preface(client->fd) != OUTCOME_PENDING) {
        return OUTCOME_ERROR;
    }
    connection->next_stream = 1;
    if (is_variant("lease")) {
        return OUTCOME_OK;
    }
    connection->opening = true;
    client->awaited = true;
    enum outcome outcome = grant(client) == OUTCOME_PENDING ? driver_await(client, OPEN_PATIENCE_MS) : OUTCOME_ERROR;
    connection->opening = false;
    return outcome;
}

static enum outcome etcd_acquire(struct client *client)
{
    struct connection *connection = client->own;
    if (is_variant("mutex")) {
        return enqueue(client);
    }
    snprintf(connection->key, sizeof connection->key, "lock-%s", client->resource);
    return is_variant("lease") ? grant(client) : create_key(client);
}

static enum outcome etcd_release(struct client *client)
{
    const struct connection *connection = client->own;
    struct message removal = {.size = 0};
    if (is_variant("lease")) {
        put_int(&removal, 1, connection->lease);
        return call(client, "/etcdserverpb.Lease/LeaseRevoke", &removal, STATE_DELETE);
    }
    put_text(&removal, 1, connection->key);
    if (is_variant("mutex")) {
        return call(client, "/etcdserverpb.KV/DeleteRange", &removal, STATE_DELETE);
    }
    struct message transaction = {.size = 0};
    struct message operation = {.size = 0};
    put_created_at(&transaction, connection->key, client->epoch);
    put_message(&operation, 3, &removal);
    put_message(&transaction, 2, &operation);
    return call(client, "/etcdserverpb.KV/Txn", &transaction, STATE_CHECKED_DELETE);
}

static enum outcome etcd_renew(struct client *client)
{
    struct connection *connection = client->own;
    struct message message = {.size = 0};
    put_int(&message, 1, connection->lease);
    connection->state = STATE_KEEP_ALIVE;
    return send_on(client, "/etcdserverpb.Lease/LeaseKeepAlive", &message, &connection->keep_alive_stream);
}

/* ---- responses ---- */

static int64_t header_revision(struct fields header)
{
    int64_t revision = 0;
    while (next_field(&header)) {
        revision = header.number == 3 ? (int64_t)header.value : revision;
    }
    return revision;
}

/* The create revision of the first key in a range's response, 0 when there is none; and the key itself. */
static int64_t first_created(struct fields range, char *key, size_t capacity, int64_t *revision)
{
    int64_t created = 0;
    while (next_field(&range)) {
        if (range.number == 1 && range.is_bytes && revision != NULL) {
            *revision = header_revision(inner_fields(&range));
        }
        if (range.number != 2 || !range.is_bytes || created != 0) {
            continue;
        }
        struct fields pair = inner_fields(&range);
        while (next_field(&pair)) {
            if (pair.number == 1 && key != NULL && pair.size < capacity) {
                memcpy(key, pair.data, pair.size);
                key[pair.size] = '\0';
            } else if (pair.number == 2) {
                created = (int64_t)pair.value;
            }
        }
    }
    return created;
}

/* A grant's and a transaction's response have their fields in the same places. */
struct response {
    int64_t revision;
    uint64_t second; /* a lease's id, or whether the transaction's condition held */
    struct fields ranges[2];
    int range_count;
};

static struct response read_response(struct fields fields)
{
    struct response response = {.range_count = 0};
    while (next_field(&fields)) {
        if (fields.number == 1 && fields.is_bytes) {
            response.revision = header_revision(inner_fields(&fields));
        } else if (fields.number == 2 && !fields.is_bytes) {
            response.second = fields.value;
        } else if (fields.number == 3 && fields.is_bytes && response.range_count < 2) {
            response.ranges[response.range_count++] = inner_fields(&fields);
        }
    }
    return response;
}

static enum outcome enqueued(struct client *client, struct response *response)
{
    struct connection *connection = client->own;
    int64_t first = 0;
    connection->revision = response->revision;
    for (int i = 0; i < response->range_count; i++) {
        while (next_field(&response->ranges[i])) {
            if (response->ranges[i].number == 1 && response->ranges[i].is_bytes) {
                int64_t created = first_created(inner_fields(&response->ranges[i]), NULL, 0, NULL);
                bool is_own = i == 0 && response->second == 0;
                *(is_own ? &connection->revision : &first) = created;
            }
        }
    }
    client->epoch = connection->revision;
    return first == 0 || first == connection->revision ? OUTCOME_OK : ask_predecessor(client);
}

static enum outcome granted(struct client *client, const struct response *response)
{
    struct connection *connection = client->own;
    connection->lease = (int64_t)response->second;
    if (connection->opening || connection->lease == 0) {
        return connection->lease != 0 ? OUTCOME_OK : OUTCOME_ERROR;
    }
    return create_key(client);
}

static enum outcome found_predecessor(struct client *client, struct fields range)
{
    struct connection *connection = client->own;
    int64_t revision = 0;
    int64_t created = first_created(range, connection->previous, sizeof connection->previous, &revision);
    return created == 0 ? OUTCOME_OK : watch_predecessor(client, revision + 1);
}

static enum outcome call_ended(struct client *client)
{
    struct connection *connection = client->own;
    struct fields fields;
    enum state state = connection->state;
    connection->state = STATE_IDLE;
    if (!take_grpc(&connection->call, &fields)) {
        return OUTCOME_ERROR; /* a gRPC status instead of a message */
    }
    struct response response = read_response(fields);
    switch (state) {
    case STATE_GRANT:
        return granted(client, &response);
    case STATE_CREATE:
        client->epoch = response.second != 0 ? response.revision : client->epoch;
        return response.second != 0 ? OUTCOME_OK : OUTCOME_REFUSED;
    case STATE_CHECKED_DELETE:
        return response.second != 0 ? OUTCOME_OK : OUTCOME_REFUSED;
    case STATE_DELETE:
        return OUTCOME_OK;
    case STATE_ENQUEUE:
        return enqueued(client, &response);
    case STATE_PREDECESSOR:
        return found_predecessor(client, fields);
    default:
        return OUTCOME_ERROR;
    }
}

static enum outcome watch_told(struct client *client, struct fields fields)
{
    struct connection *connection = client->own;
    int64_t id = 0;
    bool created = false;
    bool deleted = false;
    while (next_field(&fields)) {
        if (fields.number == 2) {
            id = (int64_t)fields.value;
        } else if (fields.number == 3) {
            created = fields.value != 0;
        } else if (fields.number == 11) {
            struct fields event = inner_fields(&fields);
            while (next_field(&event)) {
                deleted = deleted || (event.number == 1 && event.value == 1);
            }
        }
    }
    if (created) {
        connection->watch_id = id;
    }
    if (!deleted || connection->state != STATE_WATCH || id != connection->watch_id) {
        return OUTCOME_PENDING;
    }
    return cancel_watch(client) == OUTCOME_PENDING ? ask_predecessor(client) : OUTCOME_ERROR;
}

static enum outcome kept_alive(struct client *client, struct fields fields)
{
    struct connection *connection = client->own;
    bool alive = false;
    while (next_field(&fields)) {
        alive = alive || (fields.number == 3 && fields.value > 0);
    }
    if (connection->state != STATE_KEEP_ALIVE) {
        return OUTCOME_PENDING;
    }
    connection->state = STATE_IDLE;
    return alive ? OUTCOME_OK : OUTCOME_REFUSED;
}

static enum outcome take_data(struct client *client, uint32_t stream, const unsigned char *data, size_t size)
{
    struct connection *connection = client->own;
    enum outcome outcome = OUTCOME_PENDING;
    struct fields fields;
    connection->unacknowledged += (uint32_t)size;
    if (connection->unacknowledged > ACK_ABOVE) {
        if (send_window(client->fd, connection->unacknowledged) != OUTCOME_PENDING) {
            return OUTCOME_ERROR;
        }
        connection->unacknowledged = 0;
    }
    if (stream == connection->call_stream) {
        buffer_append(&connection->call, data, size);
    } else if (stream == connection->keep_alive_stream) {
        buffer_append(&connection->keep_alive, data, size);
        while (take_grpc(&connection->keep_alive, &fields)) {
            outcome = kept_alive(client, fields);
        }
    } else if (stream == connection->watch_stream) {
        buffer_append(&connection->watch, data, size);
        while (outcome == OUTCOME_PENDING && take_grpc(&connection->watch, &fields)) {
            outcome = watch_told(client, fields);
        }
    }
    return outcome;
}

static enum outcome take_headers(struct client *client, int flags, uint32_t stream)
{
    struct connection *connection = client->own;
    if ((flags & FRAME_END_STREAM) == 0) {
        return OUTCOME_PENDING;
    }
    if (stream == connection->call_stream) {
        connection->call_stream = 0;
        return call_ended(client);
    }
    return stream == connection->keep_alive_stream || stream == connection->watch_stream ? OUTCOME_ERROR
                                                                                         : OUTCOME_PENDING;
}

static enum outcome take_frame(struct client *client, const unsigned char *head, const unsigned char *data, size_t size)
{
    uint32_t stream =
        ((uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8]) & 0x7fffffff;
    int flags = head[4];
    switch (head[3]) {
    case FRAME_DATA:
        return take_data(client, stream, data, size);
    case FRAME_HEADERS:
        return take_headers(client, flags, stream);
    case FRAME_SETTINGS:
        return (flags & 1) != 0 ? OUTCOME_PENDING : send_ack(client->fd, FRAME_SETTINGS, NULL, 0);
    case FRAME_PING:
        return (flags & 1) != 0 ? OUTCOME_PENDING : send_ack(client->fd, FRAME_PING, data, size);
    case FRAME_RESET:
    case FRAME_GOAWAY:
        return OUTCOME_ERROR;
    default:
        return OUTCOME_PENDING;
    }
}

static enum outcome etcd_io(struct client *client)
{
    struct connection *connection = client->own;
    enum outcome outcome = OUTCOME_PENDING;
    bool closed = buffer_fill(&connection->in, client->fd) < 0;
    while (connection->in.size - connection->in.taken >= FRAME_HEADER_SIZE) {
        const unsigned char *head = connection->in.data + connection->in.taken;
        size_t size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (connection->in.size - connection->in.taken < FRAME_HEADER_SIZE + size) {
            break;
        }
        enum outcome now = take_frame(client, head, head + FRAME_HEADER_SIZE, size);
        buffer_take(&connection->in, FRAME_HEADER_SIZE + size);
        outcome = now != OUTCOME_PENDING ? now : outcome;
    }
    return outcome == OUTCOME_PENDING && closed ? OUTCOME_ERROR : outcome;
}

const struct peer peer = {.name = "etcd",
                          .open = etcd_open,
                          .acquire = etcd_acquire,
                          .renew = etcd_renew,
                          .release = etcd_release,
                          .io = etcd_io};
