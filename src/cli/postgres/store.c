#include <stdio.h>
#include <string.h>

#include "aster/postgres.h"
#include "cli/postgres/postgres.h"

aster_status aster_cli_postgres_open(const char *store, struct aster_serializer **serializer, struct aster_error *error)
{
    return aster_postgres_open(store, NULL, serializer, error);
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *at = options; at->keyword != NULL; at++) {
        if (strcmp(at->keyword, keyword) == 0) {
            return at->val != NULL ? at->val : "";
        }
    }
    return "";
}

/* Only what tells one store from another: any other part might be a secret. */
void aster_cli_postgres_show(const char *store, char *shown, size_t size)
{
    PQconninfoOption *options = PQconninfoParse(store, NULL);
    if (options == NULL) {
        snprintf(shown, size, "postgresql://");
        return;
    }
    const char *user = value_of(options, "user");
    const char *port = value_of(options, "port");
    snprintf(shown, size, "postgresql://%s%s%s%s%s/%s", user, user[0] != '\0' ? "@" : "", value_of(options, "host"),
             port[0] != '\0' ? ":" : "", port, value_of(options, "dbname"));
    PQconninfoFree(options);
}
