/* Printing what a grantor says about nodes. */
#ifndef CLI_GRANTOR_ADMIT_H
#define CLI_GRANTOR_ADMIT_H

#include "cli/command.h"
#include "cli/output.h"
#include "serializer/remote/nodes.h"

/* The listing so far: rows for people, or JSON. */
struct aster_node_listing {
    struct aster_text_table table;
    json_t *nodes;  /* array; NULL for a table */
    json_t *rules;  /* object; NULL for a table */
    char text[512]; /* the rules for people */
    bool failed;
};

void aster_node_listing_add(struct aster_node_listing *listing, const struct aster_answer *answer);
/* Print it; the exit status. */
int aster_node_listing_print(const struct aster_cli *cli, struct aster_node_listing *listing);
void aster_node_listing_fini(struct aster_node_listing *listing);

/* What a change came to; the exit status. */
int aster_node_changed_print(const struct aster_cli *cli, const struct aster_call *call,
                             const struct aster_answer *answer);

#endif
