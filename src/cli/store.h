/* Which store a command talks to. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/command.h"

#define ASTER_STORE_PATH_MAX 4096

enum aster_store_kind {
    ASTER_STORE_MEMORY = 1,
    ASTER_STORE_SQLITE = 2,
    ASTER_STORE_GRANTOR = 3,
    ASTER_STORE_POSTGRES = 4
};

/* The store named by --store, ASTER_STORE or the default, as an absolute name that works from any directory. */
struct aster_store_name {
    enum aster_store_kind kind;
    bool is_default;                       /* nobody named one */
    char text[ASTER_STORE_PATH_MAX + 16];  /* "sqlite:/abs/path", "mem:", "aster://..." or "postgresql://..." */
    const char *path;                      /* inside text; NULL but for sqlite: */
    char shown[ASTER_STORE_PATH_MAX + 16]; /* for people: text without the password that may be in it */
};

/* Touches no file. Errors: ASTER_ERR_INVALID, ASTER_ERR_IO. */
aster_status aster_store_resolve(const char *store, struct aster_store_name *name, struct aster_error *error);

/* Does --store or ASTER_STORE name a grantor? NULL is legal. */
bool aster_store_is_grantor(const char *store);

enum aster_store_mode {
    ASTER_STORE_MUST_EXIST, /* reading: a missing file is an error that says how one is made */
    ASTER_STORE_CREATE
};

/* Resolve and open; says on stderr what is wrong. Returns an exit status; *serializer is the caller's to destroy. mem:
 * is refused: every command is a process of its own, so it would exclude nobody. `name` optional. */
int aster_store_open(const struct aster_cli *cli, enum aster_store_mode mode, struct aster_store_name *name,
                     struct aster_serializer **serializer);

/* The same without a word on stderr. `node` as in struct aster_cli, for a grantor. */
aster_status aster_store_open_quietly(const char *store, const char *node, enum aster_store_mode mode,
                                      struct aster_store_name *name, struct aster_serializer **serializer,
                                      struct aster_error *error);

#endif
