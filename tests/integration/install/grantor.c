/* What a program with leases of a grantor needs is installed: here it learns that it did not say where one is. */
#include <stdio.h>

#include <aster/grantor.h>

int main(void)
{
    struct aster_grantor_options options = ASTER_GRANTOR_OPTIONS_INIT;
    struct aster_serializer *serializer = NULL;
    struct aster_error error = ASTER_ERROR_INIT;
    aster_status status = aster_grantor_open(&options, &serializer, &error);
    puts(aster_status_name(status));
    return status == ASTER_ERR_INVALID && serializer == NULL ? 0 : 1;
}
