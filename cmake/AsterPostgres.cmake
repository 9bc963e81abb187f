# What the PostgreSQL serializer needs beside the core: libpq with pipelines. Without it the rest of Aster builds as before.
pkg_check_modules(LIBPQ IMPORTED_TARGET libpq>=14)
option(ASTER_POSTGRES "Build the PostgreSQL serializer (needs libpq 14 or newer)" ${LIBPQ_FOUND})
if(ASTER_POSTGRES AND NOT LIBPQ_FOUND)
  message(FATAL_ERROR "ASTER_POSTGRES needs libpq-dev 14 or newer: install it, or set ASTER_POSTGRES=OFF")
endif()
