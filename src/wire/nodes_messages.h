/* The messages about nodes, for request.c and reply.c and their decoding halves. */
#ifndef WIRE_NODES_MESSAGES_H
#define WIRE_NODES_MESSAGES_H

#include "aster/lease/v1/grantor.pb-c.h"
#include "wire/reply.h"
#include "wire/request.h"

/* Pack the request with `call`, which is about nodes, in it. Errors: as aster_call_encode(). */
aster_status aster_nodes_call_encode(const struct aster_call *call, const Aster__Lease__V1__Request *request,
                                     struct aster_scratch *scratch, void *data, size_t size, size_t *length,
                                     struct aster_error *error);
/* The call in a request about nodes; ASTER_ERR_UNSUPPORTED when it is about something else. */
aster_status aster_nodes_call_read(const Aster__Lease__V1__Request *request, struct aster_scratch *scratch,
                                   struct aster_call *call, struct aster_error *error);

/* The same for NODES and CHANGED. */
aster_status aster_nodes_answer_encode(const struct aster_answer *answer, const Aster__Lease__V1__Reply *reply,
                                       struct aster_scratch *scratch, void *data, size_t size, size_t *length,
                                       struct aster_error *error);
aster_status aster_nodes_read(const Aster__Lease__V1__Nodes *message, struct aster_scratch *scratch,
                              struct aster_answer *answer, struct aster_error *error);
aster_status aster_changed_read(const Aster__Lease__V1__Changed *message, struct aster_scratch *scratch,
                                struct aster_answer *answer, struct aster_error *error);

/* Between lists and repeated fields, in the scratch. Errors: ASTER_ERR_LIMIT. */
aster_status aster_list_to_binary(const struct aster_bytes_list *list, struct aster_scratch *scratch, size_t *count,
                                  ProtobufCBinaryData **items, struct aster_error *error);
aster_status aster_list_from_binary(size_t count, const ProtobufCBinaryData *items, struct aster_scratch *scratch,
                                    struct aster_bytes_list *list, struct aster_error *error);

#endif
