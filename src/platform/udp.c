/* Opening and receiving. Sending is in udp_outbox.c. */
#include "platform/udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define MESSAGES 32
#define MESSAGE_SIZE 65536 /* what GRO may merge into one */
#define SOCKET_BUFFER (4 << 20)

struct aster_udp_inbox {
    struct mmsghdr messages[MESSAGES];
    struct iovec vectors[MESSAGES];
    struct sockaddr_storage names[MESSAGES];
    _Alignas(struct cmsghdr) unsigned char controls[MESSAGES][256];
    unsigned char data[MESSAGES][MESSAGE_SIZE];
};

static void prepare(struct aster_udp_inbox *inbox, int index)
{
    inbox->vectors[index] = (struct iovec){inbox->data[index], MESSAGE_SIZE};
    inbox->messages[index] = (struct mmsghdr){.msg_hdr = {.msg_name = &inbox->names[index],
                                                          .msg_namelen = sizeof inbox->names[index],
                                                          .msg_iov = &inbox->vectors[index],
                                                          .msg_iovlen = 1,
                                                          .msg_control = inbox->controls[index],
                                                          .msg_controllen = sizeof inbox->controls[index]}};
}

struct aster_udp_inbox *aster_udp_inbox_create(void)
{
    /* The data is not touched until used: an idle process pays for the pages that its traffic needs. */
    struct aster_udp_inbox *inbox = malloc(sizeof *inbox);
    for (int i = 0; inbox != NULL && i < MESSAGES; i++) {
        prepare(inbox, i);
    }
    return inbox;
}

void aster_udp_inbox_destroy(struct aster_udp_inbox *inbox)
{
    free(inbox);
}

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value); /* each of them only makes things faster or safer */
}

static void set_options(struct aster_udp *udp, int family)
{
    int size = 0;
    set_option(udp->fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    set_option(udp->fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER);
    set_option(udp->fd, SOL_UDP, UDP_GRO, 1);
    udp->gso = getsockopt(udp->fd, SOL_UDP, UDP_SEGMENT, &size, &(socklen_t){sizeof size}) == 0;
    if (family == AF_INET6) {
        set_option(udp->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
        set_option(udp->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
        set_option(udp->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    }
    /* Also for IPv6: a dual-stack socket receives IPv4. */
    set_option(udp->fd, IPPROTO_IP, IP_PKTINFO, 1);
    set_option(udp->fd, IPPROTO_IP, IP_RECVTOS, 1);
    set_option(udp->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
}

static aster_status open_socket(int family, struct aster_udp *udp, struct aster_error *error)
{
    memset(udp, 0, sizeof *udp);
    udp->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (udp->fd < 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot create a UDP socket");
    }
    set_options(udp, family);
    return ASTER_OK;
}

static aster_status note_local(struct aster_udp *udp, struct aster_error *error)
{
    udp->local.size = sizeof udp->local.storage;
    if (getsockname(udp->fd, &udp->local.any, &udp->local.size) != 0) {
        return aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot read a socket's address");
    }
    return ASTER_OK;
}

aster_status aster_udp_listen(const struct aster_address *local, struct aster_udp *udp, struct aster_error *error)
{
    struct aster_udp opened;
    aster_status status = open_socket(local->any.sa_family, &opened, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (bind(opened.fd, &local->any, local->size) != 0) {
        char text[ASTER_ADDRESS_TEXT_MAX];
        status =
            aster_error_set_os(error, ASTER_ERR_IO, errno, "cannot listen on UDP %s", aster_address_text(local, text));
    } else {
        status = note_local(&opened, error);
    }
    if (status != ASTER_OK) {
        close(opened.fd);
        return status;
    }
    *udp = opened;
    return ASTER_OK;
}

aster_status aster_udp_connect(const struct aster_address *remote, struct aster_udp *udp, struct aster_error *error)
{
    struct aster_udp opened;
    aster_status status = open_socket(remote->any.sa_family, &opened, error);
    if (status != ASTER_OK) {
        return status;
    }
    if (connect(opened.fd, &remote->any, remote->size) != 0) {
        char text[ASTER_ADDRESS_TEXT_MAX];
        status =
            aster_error_set_os(error, ASTER_ERR_UNREACHABLE, errno, "no route to %s", aster_address_text(remote, text));
    } else {
        opened.connected = true;
        status = note_local(&opened, error);
    }
    if (status != ASTER_OK) {
        close(opened.fd);
        return status;
    }
    *udp = opened;
    return ASTER_OK;
}

void aster_udp_close(struct aster_udp *udp)
{
    if (udp->fd >= 0) {
        close(udp->fd);
        udp->fd = -1;
    }
}

/* What the control messages say about one message. */
static void read_control(struct msghdr *header, struct aster_datagram *datagram, size_t *segment)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(header); at != NULL; at = CMSG_NXTHDR(header, at)) {
        const unsigned char *data = CMSG_DATA(at);
        if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO && datagram->local.any.sa_family == AF_INET) {
            struct in_pktinfo info;
            memcpy(&info, data, sizeof info);
            ((struct sockaddr_in *)&datagram->local.storage)->sin_addr = info.ipi_addr;
        } else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, data, sizeof info);
            ((struct sockaddr_in6 *)&datagram->local.storage)->sin6_addr = info.ipi6_addr;
        } else if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS) {
            datagram->ecn = data[0] & 3;
        } else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_TCLASS) {
            int class;
            memcpy(&class, data, sizeof class);
            datagram->ecn = (uint8_t)(class & 3);
        } else if (at->cmsg_level == SOL_UDP && at->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, data, sizeof size);
            *segment = size > 0 ? (size_t)size : 0;
        }
    }
}

static void hand_over(const struct aster_udp *udp, struct aster_udp_inbox *inbox, int index,
                      void (*handle)(const struct aster_datagram *datagram, void *user), void *user)
{
    struct mmsghdr *message = &inbox->messages[index];
    if (message->msg_hdr.msg_flags & MSG_TRUNC) {
        return;
    }
    struct aster_datagram datagram;
    memset(&datagram, 0, sizeof datagram);
    datagram.local = udp->local;
    datagram.remote.size = message->msg_hdr.msg_namelen;
    memcpy(&datagram.remote.storage, &inbox->names[index], message->msg_hdr.msg_namelen);
    size_t left = message->msg_len;
    size_t segment = left;
    read_control(&message->msg_hdr, &datagram, &segment);
    segment = segment == 0 ? left : segment;
    for (datagram.data = inbox->data[index]; left > 0; left -= datagram.size) {
        datagram.size = left < segment ? left : segment;
        handle(&datagram, user);
        datagram.data += datagram.size;
    }
}

int aster_udp_receive(const struct aster_udp *udp, struct aster_udp_inbox *inbox,
                      void (*handle)(const struct aster_datagram *datagram, void *user), void *user)
{
    int count;
    do {
        count = recvmmsg(udp->fd, inbox->messages, MESSAGES, MSG_DONTWAIT, NULL);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
    }
    for (int i = 0; i < count; i++) {
        hand_over(udp, inbox, i, handle, user);
        prepare(inbox, i); /* the kernel wrote lengths and flags into it */
    }
    return count;
}
