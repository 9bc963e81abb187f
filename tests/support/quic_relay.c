#include "support/quic_relay.h"

#include "support/unit.h"

void quic_relay_start(struct aster_relay *relay, const struct aster_address *server)
{
    struct aster_error error = ASTER_ERROR_INIT;
    if (aster_relay_start(relay, server, &error) != ASTER_OK) {
        fail_msg("%s", error.message);
    }
}
