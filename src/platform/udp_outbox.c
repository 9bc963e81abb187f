#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#include "platform/udp.h"

#define MESSAGES 64
#define SPACE 262144
#define GSO_BYTES_MAX 65000
#define GSO_SEGMENTS_MAX 60 /* the kernel's limit is 64, of which some versions count one more */

struct message {
    struct aster_udp *udp;
    struct aster_address local;
    struct aster_address remote;
    size_t start;
    size_t size;
    size_t segment; /* size of each datagram in it but the last, which may be smaller */
    size_t segments;
    uint8_t ecn;
    bool full; /* a smaller datagram ended it */
};

struct aster_udp_outbox {
    size_t used;
    size_t count;
    uint64_t datagrams;
    uint64_t calls;
    struct message messages[MESSAGES];
    struct mmsghdr headers[MESSAGES];
    struct iovec vectors[MESSAGES];
    _Alignas(struct cmsghdr) unsigned char controls[MESSAGES][128];
    unsigned char data[SPACE];
};

struct aster_udp_outbox *aster_udp_outbox_create(void)
{
    struct aster_udp_outbox *outbox = malloc(sizeof *outbox);
    if (outbox != NULL) {
        outbox->used = outbox->count = 0;
        outbox->datagrams = outbox->calls = 0;
    }
    return outbox;
}

void aster_udp_outbox_destroy(struct aster_udp_outbox *outbox)
{
    free(outbox);
}

unsigned char *aster_udp_outbox_reserve(struct aster_udp_outbox *outbox)
{
    if (SPACE - outbox->used < ASTER_UDP_PAYLOAD_MAX || outbox->count == MESSAGES) {
        aster_udp_outbox_flush(outbox);
    }
    return outbox->data + outbox->used;
}

static bool joins(const struct message *message, const struct aster_udp *udp, const struct aster_address *local,
                  const struct aster_address *remote, uint8_t ecn, size_t size)
{
    return udp->gso && !message->full && message->udp == udp && message->ecn == ecn && size <= message->segment &&
           message->size + size <= GSO_BYTES_MAX && message->segments < GSO_SEGMENTS_MAX &&
           aster_address_equal(&message->remote, remote) && aster_address_equal(&message->local, local);
}

void aster_udp_outbox_add(struct aster_udp_outbox *outbox, struct aster_udp *udp, const struct aster_address *local,
                          const struct aster_address *remote, uint8_t ecn, size_t size)
{
    struct message *last = outbox->count > 0 ? &outbox->messages[outbox->count - 1] : NULL;
    outbox->datagrams++;
    if (last != NULL && joins(last, udp, local, remote, ecn, size)) {
        last->full = size < last->segment;
        last->size += size;
        last->segments++;
    } else {
        outbox->messages[outbox->count++] =
            (struct message){udp, *local, *remote, outbox->used, size, size, 1, ecn, false};
    }
    outbox->used += size;
}

static void add_control(struct msghdr *header, int level, int type, const void *data, size_t size)
{
    struct cmsghdr *at = (struct cmsghdr *)((unsigned char *)header->msg_control + header->msg_controllen);
    at->cmsg_level = level;
    at->cmsg_type = type;
    at->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(at), data, size);
    header->msg_controllen += CMSG_SPACE(size);
}

/* A wildcard socket must answer from the address that was asked. */
static void add_source(struct msghdr *header, const struct message *message)
{
    if (message->udp->connected || !aster_address_is_wildcard(&message->udp->local) ||
        aster_address_is_wildcard(&message->local)) {
        return;
    }
    if (message->local.any.sa_family == AF_INET) {
        struct in_pktinfo info;
        memset(&info, 0, sizeof info);
        info.ipi_spec_dst = ((const struct sockaddr_in *)&message->local.storage)->sin_addr;
        add_control(header, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
    } else {
        struct in6_pktinfo info;
        memset(&info, 0, sizeof info);
        info.ipi6_addr = ((const struct sockaddr_in6 *)&message->local.storage)->sin6_addr;
        add_control(header, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
    }
}

static void add_ecn(struct msghdr *header, const struct message *message)
{
    int value = message->ecn;
    if (value == 0) {
        return;
    }
    if (message->remote.any.sa_family == AF_INET) {
        add_control(header, IPPROTO_IP, IP_TOS, &value, sizeof value);
    } else {
        add_control(header, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value);
    }
}

static void fill_header(struct aster_udp_outbox *outbox, size_t index)
{
    struct message *message = &outbox->messages[index];
    struct msghdr *header = &outbox->headers[index].msg_hdr;
    memset(header, 0, sizeof *header);
    memset(outbox->controls[index], 0, sizeof outbox->controls[index]);
    outbox->vectors[index] = (struct iovec){outbox->data + message->start, message->size};
    header->msg_iov = &outbox->vectors[index];
    header->msg_iovlen = 1;
    if (!message->udp->connected) {
        header->msg_name = &message->remote.storage;
        header->msg_namelen = message->remote.size;
    }
    header->msg_control = outbox->controls[index];
    add_source(header, message);
    add_ecn(header, message);
    if (message->segments > 1) {
        uint16_t segment = (uint16_t)message->segment;
        add_control(header, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment);
    }
    if (header->msg_controllen == 0) {
        header->msg_control = NULL;
    }
}

/* The device refuses segmentation offload: send the pieces, and do not try it again on this socket. */
static void send_pieces(struct aster_udp_outbox *outbox, size_t index)
{
    struct message whole = outbox->messages[index];
    whole.udp->gso = false;
    for (size_t at = 0; at < whole.size; at += whole.segment) {
        struct message *piece = &outbox->messages[index];
        piece->start = whole.start + at;
        piece->size = whole.size - at < whole.segment ? whole.size - at : whole.segment;
        piece->segments = 1;
        fill_header(outbox, index);
        outbox->calls++;
        if (sendmsg(whole.udp->fd, &outbox->headers[index].msg_hdr, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
            errno == EAGAIN) {
            break;
        }
    }
}

/* Send messages [from, to) of one socket. */
static void send_range(struct aster_udp_outbox *outbox, size_t from, size_t to)
{
    while (from < to) {
        outbox->calls++;
        int sent = sendmmsg(outbox->messages[from].udp->fd, &outbox->headers[from], (unsigned)(to - from),
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            from += (size_t)sent;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno != EINTR) {
            /* Any other error concerns the first message only: too large for the path, refused by the peer's host, ...
             */
            if (outbox->messages[from].segments > 1 && (errno == EIO || errno == EINVAL)) {
                send_pieces(outbox, from);
            }
            from++;
        }
    }
}

void aster_udp_outbox_flush(struct aster_udp_outbox *outbox)
{
    size_t from = 0;
    for (size_t i = 0; i < outbox->count; i++) {
        fill_header(outbox, i);
        if (outbox->messages[i].udp != outbox->messages[from].udp) {
            send_range(outbox, from, i);
            from = i;
        }
    }
    send_range(outbox, from, outbox->count);
    outbox->count = outbox->used = 0;
}

void aster_udp_outbox_counts(const struct aster_udp_outbox *outbox, uint64_t *datagrams, uint64_t *calls)
{
    *datagrams = outbox->datagrams;
    *calls = outbox->calls;
}
