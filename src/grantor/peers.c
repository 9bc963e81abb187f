#include "grantor/peers.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/siphash.h"
#include "platform/entropy.h"

#define BUCKETS 1024
#define TOKENS_MAX 10
#define TOKEN_NS INT64_C(1000000000)

struct grantor_peers {
    struct aster_hash_key key;
    struct grantor_peer *buckets[BUCKETS];
};

aster_status grantor_peers_create(struct grantor_peers **peers, struct aster_error *error)
{
    struct grantor_peers *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return aster_error_set(error, ASTER_ERR_NOMEM, "no memory for the table of peers");
    }
    aster_status status = aster_entropy_fill(&made->key, sizeof made->key, error);
    if (status != ASTER_OK) {
        free(made);
        return status;
    }
    *peers = made;
    return ASTER_OK;
}

void grantor_peers_destroy(struct grantor_peers *peers)
{
    free(peers);
}

static struct grantor_peer **bucket_of(struct grantor_peers *peers, struct aster_bytes identity)
{
    return &peers->buckets[aster_siphash(&peers->key, identity) % BUCKETS];
}

static struct grantor_peer *find(struct grantor_peer *peer, struct aster_bytes identity)
{
    while (peer != NULL && !aster_bytes_equal((struct aster_bytes){peer->identity, peer->size}, identity)) {
        peer = peer->next;
    }
    return peer;
}

size_t grantor_peers_links(struct grantor_peers *peers, struct aster_bytes identity)
{
    const struct grantor_peer *peer = find(*bucket_of(peers, identity), identity);
    return peer != NULL ? peer->sessions : 0;
}

struct grantor_peer *grantor_peers_join(struct grantor_peers *peers, struct aster_bytes identity)
{
    struct grantor_peer **bucket = bucket_of(peers, identity);
    struct grantor_peer *peer = find(*bucket, identity);
    if (peer == NULL) {
        peer = calloc(1, sizeof *peer + identity.size);
        if (peer == NULL) {
            return NULL;
        }
        peer->size = identity.size;
        memcpy(peer->identity, identity.data, identity.size);
        peer->tokens = TOKENS_MAX;
        peer->next = *bucket;
        *bucket = peer;
    }
    peer->sessions++;
    return peer;
}

bool grantor_peer_may_audit(struct grantor_peer *peer, int64_t now_ns)
{
    int64_t fresh = (now_ns - peer->refilled_ns) / TOKEN_NS;
    if (fresh > 0) {
        peer->tokens = fresh >= TOKENS_MAX - peer->tokens ? TOKENS_MAX : peer->tokens + (unsigned)fresh;
        peer->refilled_ns = now_ns;
    }
    if (peer->tokens == 0) {
        return false;
    }
    peer->tokens--;
    return true;
}

void grantor_peers_leave(struct grantor_peers *peers, struct grantor_peer *peer)
{
    peer->sessions--;
    grantor_peers_settle(peers, peer);
}

void grantor_peers_settle(struct grantor_peers *peers, struct grantor_peer *peer)
{
    if (peer->sessions > 0 || peer->in_flight > 0 || peer->reads > 0) {
        return;
    }
    struct grantor_peer **at = bucket_of(peers, (struct aster_bytes){peer->identity, peer->size});
    while (*at != peer) {
        at = &(*at)->next;
    }
    *at = peer->next;
    free(peer);
}
