#include "base/options.h"

#include <string.h>

#include "base/error.h"

aster_status aster_options_read(void *known, const void *given, const char *init, struct aster_error *error)
{
    size_t known_size;
    size_t given_size;
    if (given == NULL) {
        return ASTER_OK;
    }
    memcpy(&known_size, known, sizeof known_size);
    memcpy(&given_size, given, sizeof given_size);
    if (given_size < sizeof given_size) {
        return aster_error_set(error, ASTER_ERR_INVALID,
                               "struct_size is %zu, so nothing else in the struct can be read; start from %s",
                               given_size, init);
    }
    memcpy(known, given, given_size < known_size ? given_size : known_size);
    memcpy(known, &known_size, sizeof known_size);
    return ASTER_OK;
}
