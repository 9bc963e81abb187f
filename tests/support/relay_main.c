/* The relay as a program, for tests that are scripts: "relay HOST:PORT" prints where it listens and takes commands on
 * standard input, "dark N" with the ways of aster_relay_way, each answered with a line. It ends with its input. */
#include <stdio.h>
#include <string.h>

#include "cli/grantor/relay.h"

int main(int argc, char **argv)
{
    struct aster_relay relay;
    struct aster_address server;
    struct aster_error error = ASTER_ERROR_INIT;
    char text[ASTER_ADDRESS_TEXT_MAX];
    char line[64];
    size_t count = 0;
    int ways = 0;
    if (argc != 2 || aster_address_resolve(argv[1], false, &server, 1, &count, &error) != ASTER_OK ||
        aster_relay_start(&relay, &server, &error) != ASTER_OK) {
        fprintf(stderr, "relay: %s\n", argc == 2 ? error.message : "usage: relay HOST:PORT");
        return 1;
    }
    puts(aster_address_text(&relay.address, text));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "dark %d", &ways) == 1) {
        atomic_store(&relay.dark, ways);
        puts("ok");
        fflush(stdout);
    }
    aster_relay_stop(&relay);
    return 0;
}
