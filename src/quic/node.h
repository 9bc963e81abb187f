/* A node's files: DIRECTORY/node.key (PKCS #8, PEM, 0600), node.crt (PEM) and endpoint.secret (32 bytes, 0600). */
#ifndef QUIC_NODE_H
#define QUIC_NODE_H

#include <stdint.h>

#include "aster/status.h"

#define ASTER_NODE_ID_SIZE 65 /* 64 hexadecimal digits of the Ed25519 public key, and the NUL */
#define ASTER_NODE_PATH_MAX 4096
#define ASTER_ENDPOINT_SECRET_SIZE 32
#define ASTER_NODE_DAYS_DEFAULT 3650

struct aster_node_paths {
    char key[ASTER_NODE_PATH_MAX];
    char certificate[ASTER_NODE_PATH_MAX];
    char secret[ASTER_NODE_PATH_MAX];
};

/* Errors: ASTER_ERR_INVALID (too long). */
aster_status aster_node_paths(const char *directory, struct aster_node_paths *paths, struct aster_error *error);

/* Make a key and a self-signed certificate with `name` in it (display only; 1..64 bytes, name rules), valid for `days`.
 * An existing key is refused with ASTER_ERR_INVALID and stays. Gives the node id. Errors: ASTER_ERR_IO. */
aster_status aster_node_create(const char *directory, const char *name, int days, char id[ASTER_NODE_ID_SIZE],
                               struct aster_error *error);

/* A new certificate under the same key: the node id stays. Errors: as create, and as for loading the key. */
aster_status aster_node_renew(const char *directory, const char *name, int days, struct aster_error *error);

/* The id of the node whose certificate is in the directory. Errors: ASTER_ERR_IO, ASTER_ERR_INVALID (not Ed25519). */
aster_status aster_node_id(const char *directory, char id[ASTER_NODE_ID_SIZE], struct aster_error *error);

/* What a certificate says: for people. */
struct aster_node_facts {
    char id[ASTER_NODE_ID_SIZE];
    char name[65];        /* as given to create or renew; empty when it has none */
    int64_t from_unix_s;  /* valid from .. */
    int64_t until_unix_s; /* .. until */
};
/* Errors: as aster_node_id(). */
aster_status aster_node_describe(const char *directory, struct aster_node_facts *facts, struct aster_error *error);

/* The secret behind reset tokens and retry tokens: kept over restarts, so that a restarted server can tell clients at
 * once that it has forgotten them. Made on first use. Errors: ASTER_ERR_IO, ASTER_ERR_INVALID (readable by others). */
aster_status aster_node_secret(const char *directory, unsigned char secret[ASTER_ENDPOINT_SECRET_SIZE],
                               struct aster_error *error);

#endif
