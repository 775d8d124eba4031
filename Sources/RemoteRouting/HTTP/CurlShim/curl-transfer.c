// One transfer: its request, its connection and its callbacks.

#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-loop.h"
#include "curl-options.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/// The owner of a connection that must not be reused.
static const uint64_t RETIRED = UINT64_MAX;

static size_t on_header(char *bytes, size_t size, size_t count, void *transfer) {
    wire_transfer *own = transfer;
    if (own->connection) {
        own->connection->arrivals++;
        if (size * count > 6 && memcmp(bytes, "HTTP/1", 6) == 0) own->connection->is_exclusive = 1;
    }
    return own->callbacks.header(own->context, bytes, size * count);
}

/// Notes how much was read from the connection with the last chunk of a body.
static void note_read(wire_transfer *own) {
    if (!own->watches_end || !own->connection) return;
    own->read = wire_socket_read_bytes(own->connection->socket);
    own->arrivals_read = own->connection->arrivals;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *transfer) {
    wire_transfer *own = transfer;
    if (own->connection) own->connection->arrivals++;
    note_read(own);
    size_t taken = own->callbacks.body(own->context, bytes, size * count);
    own->is_receiving_paused = taken == WIRE_PAUSE;
    return taken;
}

static size_t on_read(char *bytes, size_t size, size_t count, void *transfer) {
    wire_transfer *own = transfer;
    return own->callbacks.read(own->context, bytes, size * count);
}

static int on_seek(void *transfer, int64_t offset, int origin) {
    wire_transfer *own = transfer;
    return origin == SEEK_SET ? own->callbacks.seek(own->context, offset) : CURL_SEEKFUNC_CANTSEEK;
}

/// libcurl's form of an address.
typedef struct {
    int family;
    int type;
    int protocol;
    unsigned length;
    struct sockaddr address;
} curl_address;

