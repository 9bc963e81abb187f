/* The fence that a command carries: from its options, or from the environment that `aster run` gave its child. */
#ifndef CLI_CARRIED_H
#define CLI_CARRIED_H

#include "cli/command.h"

struct aster_carried_options {
    const char *fence;
    const char *holder;
    int64_t epoch; /* < 0 = not given */
};

#define ASTER_CARRIED_OPTIONS_INIT                                                                                     \
    {                                                                                                                  \
        NULL, NULL, -1                                                                                                 \
    }

/* Rows of an option table for a struct whose member `carried` is a struct aster_carried_options. */
#define ASTER_CARRIED_OPTION_ROWS(type)                                                                                \
    {"holder",                                                                                                         \
     'H',                                                                                                              \
     ASTER_OPTION_TEXT,                                                                                                \
     "NAME",                                                                                                           \
     "the holder (default: ASTER_HOLDER; at a grantor this node)",                                                     \
     offsetof(type, carried) + offsetof(struct aster_carried_options, holder),                                         \
     NULL},                                                                                                            \
        {"epoch",                                                                                                      \
         'e',                                                                                                          \
         ASTER_OPTION_COUNT,                                                                                           \
         "N",                                                                                                          \
         "the epoch of the lease (default: ASTER_EPOCH)",                                                              \
         offsetof(type, carried) + offsetof(struct aster_carried_options, epoch),                                      \
         NULL},                                                                                                        \
    {                                                                                                                  \
        "fence", 'f', ASTER_OPTION_TEXT, "TEXT", "all three in one text, as in ASTER_FENCE",                           \
            offsetof(type, carried) + offsetof(struct aster_carried_options, fence), NULL                              \
    }

struct aster_carried {
    struct aster_fence fence; /* borrows from `storage`, argv and the environment */
    char storage[ASTER_FENCE_TEXT_MAX];
};

/* `resource` may be NULL: ASTER_RESOURCE. The environment's epoch and holder count only for the environment's own
 * resource. Returns an exit status, having said on stderr what is missing. */
int aster_carried_resolve(const struct aster_cli *cli, const char *resource,
                          const struct aster_carried_options *options, struct aster_carried *carried);

/* The resource named, or else ASTER_RESOURCE. Returns an exit status, having said on stderr what is wrong with it. */
int aster_resource_resolve(const struct aster_cli *cli, const char *named, struct aster_bytes *resource);

/* The holder for an acquire: the given one; else, at a grantor, the node's own identity, elsewhere one that no other
 * process has, written to `storage`. */
#define ASTER_HOLDER_SIZE 257
aster_status aster_holder_resolve(const struct aster_cli *cli, const char *holder, char storage[ASTER_HOLDER_SIZE],
                                  struct aster_bytes *identity, struct aster_error *error);

#endif
