#include "grantor/capacity.h"

#include "grantor/log.h"
#include "platform/descriptors.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

void grantor_capacity_fit(struct aster_transport_options *options)
{
    size_t limit = aster_descriptors_raise();
    size_t wanted = options->connections_max;
    options->connections_max = smaller(wanted, limit / 2);
    options->handshakes_max = smaller(options->handshakes_max, limit / 8); /* and as many that linger */
    if (options->connections_max < wanted) {
        struct grantor_line line;
        grantor_line_init(&line, GRANTOR_WARNING, "few-descriptors");
        grantor_line_number(&line, "limit", (int64_t)limit);
        grantor_line_number(&line, "connections-over-tcp", (int64_t)options->connections_max);
        grantor_line_text(&line, "note", "raise LimitNOFILE for more");
        grantor_line_end(&line);
    }
}