/// Binds a socket to a port that other sockets may share, as long as they have other destinations.
static int bind_port(int socket, int family, int port) {
    int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_storage local = {.ss_family = (sa_family_t)family};
    // The port has the same offset in both address families.
    ((struct sockaddr_in *)&local)->sin_port = htons((uint16_t)port);
    return bind(socket, (struct sockaddr *)&local, family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

/// Notes that the transfer has a connection, or needs none any more.
static void end_start(wire_transfer *own) {
    own->is_resolving = 0;
    if (own->is_starting) own->loop->starting_count--;
    own->is_starting = 0;
}

/// Counts the connection that a transfer opens.
static void begin_opening(wire_transfer *own) {
    if (!own->is_opening) own->pool->opening++;
    own->is_opening = 1;
}

static void end_opening(wire_transfer *own) {
    if (own->is_opening) own->pool->opening--;
    own->is_opening = 0;
}

static int begins(const char *text, const char *end, const char *with) {
    size_t count = strlen(with);
    return (size_t)(end - text) >= count && memcmp(text, with, count) == 0;
}

/// Notes the stream of a request, and the frame that ends the response of any stream of the connection (RFC 9113 §8.1).
static void note_stream(wire_transfer *own, unsigned long stream, const char *text, const char *end) {
    if (begins(text, end, "] OPENED stream")) {
        own->stream = stream;
        own->has_ended = 0;
    }
    if (!begins(text, end, "] <- FRAME[") || !memmem(text, (size_t)(end - text), "eos=1", 5)) return;
    // The message belongs to the transfer that reads from the connection.
    for (wire_transfer *each = own->connection->transfers; each; each = each->next)
        if (each->stream == stream) each->has_ended = 1;
}

/// Receives libcurl's messages, which alone reveal the use of HTTP/2 before a response, and the ends of streams and connections.
static int on_text(CURL *easy, int kind, char *text, size_t count, void *transfer) {
    (void)easy;
    wire_transfer *own = transfer;
    if (kind != CURLINFO_TEXT || !own->connection) return 0;
    if (begins(text, text + count, "[HTTP/2] [")) {
        // The number ends before the text does, at a bracket.
        char *rest;
        unsigned long stream = strtoul(text + 10, &rest, 10);
        if (stream > 0) note_stream(own, stream, rest, text + count);
        // libcurl refuses malformed frames with a GOAWAY of its own (RFC 9113 §6.8). Before 8.16 it would then wait without end.
        static const char refusal[] = "] -> FRAME[GOAWAY, error=";
        long reason = begins(rest, text + count, refusal) ? strtol(rest + sizeof refusal - 1, NULL, 10) : 0;
        if (reason > 0 && own->connection->socket >= 0) {
            shutdown(own->connection->socket, SHUT_RDWR);
            // 11: there were too many frames.
            if (reason != 11) own->connection->is_malformed = 1;
        }
        if (begins(rest, text + count, "] ->")) return 0;
    }
    if (begins(text, text + count, "Using Stream ID")) own->has_stream = 1;
    // Other messages contain addresses and fields, which may look like this one. Before 8.0 it has a misprint.
    if (!begins(text, text + count, "received GOAWAY") && !begins(text, text + count, "recveived GOAWAY")) return 0;
    own->connection->has_goaway = 1;
    // The first request of a connection is stream 1.
    static const char none[] = "last_stream=0";
    const char *found = memmem(text, count, none, sizeof none - 1);
    if (!found) return 0;
    const char *next = found + sizeof none - 1;
    own->is_unprocessed = own->new_socket > 0 && (next == text + count || *next < '0' || *next > '9');
    return 0;
}

static int on_lookup(void *resolver, void *reserved, void *transfer) {
    (void)resolver;
    (void)reserved;
    wire_transfer *own = transfer;
    // Another lookup would wait as long as these, and their descriptors would keep further exchanges from beginning.
    if (own->needs_lookup && own->loop->abandoned_count >= own->loop->lookups) return 1;
    own->is_resolving = 1;
    return 0;
}

static int on_open(void *transfer, int purpose, curl_address *address) {
    (void)purpose;
    wire_transfer *own = transfer;
    end_start(own);
    if (own->is_abandoned || !own->callbacks.may_connect(own->context)) return CURL_SOCKET_BAD;
    // The port has the same offset in both address families.
    own->remote_port = address->family == AF_UNIX ? 0 : ntohs(((struct sockaddr_in *)&address->address)->sin_port);
    int made = socket(address->family, address->type | SOCK_CLOEXEC, address->protocol);
    if (made < 0) {
        own->open_error = errno;
        return CURL_SOCKET_BAD;
    }
    int is_bound = !own->local_port || bind_port(made, address->family, own->local_port) == 0;
    if (!is_bound || wire_watch_add(&own->loop->watch, made) < 0) {
        close(made);
        return CURL_SOCKET_BAD;
    }
    own->opened[own->opened_count++ % 4] = made;
    begin_opening(own);
    return made;
}

/// Returns the socket with these ends among those that were opened for a transfer; negative if there is none.
static int opened_socket(const wire_transfer *own, const endpoints *ends) {
    int count = own->opened_count < 4 ? own->opened_count : 4;
    for (int index = 0; index < count; index++)
        if (wire_endpoints_match(ends, own->opened[index])) return own->opened[index];
    return -1;
}

void wire_transfer_release(wire_transfer *transfer) {
    connection *connection = transfer->connection;
    end_opening(transfer);
    if (!transfer->is_using) return;
    transfer->is_using = 0;
    if (--connection->running > 0) return;
    connection->pool->used--;
    wire_connection_idle(connection);
}

/// Makes a connection the transfer's; NULL for none.
static void use_connection(wire_transfer *own, connection *connection) {
    wire_transfer_release(own);
    if (connection) connection->users++;
    if (own->connection) {
        wire_transfer **place = &own->connection->transfers;
        while (*place != own) place = &(*place)->next;
        *place = own->next;
        wire_connection_leave(own->connection);
    }
    own->connection = connection;
    own->stream = 0;
    if (!connection) return;
    if (connection->running++ == 0) {
        connection->pool->used++;
        if (!connection->is_surplus) connection->pool->idle--;
    }
    own->is_using = 1;
    own->next = connection->transfers;
    connection->transfers = own;
    own->arrivals = connection->arrivals;
}

static int on_will_send(void *transfer, char *remote, char *local, int remote_port, int local_port) {
    wire_transfer *own = transfer;
    end_start(own);
    if (own->is_abandoned) return 1;
    long made = 1;
    own->loop->curl->curl_easy_getinfo(own->easy, CURLINFO_NUM_CONNECTS, &made);
    own->loop->curl->curl_easy_getinfo(own->easy, CURLINFO_REQUEST_SIZE, &own->sent_before);
    own->loop->curl->curl_easy_getinfo(own->easy, CURLINFO_HEADER_SIZE, &own->received_before);
    own->remote_port = remote_port;
    endpoints ends;
    int is_known = wire_endpoints_read(&ends, local, local_port, remote, remote_port);
    connection *connection = is_known ? wire_connection_find(own->loop, &ends) : NULL;
    // A transfer that opened a connection may still be sent on another one. Connections are forgotten when they close, so every known one
    // was there before.
    int is_new = made > 0 && !connection, is_readable = 0;
    if (is_new && is_known) {
        int socket = opened_socket(own, &ends);
        if (socket >= 0) connection = wire_connection_add(own->pool, &ends, socket, own->owner);
    }
    use_connection(own, connection);
    if (is_new && own->opened_count > 0) {
        own->new_socket = connection ? connection->socket : own->opened[(own->opened_count - 1) % 4];
        own->read_before = wire_socket_read_bytes(own->new_socket);
        own->lacks_names = own->is_secure && wire_tls_lacks_names(own->loop->curl, own->easy);
        if (own->lacks_names) return 1;
    }
    if (!is_new && !connection && own->is_local && !own->owner) {
        // libcurl compares the paths of Unix domain sockets, and uses no idle connection that is readable. Unsafe requests and those with
        // secrets are not sent here.
        is_readable = 0;
    } else if (!is_new && (!connection || connection->owner != own->owner)) {
        // libcurl does not compare the client's key, the user of a tunnel's proxy, or the case of pins. The connection counts as closed, as
        // does one of unknown origin.
        is_readable = 1;
    } else if (connection && connection->is_exclusive) {
        // A shared connection may be readable because of other exchanges, and its frames name their request. An HTTP/1 connection is reused
        // only after a response, so every reused HTTP/1 connection is known here.
        //
        // libcurl does not reveal the socket before it uses it, so the addresses identify it. A socket that cannot be polled counts as
        // closed, so a fresh connection follows.
        struct pollfd look = {.fd = connection->socket, .events = POLLIN | POLLRDHUP};
        is_readable = !wire_endpoints_match(&ends, connection->socket) || poll(&look, 1, 0) != 0;
    }
    return own->callbacks.will_send(own->context, !is_new, is_readable);
}

wire_transfer *wire_transfer_make(wire_loop *loop, const wire_callbacks *callbacks, void *context) {
    wire_transfer *transfer = loop->idle_count > 0 ? loop->idle[--loop->idle_count] : calloc(1, sizeof *transfer);
    if (!transfer) return NULL;
    CURL *easy = transfer->easy ? transfer->easy : loop->curl->curl_easy_init();
    if (!easy) {
        free(transfer);
        return NULL;
    }
    // Nothing else is left of an earlier exchange.
    *transfer = (wire_transfer){.loop = loop, .callbacks = *callbacks, .context = context, .easy = easy};
    return transfer;
}

void wire_transfer_use_proxy(wire_transfer *transfer, const char *url, const char *user, const char *password) {
    const wire_library *curl = transfer->loop->curl;
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PROXY, url);
    // The environment's exceptions do not apply to a proxy that the app names.
    curl->curl_easy_setopt(transfer->easy, CURLOPT_NOPROXY, "");
    if (!user) return;
    if (curl->version < WIRE_ASKS_BEFORE_SENDING) {
        // The owner of a tunnel is unknown here.
        curl->curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
        curl->curl_easy_setopt(transfer->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PROXYUSERNAME, user);
    curl->curl_easy_setopt(transfer->easy, CURLOPT_PROXYPASSWORD, password);
}

int wire_transfer_begin(wire_transfer *transfer, const wire_request *request) {
    const wire_library *curl = transfer->loop->curl;
    CURL *easy = transfer->easy;
    transfer->offers_http2 = request->offers_http2;
    curl->curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl->curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl->curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    // A stream may have no deadline, and a server that has vanished ends no connection. The probes begin after a minute of silence.
    curl->curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 15L);
    curl->curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl->curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)(transfer->offers_http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl->curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, request->buffer_bytes);
    // Older versions are deprecated (RFC 8996).
    curl->curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (curl->certificates) curl->curl_easy_setopt(easy, CURLOPT_CAINFO, curl->certificates);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl->curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl->curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_lookup);
    curl->curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, transfer);
    // After its own limit of five minutes for a connection, libcurl would wait for the lookup. Versions before 7.87 ignore the option.
    curl->curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl->curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    curl->curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    // The connection outlives the transfer.
    curl->curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, wire_connection_close);
    curl->curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, transfer->loop);
    // Messages cost 5 microseconds, or 25 if they name each frame.
    if (transfer->offers_http2) {
        curl->curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_text);
        curl->curl_easy_setopt(easy, CURLOPT_DEBUGDATA, transfer);
        curl->curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    }
    if (curl->version >= WIRE_ASKS_BEFORE_SENDING) {
        curl->curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_will_send);
        curl->curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    }
    if (request->needs_fresh_connection || request->upgrades) curl->curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    if (request->upgrades) {
        curl->curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        // A proxy that forwards requests would not understand what follows (RFC 6455 §4.1).
        curl->curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    }
    transfer->owner = request->owner;
    transfer->is_secure = strncasecmp(request->url, "https:", 6) == 0;
    transfer->local_port = request->local_port;
    transfer->needs_lookup = request->needs_lookup;
    transfer->is_local = request->unix_socket != NULL;
    int code = request->tls ? wire_tls_apply(curl, easy, request->tls) : CURLE_OK;
    if (!code) code = curl->curl_easy_setopt(easy, CURLOPT_URL, request->url);
    if (!code && request->unix_socket) code = curl->curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, request->unix_socket);
    if (code) return code;

    for (const char *line = request->fields; *line; line += strlen(line) + 1) {
        struct curl_slist *longer = curl->curl_slist_append(transfer->fields, line);
        if (!longer) return CURLE_OUT_OF_MEMORY;
        transfer->fields = longer;
    }
    curl->curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->fields);

    int is_head = strcmp(request->method, "HEAD") == 0;
    if (request->body == WIRE_BODY_NONE) {
        curl->curl_easy_setopt(easy, is_head ? CURLOPT_NOBODY : CURLOPT_HTTPGET, 1L);
    } else {
        curl->curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl->curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, request->length);
    }
    if (request->body == WIRE_BODY_EMPTY) curl->curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
    if (request->body == WIRE_BODY_COPIED) code = curl->curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->bytes);
    if (request->body == WIRE_BODY_READ) {
        curl->curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        curl->curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
        curl->curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        curl->curl_easy_setopt(easy, CURLOPT_SEEKDATA, transfer);
    }
    if (code) return code;
    if (!is_head) curl->curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    int is_http1 = !transfer->offers_http2 && transfer->is_secure;
    transfer->pool = &transfer->loop->pools[is_http1 ? POOL_OF_HTTP1 : POOL];
    wire_process_enter();
    code = curl->curl_multi_add_handle(transfer->pool->multi, easy) ? CURLE_FAILED_INIT : CURLE_OK;
    wire_process_leave();
    transfer->is_running = code == 0;
    if (code) return code;
    transfer->is_starting = 1;
    transfer->loop->starting_count++;
    // Such a library does not report which connection a transfer uses.
    if (curl->version < WIRE_ASKS_BEFORE_SENDING) begin_opening(transfer);
    return code;
}

