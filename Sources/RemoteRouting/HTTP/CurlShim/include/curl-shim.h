// libcurl, zlib, libbrotlidec and libzstd without their headers: found at run time and called through typed functions.
//
// All functions that take a `wire_loop` or a `wire_transfer` belong to one thread; the creator of the loop may hand the loop over to it.

#ifndef STOREHOUSE_CURL_SHIM_H
#define STOREHOUSE_CURL_SHIM_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

// MARK: Libraries

/// 7.66, the oldest supported version: it refuses HTTP/0.9 by default.
#define WIRE_OLDEST_VERSION 0x074200
/// 7.80 asks before it sends, so an unsafe request on a reused connection is not sent twice.
#define WIRE_ASKS_BEFORE_SENDING 0x075000
/// 8.2 clears the last response when a handle is reset.
#define WIRE_RESETS_HANDLES 0x080200
/// 7.88 is the oldest version whose HTTP/2 is tested here; 8.0 reads ahead, so that its reads show no frame any more.
#define WIRE_HAS_TESTED_HTTP2 0x075800
#define WIRE_READS_AHEAD 0x080000
/// 8.3 names each frame in its messages.
#define WIRE_TRACES_FRAMES 0x080300
/// 8.16 resets a stream at once; versions from 7.88 send the reset with the next request on the connection.
#define WIRE_RESETS_STREAMS 0x081000
/// 8.7 counts bodies among the bytes of a request.
#define WIRE_COUNTS_BODIES 0x080700

/// Finds the process's libcurl, or loads `libcurl.so.4`. Returns the same number every time; negative without a library.
int wire_library_default(void);
/// Loads the libcurl at a path; negative on failure.
int wire_library_open(const char *path);
/// The version as `0x075801`.
unsigned wire_library_version(int library);
/// The version as text, such as `7.88.1`.
const char *wire_library_name(int library);
/// The TLS library of the build, such as `OpenSSL/3.0.17`; NULL without TLS.
const char *_Nullable wire_library_tls(int library);
int wire_library_has_threads(int library);
int wire_library_has_http2(int library);
/// Whether `curl_global_init` is thread-safe.
int wire_library_is_thread_safe(int library);
/// Calls `curl_global_init` once; 0 on success.
int wire_library_initialize(int library);

// MARK: Waking

/// Creates an event descriptor; negative on failure.
int wire_event_make(void);
/// Wakes the loop that waits for the descriptor.
void wire_event_post(int event);
void wire_event_close(int event);
/// Blocks all signals on this thread, so that it runs none of the program's signal handlers and receives no SIGPIPE.
void wire_thread_prepare(void);

// MARK: The loop

typedef struct wire_loop wire_loop;
typedef struct wire_transfer wire_transfer;

/// Creates a loop; NULL if the system has no descriptors left.
///
/// - idle_connections: The maximum number of idle connections. Connections that must use HTTP/1.1 are counted apart, and each of the two
///   kinds may have half of the number in any case.
/// - lookups: The number of ended exchanges with a running name lookup at which no other lookup begins.
wire_loop *_Nullable wire_loop_make(int library, int event, long idle_connections, int lookups);
/// The number of descriptors that open sockets have, and that beginning transfers may need.
int wire_loop_descriptors(wire_loop *loop);
/// The number of ended exchanges whose name lookup still runs.
int wire_loop_lookups(const wire_loop *loop);
/// Frees a loop without transfers and lookups, and closes its connections.
void wire_loop_free(wire_loop *loop);
/// Waits for sockets, the event and libcurl's timer, then lets libcurl proceed; at most `milliseconds`, −1 for no limit.
void wire_loop_turn(wire_loop *loop, int milliseconds);
/// Removes the next ended transfer and returns its context; NULL if there is none.
void *_Nullable wire_loop_finished(wire_loop *loop, int *code);

// MARK: Transfers

/// The callbacks of a transfer; each receives the transfer's context.
typedef struct {
    /// A line of a head or a trailer; any result except `count` ends the transfer.
    size_t (*header)(void *context, const char *bytes, size_t count);
    /// A part of the body; any result except `count` ends the transfer, `WIRE_PAUSE` pauses it.
    size_t (*body)(void *context, const char *bytes, size_t count);
    /// Fills in the next bytes to send. 0 is the end, `WIRE_PAUSE` waits for more, `WIRE_ABORT` ends the transfer.
    size_t (*read)(void *context, char *bytes, size_t count);
    /// Sets the read position; 0 on success.
    int (*seek)(void *context, int64_t offset);
    /// Called right before the request is sent; 0 allows it.
    int (*will_send)(void *context, int is_reused, int is_readable);
    /// Called right before a connection is opened; any result except 0 allows it, 0 ends the transfer.
    int (*may_connect)(void *context);
    /// Called when the peer may have ended its response, or an upgraded connection, while nothing is sent; must not call libcurl.
    void (*peer_ended)(void *context);
} wire_callbacks;

#define WIRE_PAUSE 0x10000001
#define WIRE_ABORT 0x10000000

enum wire_body { WIRE_BODY_NONE, WIRE_BODY_EMPTY, WIRE_BODY_COPIED, WIRE_BODY_READ };

typedef struct {
    const void *_Nullable start;
    size_t count;
} wire_bytes;

