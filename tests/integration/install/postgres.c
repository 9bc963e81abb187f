/* What a program with leases in PostgreSQL needs is installed: here there is no server, and it is told so. */
#include <stdio.h>
#include <string.h>

#include <aster/postgres.h>

int main(void)
{
    struct aster_postgres_options options = ASTER_POSTGRES_OPTIONS_INIT;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status =
        aster_postgres_open("postgresql://nobody@/nothing?host=/nowhere", &options, &serializer, &error);
    puts(aster_status_name(status));
    return strstr(aster_postgres_schema(), "aster.acquire") != NULL && serializer == NULL ? 0 : 1;
}