/// Closes the connection of a canceled exchange if the server would not learn of the end otherwise.
static void close_connection(const wire_transfer *transfer) {
    const connection *connection = transfer->connection;
    int is_kept = transfer->loop->curl->version >= WIRE_RESETS_STREAMS && connection->owner != RETIRED;
    if (transfer->is_over || !transfer->is_running || connection->is_exclusive || is_kept) return;
    // libcurl delays the reset of a canceled stream until it sends something else (https://github.com/curl/curl/issues/17611). If nothing
    // else is in flight, closing the connection informs the server at once.
    if (connection->users == 1 && wire_endpoints_match(&connection->ends, connection->socket)) shutdown(connection->socket, SHUT_RDWR);
}

void wire_transfer_distrust(const wire_transfer *transfer) {
    connection *connection = transfer->connection;
    // An HTTP/1 connection ends with the exchange. A silent connection that exchanges share would otherwise stay in use.
    if (connection && !connection->is_exclusive && connection->arrivals == transfer->arrivals) connection->owner = RETIRED;
}

void wire_transfer_end(wire_transfer *transfer) {
    wire_loop *loop = transfer->loop;
    const wire_library *curl = loop->curl;
    if (transfer->is_running && !transfer->is_over && transfer->is_resolving) {
        // Removing the handle would join the thread that waits for a name server, and block the loop until then. Instead, the transfer opens
        // no connection after its lookup, and ends.
        transfer->is_abandoned = 1;
        loop->abandoned_count++;
        return;
    }
    end_start(transfer);
    wire_process_enter();
    // Removed before it is freed or reused.
    if (transfer->is_running) {
        wire_transfer_release(transfer);
        wire_pool_limit(transfer->pool);
        curl->curl_multi_remove_handle(transfer->pool->multi, transfer->easy);
    }
    if (transfer->connection) close_connection(transfer);
    use_connection(transfer, NULL);
    transfer->is_running = 0;
    // Before 8.2 a handle keeps a pointer to the last header of its last response, which is already freed. A response that begins with a
    // folded line would make libcurl dereference it.
    int is_kept = loop->idle_count < IDLE_TRANSFERS && curl->version >= WIRE_RESETS_HANDLES;
    if (is_kept) {
        curl->curl_easy_reset(transfer->easy);
        loop->idle[loop->idle_count++] = transfer;
    } else {
        curl->curl_easy_cleanup(transfer->easy);
    }
    wire_process_leave();
    curl->curl_slist_free_all(transfer->fields);
    transfer->fields = NULL;
    if (!is_kept) free(transfer);
}