/// The TLS requirements of a request; empty parts require nothing.
typedef struct {
    /// The authorities in PEM, instead of the system's.
    wire_bytes authorities;
    /// The client certificate and its key in PEM, and the password of the key.
    wire_bytes certificate;
    wire_bytes key;
    const char *password;
    /// The pins in libcurl's form; NULL for none.
    const char *_Nullable pins;
    int needs_tls13;
    /// Whether no other request may share the connection.
    int is_alone;
} wire_tls;

typedef struct {
    const char *url;
    const char *method;
    /// The header lines, each terminated by NUL, followed by an empty line.
    const char *fields;
    enum wire_body body;
    /// The body, if it is copied.
    const char *_Nullable bytes;
    /// The length of the body; negative if it is unknown.
    int64_t length;
    long buffer_bytes;
    /// Whether HTTP/2 is used if the server offers it over TLS.
    int offers_http2;
    int needs_fresh_connection;
    /// The TLS requirements; NULL for the defaults.
    const wire_tls *_Nullable tls;
    /// A hash of the secrets with which a connection is made; connections with another hash are not used.
    uint64_t owner;
    /// The local port of a new connection, which tests choose; 0 for any.
    int local_port;
    /// Whether a new connection needs a name server, if lookups of ended exchanges still run.
    int needs_lookup;
    /// Whether the request leaves HTTP: its connection is used for nothing else, and an HTTP proxy opens a tunnel.
    int upgrades;
    /// The path of the Unix domain socket to connect to; NULL for TCP.
    const char *_Nullable unix_socket;
} wire_request;

/// Creates a transfer for a context and copies the callbacks; NULL if memory is exhausted.
wire_transfer *_Nullable wire_transfer_make(wire_loop *loop, const wire_callbacks *callbacks, void *context);
/// Sets the proxy of a transfer before it begins; an empty address means no proxy, a NULL user no credentials.
///
/// Without this call, the environment names the proxy.
void wire_transfer_use_proxy(
    wire_transfer *transfer, const char *url, const char *_Nullable user, const char *_Nullable password);
/// Begins the exchange; 0 on success, otherwise a `CURLcode`.
int wire_transfer_begin(wire_transfer *transfer, const wire_request *request);
/// Retires the connection of a late exchange if nothing has arrived on it since the request was sent.
void wire_transfer_distrust(const wire_transfer *transfer);
/// Ends the exchange on the wire at once and keeps the handle for the next exchange. During a name lookup, libcurl ends the transfer later.
void wire_transfer_end(wire_transfer *transfer);
void wire_transfer_resume(wire_transfer *transfer, int stays_paused_for_receiving, int stays_paused_for_sending);
/// libcurl's information about the proxy of a failed transfer.
typedef struct {
    /// The status of the response to CONNECT; 0 without a response.
    long status;
    /// The `CURLproxycode`, which distinguishes SOCKS failures.
    long reason;
    /// The remote port of the last connection attempt; 0 if there was none.
    int port;
} wire_proxy_trace;

void wire_transfer_trace_proxy(const wire_transfer *transfer, wire_proxy_trace *trace);

typedef struct {
    /// Microseconds since the start.
    int64_t name_lookup, connect, secure, first_byte, total;
    /// Sizes in bytes.
    int64_t sent_body, received_body;
    long request, received_head;
    long connections;
    /// 1: HTTP/1.0, 2: HTTP/1.1, 3: HTTP/2, 30: HTTP/3, 0: unknown.
    long http_version;
} wire_metrics;

/// Collects the metrics of a transfer before it ends.
void wire_transfer_measure(const wire_transfer *transfer, wire_metrics *metrics);
/// libcurl's message about the failure.
const char *wire_transfer_error(const wire_transfer *transfer);
/// OpenSSL's number for the reason of a refused certificate.
long wire_transfer_verification(const wire_transfer *transfer);
/// Whether the server's certificate was refused, because it names its host only in the common name.
int wire_transfer_lacks_names(const wire_transfer *transfer);
/// Whether only a TLS 1.3 alert arrived on a new connection after the handshake.
int wire_transfer_met_alert(const wire_transfer *transfer);
/// Observes the end of an HTTP/2 body that nothing else proves.
void wire_transfer_watch_end(wire_transfer *transfer);
/// Whether an HTTP/2 response was cut, although libcurl reports a success, or an empty response.
int wire_transfer_is_cut(const wire_transfer *transfer, int code);
/// Whether the server has announced that it did not process the request.
int wire_transfer_is_unprocessed(const wire_transfer *transfer);
/// Whether the connection was shut down because it kept the thread from other exchanges.
int wire_transfer_was_shut(const wire_transfer *transfer);
/// The system's error number; 0 without one.
int wire_transfer_system_error(const wire_transfer *transfer);

// MARK: Content codings

/// A decoder of a content coding: `gzip` with zlib, `br` with libbrotlidec, or `zstd` with libzstd.
typedef struct wire_inflater wire_inflater;

/// Whether the library of a coding can be found or loaded.
int wire_inflater_is_available(const char *coding);
/// Creates a decoder; NULL without the library or memory.
wire_inflater *_Nullable wire_inflater_make(const char *coding);
void wire_inflater_free(wire_inflater *inflater);
/// Decodes; returns 0 to continue, 1 at the end of a member, negative if malformed. Sets `in_count` and `out_count` to the used counts.
int wire_inflater_run(wire_inflater *inflater, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count);
void wire_inflater_reset(wire_inflater *inflater);

#pragma clang assume_nonnull end

#endif
#endif
