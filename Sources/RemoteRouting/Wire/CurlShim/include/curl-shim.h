// libcurl and zlib without their headers: found at run time, called through typed functions.
//
// All functions that take a `wire_loop` or a `wire_transfer` belong to one thread, which the loop's maker may hand it over to.

#ifndef STOREHOUSE_CURL_SHIM_H
#define STOREHOUSE_CURL_SHIM_H

#if defined(__linux__)

#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

// MARK: Libraries

/// 7.66, the oldest version that is used: it refuses HTTP/0.9 by default.
#define WIRE_OLDEST_VERSION 0x074200
/// 7.80 asks before it sends, and so an unsafe request on a reused connection is not sent twice.
#define WIRE_ASKS_BEFORE_SENDING 0x075000
/// 8.2 forgets the last response of a handle that is reset.
#define WIRE_RESETS_HANDLES 0x080200
/// 7.88 has the HTTP/2 that is tested here.
#define WIRE_HAS_TESTED_HTTP2 0x075800
/// 8.16 sends the end of a stream at once; from 7.88 on, older ones send it together with the next request on the connection.
#define WIRE_RESETS_STREAMS 0x081000
/// 8.7 counts bodies among the bytes of a request.
#define WIRE_COUNTS_BODIES 0x080700

/// Finds the process's libcurl, or loads `libcurl.so.4`; the same number every time, negative where there is none.
int wire_library_default(void);
/// Loads the libcurl of a path; negative where that fails.
int wire_library_open(const char *path);
/// The version as `0x075801`.
unsigned wire_library_version(int library);
/// The version as text, such as `7.88.1`.
const char *wire_library_name(int library);
/// The library for TLS that this one is built with, such as `OpenSSL/3.0.17`; NULL where there is none.
const char *_Nullable wire_library_tls(int library);
/// The certificates that the library's build names; NULL where it does not say.
const char *_Nullable wire_library_certificates(int library);
/// Whether a name lookup runs beside the loop.
int wire_library_has_threads(int library);
/// Whether the library's build has HTTP/2.
int wire_library_has_http2(int library);
/// Whether `curl_global_init` may run beside other calls.
int wire_library_is_thread_safe(int library);
/// Calls `curl_global_init` once; 0 where that succeeds.
int wire_library_initialize(int library);

// MARK: Waking

/// Makes an event descriptor; negative where that fails.
int wire_event_make(void);
/// Wakes the loop that waits for the descriptor.
void wire_event_post(int event);
/// Closes the descriptor.
void wire_event_close(int event);
/// Blocks all signals on this thread, which thereby never runs a program's signal handlers nor gets a SIGPIPE.
void wire_thread_prepare(void);

// MARK: The loop

typedef struct wire_loop wire_loop;
typedef struct wire_transfer wire_transfer;

/// Makes a loop; NULL where the system has no descriptors left.
wire_loop *_Nullable wire_loop_make(int library, int event, long cached_connections);
/// Ends a loop that has no transfers, and closes its connections.
void wire_loop_free(wire_loop *loop);
/// Waits for sockets, the event and libcurl's timer, at most so many milliseconds (−1: without limit), and lets libcurl proceed.
void wire_loop_turn(wire_loop *loop, int milliseconds);
/// Takes out the next transfer that has ended: its context, or NULL.
void *_Nullable wire_loop_finished(wire_loop *loop, int *code);

// MARK: Transfers

/// What libcurl calls while a transfer proceeds; each gets the transfer's context.
typedef struct {
    /// A line of a head or of trailers; anything but `count` ends the transfer.
    size_t (*header)(void *context, const char *bytes, size_t count);
    /// A part of the body; anything but `count` ends the transfer, `WIRE_PAUSE` stops it.
    size_t (*body)(void *context, const char *bytes, size_t count);
    /// Fills in the next bytes to send; 0 at the end, `WIRE_PAUSE` where there are none yet, `WIRE_ABORT` ends the transfer.
    size_t (*read)(void *context, char *bytes, size_t count);
    /// Moves the place to read from; 0 where that can be done.
    int (*seek)(void *context, int64_t offset);
    /// Right before the request goes out: 0 lets it.
    int (*will_send)(void *context, int is_reused, int is_readable);
    /// Right before a connection is made: anything but 0 lets it. Otherwise the transfer ends.
    int (*may_connect)(void *context);
} wire_callbacks;

#define WIRE_PAUSE 0x10000001
#define WIRE_ABORT 0x10000000

enum wire_body { WIRE_BODY_NONE, WIRE_BODY_EMPTY, WIRE_BODY_COPIED, WIRE_BODY_READ };