void wire_transfer_unwatched(wire_transfer *transfer) {
    // After the end of a response or a connection, libcurl waits for further bytes of the request body, and reports nothing until then. It
    // waits for nothing on a socket only in this case, before the request, and while the transfer is paused or over.
    if (!transfer->is_running || transfer->is_abandoned || transfer->is_over || transfer->is_receiving_paused) return;
    transfer->callbacks.peer_ended(transfer->context);
}

void wire_transfer_resume(wire_transfer *transfer, int receiving_waits, int sending_waits) {
    // libcurl may pass on kept bytes at once, which may pause the transfer again.
    transfer->is_receiving_paused = receiving_waits;
    wire_process_enter();
    transfer->loop->curl->curl_easy_pause(transfer->easy, (receiving_waits ? CURLPAUSE_RECV : 0) | (sending_waits ? CURLPAUSE_SEND : 0));
    wire_process_leave();
}

void wire_transfer_trace_proxy(const wire_transfer *transfer, wire_proxy_trace *trace) {
    const wire_library *curl = transfer->loop->curl;
    trace->status = trace->reason = 0;
    curl->curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &trace->status);
    curl->curl_easy_getinfo(transfer->easy, CURLINFO_PROXY_ERROR, &trace->reason);
    trace->port = transfer->remote_port;
}

