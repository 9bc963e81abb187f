/* A build without PostgreSQL. */
#include <stdio.h>

#include "base/error.h"
#include "cli/postgres/postgres.h"
#include "cli/schema/schema.h"

static aster_status absent(struct aster_error *error)
{
    return aster_error_set(
        error, ASTER_ERR_UNSUPPORTED,
        "PostgreSQL is not in this build (it was made without libpq): use sqlite:PATH, or build with "
        "-DASTER_POSTGRES=ON");
}

aster_status aster_cli_postgres_open(const char *store, struct aster_serializer **serializer, struct aster_error *error)
{
    (void)store;
    (void)serializer;
    return absent(error);
}

void aster_cli_postgres_show(const char *store, char *shown, size_t size)
{
    (void)store;
    snprintf(shown, size, "postgresql://");
}

static int refuse(const struct aster_cli *cli, const struct aster_schema_arguments *arguments)
{
    struct aster_error error = ASTER_ERROR_INIT;
    (void)arguments;
    absent(&error);
    return aster_cli_fail(cli, &error);
}

const struct aster_schema_kind aster_schema_postgres = {"postgres", refuse, refuse, refuse};
