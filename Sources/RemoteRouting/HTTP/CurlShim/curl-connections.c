// The open connections of a loop, which libcurl names by their addresses.

#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int read_text(endpoint *end, const char *address, int port) {
    memset(end, 0, sizeof *end);
    end->port = port;
    end->family = address && strchr(address, ':') ? AF_INET6 : AF_INET;
    return address && inet_pton(end->family, address, end->address) == 1;
}

static void read_address(endpoint *end, const struct sockaddr_storage *address) {
    memset(end, 0, sizeof *end);
    end->family = address->ss_family;
    if (end->family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        end->port = ntohs(four->sin_port);
        memcpy(end->address, &four->sin_addr, sizeof four->sin_addr);
    } else if (end->family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
        end->port = ntohs(six->sin6_port);
        memcpy(end->address, &six->sin6_addr, sizeof six->sin6_addr);
    }
}

int wire_endpoints_read(endpoints *ends, const char *local, int local_port, const char *remote, int remote_port) {
    return read_text(&ends->local, local, local_port) & read_text(&ends->remote, remote, remote_port);
}

int wire_endpoints_match(const endpoints *ends, int socket) {
    struct sockaddr_storage local, remote;
    socklen_t local_size = sizeof local, remote_size = sizeof remote;
    if (socket < 0 || getsockname(socket, (struct sockaddr *)&local, &local_size) < 0) return 0;
    if (getpeername(socket, (struct sockaddr *)&remote, &remote_size) < 0) return 0;
    endpoints found;
    read_address(&found.local, &local);
    read_address(&found.remote, &remote);
    return memcmp(&found, ends, sizeof found) == 0;
}

static connection **bucket(wire_loop *loop, const endpoints *ends) {
    return &loop->connections[ends->local.port % CONNECTION_BUCKETS];
}

connection *wire_connection_find(wire_loop *loop, const endpoints *ends) {
    connection *each = *bucket(loop, ends);
    while (each && memcmp(&each->ends, ends, sizeof *ends) != 0) each = each->next;
    return each;
}

connection *wire_connection_add(pool *own, const endpoints *ends, int socket, uint64_t owner) {
    connection *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    connection **first = bucket(own->loop, ends);
    *made = (connection){.next = *first, .pool = own, .ends = *ends, .socket = socket, .owner = owner};
    *first = made;
    wire_connection_idle(made);
    return made;
}

void wire_connection_idle(connection *connection) {
    if (connection->socket < 0 || connection->is_surplus) return;
    connection->pool->idle++;
    connection->idle_number = ++connection->pool->idle_number;
}

void wire_connections_trim(pool *own, long limit) {
    while (own->idle > limit) {
        connection *oldest = NULL;
        for (connection **first = own->loop->connections; first < own->loop->connections + CONNECTION_BUCKETS; first++) {
            for (connection *each = *first; each; each = each->next) {
                if (each->pool != own || each->running > 0 || each->is_surplus) continue;
                if (!oldest || each->idle_number < oldest->idle_number) oldest = each;
            }
        }
        if (!oldest) return;
        oldest->is_surplus = 1;
        own->idle--;
        shutdown(oldest->socket, SHUT_RDWR);
    }
}

void wire_connection_leave(connection *connection) {
    if (--connection->users == 0 && connection->socket < 0) free(connection);
}

int wire_connection_close(void *loop, int socket) {
    connection **buckets = ((wire_loop *)loop)->connections;
    ((wire_loop *)loop)->closed[socket % CLOSED_SOCKETS] = (closed_socket){socket, wire_socket_received_bytes(socket)};
    int was_shut = wire_watch_remove(&((wire_loop *)loop)->watch, socket);
    for (connection **first = buckets; first < buckets + CONNECTION_BUCKETS; first++) {
        for (connection **place = first; *place; place = &(*place)->next) {
            connection *closed = *place;
            if (closed->socket != socket) continue;
            *place = closed->next;
            closed->socket = -1;
            closed->was_shut = was_shut;
            if (closed->running == 0 && !closed->is_surplus) closed->pool->idle--;
            if (closed->users == 0) free(closed);
            return close(socket);
        }
    }
    return close(socket);
}

void wire_connections_free(wire_loop *loop) {
    for (connection **first = loop->connections; first < loop->connections + CONNECTION_BUCKETS; first++) {
        while (*first) {
            connection *next = (*first)->next;
            free(*first);
            *first = next;
        }
    }
}

#endif
