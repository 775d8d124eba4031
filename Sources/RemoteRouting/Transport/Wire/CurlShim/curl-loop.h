// The loop of a thread and its transfers.

#if defined(__linux__)

#include "curl-library.h"

enum { IDLE_TRANSFERS = 64, CONNECTION_BUCKETS = 1024 };

/// An end of a connection, without padding.
typedef struct {
    int family;
    int port;
    uint8_t address[16];
} endpoint;

/// Both ends of a connection. One end alone does not identify it: connections with different destinations may have one local port.
typedef struct {
    endpoint local;
    endpoint remote;
} endpoints;

/// A connection that has carried a request.
typedef struct connection connection;
struct connection {
    /// The next connection of the bucket.
    connection *next;
    endpoints ends;
    /// Negative after it was closed.
    int socket;
    /// Whether it has carried an HTTP/1 response, so that responses cannot share it.
    int is_exclusive;
    /// The secrets that it was made with.
    uint64_t owner;
    /// The number of response parts that have arrived.
    uint32_t arrivals;
    /// The number of transfers that sent a request on it and have not ended.
    uint32_t users;
};

/// Connections and the transfers that use them.
typedef struct {
    wire_loop *loop;
    CURLM *multi;
    /// The time at which libcurl must be called next, in milliseconds of the monotonic clock; negative for never.
    int64_t timer;
} pool;

// libcurl remembers for each host whether its last response used HTTP/2, and shares no connection if it did not. Therefore transfers that
// must use HTTP/1.1 over TLS, such as streams, have a separate pool.
enum { POOL, POOL_OF_HTTP1, POOLS };

struct wire_transfer {
    wire_loop *loop;
    pool *pool;
    wire_callbacks callbacks;
    void *context;
    CURL *easy;
    struct curl_slist *fields;
    int is_running;
    /// Whether libcurl has reported the end.
    int is_over;
    /// Whether a thread of libcurl looks up a name for the transfer.
    int is_resolving;
    /// Whether the exchange has ended, and the transfer only waits for that thread.
    int is_abandoned;
    int offers_http2;
    /// A hash of the secrets with which the connection must have been made; 0 without secrets.
    uint64_t owner;
    /// The local port of a new connection; 0 for any.
    int local_port;
    /// The number of arrivals on the connection when the request was sent.
    uint32_t arrivals;
    /// The connection of the request; NULL before the request is sent.
    connection *connection;
    /// The remote port of the last connection attempt.
    int remote_port;
    /// The sockets opened for the transfer; several if addresses race.
    int opened[4];
    int opened_count;
    /// libcurl writes here until the handle is freed.
    char error[256];
};

struct wire_loop {
    const wire_library *curl;
    pool pools[POOLS];
    int epoll;
    int event;
    /// The open connections, by local port.
    connection *connections[CONNECTION_BUCKETS];
    wire_transfer *idle[IDLE_TRANSFERS];
    int idle_count;
    /// The number of transfers that wait for the end of their name lookup only.
    int abandoned_count;
};

/// Reads the addresses that libcurl reports; 0 if they are not numeric.
int wire_endpoints_read(endpoints *ends, const char *local, int local_port, const char *remote, int remote_port);
/// Whether a socket has these ends.
int wire_endpoints_match(const endpoints *ends, int socket);
/// Returns the open connection with these ends; NULL if none is known.
connection *wire_connection_find(wire_loop *loop, const endpoints *ends);
/// Adds a connection; NULL if memory is exhausted.
connection *wire_connection_add(wire_loop *loop, const endpoints *ends, int socket, uint64_t owner);
/// Ends a transfer's use of a connection, and frees a closed connection after the last one.
void wire_connection_leave(connection *connection);
/// Closes a socket of libcurl and forgets its connection.
int wire_connection_close(void *loop, int socket);
/// Frees all connections.
void wire_connections_free(wire_loop *loop);

#endif
