# What the grantor needs beside the core: protobuf-c for messages, ngtcp2 and GnuTLS for the transport. Without them the
# rest of Aster builds as before.
pkg_check_modules(PROTOBUF_C IMPORTED_TARGET libprotobuf-c>=1.4)
pkg_check_modules(NGTCP2 IMPORTED_TARGET libngtcp2>=0.12 libngtcp2_crypto_gnutls)
pkg_check_modules(GNUTLS IMPORTED_TARGET gnutls>=3.7.3)
find_program(PROTOC_C protoc-c)
if(PROTOBUF_C_FOUND AND NGTCP2_FOUND AND GNUTLS_FOUND AND PROTOC_C)
  set(aster_grantor_default ON)
else()
  set(aster_grantor_default OFF)
endif()
option(ASTER_GRANTOR "Build the grantor and its client (needs protobuf-c, ngtcp2, GnuTLS)" ${aster_grantor_default})
if(ASTER_GRANTOR AND NOT aster_grantor_default)
  message(FATAL_ERROR "ASTER_GRANTOR needs libprotobuf-c-dev, protobuf-c-compiler, libngtcp2-dev, "
                      "libngtcp2-crypto-gnutls-dev and libgnutls28-dev: install them, or set ASTER_GRANTOR=OFF")
endif()

# The server needs a parser of configuration files and an HTTP server on top; its client does not.
pkg_check_modules(CONFUSE IMPORTED_TARGET libconfuse>=3.3)
pkg_check_modules(MICROHTTPD IMPORTED_TARGET libmicrohttpd>=0.9.71)
set(aster_asterd_default OFF)
if(ASTER_GRANTOR AND CONFUSE_FOUND AND MICROHTTPD_FOUND)
  set(aster_asterd_default ON)
endif()
option(ASTER_ASTERD "Build the server asterd (needs ASTER_GRANTOR, libconfuse, libmicrohttpd)" ${aster_asterd_default})
if(ASTER_ASTERD AND NOT aster_asterd_default)
  message(FATAL_ERROR "ASTER_ASTERD needs ASTER_GRANTOR, libconfuse-dev and libmicrohttpd-dev: install them, or set "
                      "ASTER_ASTERD=OFF")
endif()

# aster_protobuf(TARGET SCHEMA): the generated C of one schema as an object library; warnings in it are not ours.
function(aster_protobuf target schema)
  set(root ${CMAKE_BINARY_DIR}/proto)
  string(REGEX REPLACE "\\.proto$" ".pb-c" generated ${root}/${schema})
  file(MAKE_DIRECTORY ${root})
  add_custom_command(
    OUTPUT ${generated}.c ${generated}.h
    COMMAND ${PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/proto --c_out=${root} ${CMAKE_SOURCE_DIR}/proto/${schema}
    DEPENDS ${CMAKE_SOURCE_DIR}/proto/${schema}
    COMMENT "Generating messages from ${schema}")
  add_library(${target} OBJECT ${generated}.c ${generated}.h)
  target_include_directories(${target} SYSTEM PUBLIC ${root})
  target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
  target_compile_options(${target} PRIVATE -w)
endfunction()