void wire_transfer_measure(const wire_transfer *transfer, wire_metrics *metrics) {
    const wire_library *curl = transfer->loop->curl;
    CURL *easy = transfer->easy;
    memset(metrics, 0, sizeof *metrics);
    curl->curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &metrics->name_lookup);
    curl->curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &metrics->connect);
    curl->curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &metrics->secure);
    curl->curl_easy_getinfo(easy, CURLINFO_STARTTRANSFER_TIME_T, &metrics->first_byte);
    curl->curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &metrics->total);
    curl->curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &metrics->sent_body);
    curl->curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &metrics->received_body);
    curl->curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &metrics->request);
    curl->curl_easy_getinfo(easy, CURLINFO_HEADER_SIZE, &metrics->received_head);
    curl->curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &metrics->connections);
    curl->curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &metrics->http_version);
    metrics->request -= transfer->sent_before;
    metrics->received_head -= transfer->received_before;
}

const char *wire_transfer_error(const wire_transfer *transfer) { return transfer->error; }

long wire_transfer_verification(const wire_transfer *transfer) {
    long result = 0;
    transfer->loop->curl->curl_easy_getinfo(transfer->easy, CURLINFO_SSL_VERIFYRESULT, &result);
    return result;
}

void wire_transfer_watch_end(wire_transfer *transfer) {
    transfer->watches_end = 1;
    note_read(transfer);
}