typedef struct {
    const void *_Nullable start;
    size_t count;
} wire_bytes;

/// What a request demands of its secure connection; parts without bytes demand nothing.
typedef struct {
    /// The authorities in PEM, instead of the system's.
    wire_bytes authorities;
    /// The client's certificate and its key in PEM, and the password of the key.
    wire_bytes certificate;
    wire_bytes key;
    const char *password;
    /// The pins as libcurl takes them; NULL for none.
    const char *_Nullable pins;
    int needs_tls13;
    /// Whether the connection is shared with no other request.
    int is_alone;
} wire_tls;

typedef struct {
    const char *url;
    const char *method;
    /// Lines as they go on the wire, each ended by NUL, ended by an empty one.
    const char *fields;
    enum wire_body body;
    /// The body, where it is copied.
    const char *_Nullable bytes;
    /// The body's length; negative where it is unknown.
    int64_t length;
    long buffer_bytes;
    int needs_fresh_connection;
    /// A file of certificates instead of the library's own; NULL for that.
    const char *_Nullable certificates;
    /// What is demanded of a secure connection; NULL for the defaults.
    const wire_tls *_Nullable tls;
    /// The number of the secrets that a connection is made with; connections with another number are not used.
    uint64_t owner;
} wire_request;

/// Makes a transfer for a context, and copies the callbacks; NULL where memory is short.
wire_transfer *_Nullable wire_transfer_make(wire_loop *loop, const wire_callbacks *callbacks, void *context);
/// Names the proxy of a transfer that has not begun; an empty address is for none, and a NULL for the user is for no credentials.
///
/// Without this call, the environment names the proxy.
void wire_transfer_use_proxy(
    wire_transfer *transfer, const char *url, const char *_Nullable user, const char *_Nullable password);
/// Lets a transfer that has not begun use HTTP/2 where the server offers it over TLS.
void wire_transfer_offer_http2(wire_transfer *transfer);
/// Begins the exchange; 0 where that succeeds, otherwise a `CURLcode`.
int wire_transfer_begin(wire_transfer *transfer, const wire_request *request);
/// Takes the connection of an exchange that is late out of use where nothing has come on it since the request went out.
void wire_transfer_distrust(const wire_transfer *transfer);
/// Ends the exchange on the wire at once, and keeps the handle for the next one.
void wire_transfer_end(wire_transfer *transfer);
/// Goes on with what was paused.
void wire_transfer_resume(wire_transfer *transfer, int stays_paused_for_receiving, int stays_paused_for_sending);
/// What libcurl knows about the proxy of a failed transfer.
typedef struct {
    /// The status of the response to CONNECT; 0 where there is none.
    long status;
    /// The `CURLproxycode`, which tells the reasons of SOCKS apart.
    long reason;
    /// The port that the last connection was to go to; 0 where there is none.
    int port;
} wire_proxy_trace;

/// Reads what is known about the proxy.
void wire_transfer_trace_proxy(const wire_transfer *transfer, wire_proxy_trace *trace);

/// How a transfer went.
typedef struct {
    /// Microseconds from the beginning.
    int64_t name_lookup, connect, secure, first_byte, total;
    /// Bytes.
    int64_t sent_body, received_body;
    long request, received_head;
    long connections;
    /// 1: HTTP/1.0, 2: HTTP/1.1, 3: HTTP/2, 30: HTTP/3, 0: unknown.
    long http_version;
} wire_metrics;

/// Reads how a transfer went, before it is ended.
void wire_transfer_measure(const wire_transfer *transfer, wire_metrics *metrics);
/// What libcurl says about the failure.
const char *wire_transfer_error(const wire_transfer *transfer);
/// The reason for which a certificate was refused, by OpenSSL's numbers.
long wire_transfer_verification(const wire_transfer *transfer);
/// The system's error number, 0 where there is none.
int wire_transfer_system_error(const wire_transfer *transfer);

// MARK: zlib

typedef struct wire_inflater wire_inflater;

/// Whether zlib can be found or loaded.
int wire_inflater_is_available(void);
/// Makes what decodes one member of gzip (RFC 1952); NULL where zlib or memory is missing.
wire_inflater *_Nullable wire_inflater_make(void);
void wire_inflater_free(wire_inflater *inflater);
/// Decodes: 0 goes on, 1 the member has ended, negative the bytes are not gzip. `in_count` and `out_count` become what was used.
int wire_inflater_run(wire_inflater *inflater, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count);
/// Begins the next member.
void wire_inflater_reset(wire_inflater *inflater);

#pragma clang assume_nonnull end

#endif
#endif
