/* A build without grantors. */
#include "base/error.h"
#include "cli/grantor/grantor.h"

static aster_status absent(struct aster_error *error)
{
    return aster_error_set(error, ASTER_ERR_UNSUPPORTED,
                           "grantors are not in this build (it was made without ngtcp2, GnuTLS or protobuf-c): use "
                           "sqlite:PATH, or build with -DASTER_GRANTOR=ON");
}

aster_status aster_cli_grantor_open(const char *store, const char *node, struct aster_serializer **serializer,
                                    struct aster_error *error)
{
    (void)store;
    (void)node;
    (void)serializer;
    return absent(error);
}

aster_status aster_cli_grantor_identity(const char *node, char identity[ASTER_IDENTITY_MAX + 1],
                                        struct aster_error *error)
{
    (void)node;
    (void)identity;
    return absent(error);
}

int aster_cli_node(const struct aster_cli *cli, const struct aster_node_arguments *arguments, int argc, char **argv)
{
    struct aster_error error = ASTER_ERROR_INIT;
    (void)arguments;
    (void)argc;
    (void)argv;
    absent(&error);
    return aster_cli_fail(cli, &error);
}