int wire_transfer_is_unprocessed(const wire_transfer *transfer) { return transfer->is_unprocessed; }

int wire_transfer_is_cut(const wire_transfer *transfer, int code) {
    const connection *connection = transfer->connection;
    if (!connection) return 0;
    if (code && connection->is_malformed) return 1;
    if (!transfer->watches_end) return code == CURLE_GOT_NOTHING && transfer->has_stream;
    if (code) return 0;
    // No version reports a stream that is reset with NO_ERROR.
    if (transfer->loop->curl->version >= WIRE_TRACES_FRAMES) return transfer->stream > 0 && !transfer->has_ended;
    // After malformed frames, these versions close the connection and report a success.
    if (connection->socket < 0) return !connection->has_goaway;
    // The frames of other streams would be mistaken for the end of this one.
    if (connection->users > 1 || connection->arrivals != transfer->arrivals_read) return 0;
    // A record with the frame that resets the stream has 13 bytes; one with an empty last DATA frame has 9. To both, TLS adds 22, 29 or 21
    // bytes.
    uint64_t rest = wire_socket_read_bytes(connection->socket) - transfer->read;
    return rest == 13 + 22 || rest == 13 + 29 || rest == 13 + 21;
}

int wire_transfer_lacks_names(const wire_transfer *transfer) { return transfer->lacks_names; }

int wire_transfer_met_alert(const wire_transfer *transfer) {
    const closed_socket *closed = &transfer->loop->closed[transfer->new_socket % CLOSED_SOCKETS];
    if (!transfer->is_secure || transfer->new_socket <= 0 || closed->number != transfer->new_socket) return 0;
    // An encrypted alert is a record of 24 bytes; a second one may announce the end of the connection.
    uint64_t received = closed->received - transfer->read_before;
    return received == 24 || received == 48;
}

int wire_transfer_was_shut(const wire_transfer *transfer) {
    const connection *connection = transfer->connection;
    if (!connection) return 0;
    // libcurl keeps the connection of a failed stream open.
    return connection->socket < 0 ? connection->was_shut : wire_watch_has_shut(&transfer->loop->watch, connection->socket);
}

int wire_transfer_system_error(const wire_transfer *transfer) {
    if (transfer->open_error) return transfer->open_error;
    long number = 0;
    transfer->loop->curl->curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    return (int)number;
}

#endif
