// The loop of a thread and its transfers.

#if defined(__linux__)

#include "curl-library.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

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

typedef struct pool pool;

/// A connection that has carried a request.
typedef struct connection connection;
struct connection {
    /// The next connection of the bucket.
    connection *next;
    pool *pool;
    /// The transfers that use it.
    wire_transfer *transfers;
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
    /// The number of those that libcurl has not ended.
    uint32_t running;
    /// Whether the watch has shut it down.
    int was_shut;
    /// Whether it was shut down as a surplus idle connection, and its place among those that became idle.
    int is_surplus;
    uint64_t idle_number;
    /// Whether the server has announced its end (RFC 9113 §6.8).
    int has_goaway;
    /// Whether libcurl has refused its frames.
    int is_malformed;
};

/// An open socket of a loop, and the results of the last looks at it.
typedef struct {
    int number;
    /// The number of bytes that were read from it.
    uint64_t read;
    /// The number of consecutive looks during which it was read.
    int looks;
    /// Whether the watch has shut it down.
    int is_shut;
} open_socket;

/// A closed socket, and the number of bytes that had arrived on it.
typedef struct {
    int number;
    uint64_t received;
} closed_socket;

enum { CLOSED_SOCKETS = 64 };

/// The watch of a loop.
typedef struct {
    pthread_t thread;
    int is_running;
    /// The clock of the loop's processor time.
    clockid_t clock;
    /// Wakes the thread while it is asleep.
    sem_t wake;
    atomic_int is_asleep;
    atomic_int is_over;
    /// Odd while libcurl handles one socket or its timers.
    atomic_uint step;
    /// Guards the sockets. A socket is closed only after it was removed.
    pthread_mutex_t lock;
    open_socket *sockets;
    int count, capacity;
} watch;

/// Connections and the transfers that use them.
struct pool {
    wire_loop *loop;
    CURLM *multi;
    /// The number of connections that transfers are opening, that transfers use, and that no transfer uses.
    long opening, used, idle;
    /// The number of times that a connection became idle.
    uint64_t idle_number;
    /// The number of connections that libcurl keeps.
    long limit;
    /// The time at which libcurl must be called next, in milliseconds of the monotonic clock; negative for never.
    int64_t timer;
};

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
    /// Whether libcurl has reported the end, its code, and the transfer that ended next.
    int is_over;
    int code;
    wire_transfer *next_ended;
    /// Whether a thread of libcurl looks up a name for the transfer.
    int is_resolving;
    /// Whether the exchange has ended, and the transfer only waits for that thread.
    int is_abandoned;
    /// Whether it has neither opened nor found a connection.
    int is_starting;
    /// Whether it counts among the pool's opening connections, and among the running transfers of its connection.
    int is_opening;
    int is_using;
    /// The reason why no socket could be opened; 0 without one.
    int open_error;
    int offers_http2;
    /// A hash of the secrets with which the connection must have been made; 0 without secrets.
    uint64_t owner;
    /// The local port of a new connection; 0 for any.
    int local_port;
    int needs_lookup;
    /// Whether the connection is to a Unix domain socket, which has no numeric address.
    int is_local;
    /// The number of arrivals on the connection when the request was sent.
    uint32_t arrivals;
    /// The number of arrivals on the connection with the last chunk of the body.
    uint32_t arrivals_read;
    /// The connection of the request, NULL before the request is sent, and the next transfer that uses it.
    connection *connection;
    wire_transfer *next;
    /// Whether the end of the body must be observed, and the number of bytes that were read from the connection up to its last chunk.
    int watches_end;
    uint64_t read;
    /// The socket of a connection that was opened for the request, and the number of bytes that were read before the request; 0 for none.
    int is_secure;
    /// Whether the request was sent as frames, and whether the server has announced that it did not process it.
    int has_stream;
    int is_unprocessed;
    /// The number of the stream, 0 if it is unknown, and whether its response has ended.
    unsigned long stream;
    int has_ended;
    /// Whether the server's certificate was refused, because it names its host only in the common name.
    int lacks_names;
    /// Whether the reader is behind.
    int is_receiving_paused;
    int new_socket;
    uint64_t read_before;
    /// The bytes that libcurl has counted before the request: of a proxy's tunnel, and of a connection that was lost without a response.
    long sent_before, received_before;
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
    watch watch;
    int epoll;
    int event;
    /// The open connections, by local port.
    connection *connections[CONNECTION_BUCKETS];
    /// The last closed sockets, by number.
    closed_socket closed[CLOSED_SOCKETS];
    wire_transfer *idle[IDLE_TRANSFERS];
    int idle_count;
    /// The number of transfers that wait for the end of their name lookup only, and the number at which no other lookup begins.
    int abandoned_count;
    int lookups;
    /// The number of transfers that have neither opened nor found a connection.
    int starting_count;
    /// The transfers that have ended, and the place of the next one.
    wire_transfer *ended;
    wire_transfer **last_ended;
    /// The maximum number of idle connections of a pool, if the others have none.
    long idle_connections;
};

/// Reads the addresses that libcurl reports; 0 if they are not numeric.
int wire_endpoints_read(endpoints *ends, const char *local, int local_port, const char *remote, int remote_port);
/// Whether a socket has these ends.
int wire_endpoints_match(const endpoints *ends, int socket);
/// Returns the open connection with these ends; NULL if none is known.
connection *wire_connection_find(wire_loop *loop, const endpoints *ends);
/// Adds a connection; NULL if memory is exhausted.
connection *wire_connection_add(pool *own, const endpoints *ends, int socket, uint64_t owner);
/// Ends a transfer's use of a connection, and frees a closed connection after the last one.
void wire_connection_leave(connection *connection);
/// Closes a socket of libcurl and forgets its connection.
int wire_connection_close(void *loop, int socket);
/// Shuts down the longest idle connections of a pool until at most this many stay open. libcurl closes them when it next looks at them.
void wire_connections_trim(pool *own, long limit);
/// Notes that no transfer uses an open connection any more.
void wire_connection_idle(connection *connection);
/// Limits the idle connections of a pool; not within libcurl's callbacks, which refuse it.
void wire_pool_limit(pool *own);
/// Notes that libcurl has ended a transfer's use of its connection.
void wire_transfer_release(wire_transfer *transfer);
/// Notes that libcurl no longer waits for the socket of a transfer.
void wire_transfer_unwatched(wire_transfer *transfer);
/// Initializes a watch; negative on failure.
int wire_watch_make(watch *watch);
void wire_watch_free(watch *watch);
/// Marks the start and the end of a step.
void wire_watch_begin(watch *watch);
void wire_watch_end(watch *watch);
/// Adds a socket; negative if memory is exhausted.
int wire_watch_add(watch *watch, int socket);
/// Returns whether the watch has shut an open socket down.
int wire_watch_has_shut(watch *watch, int socket);
/// Removes a socket; returns whether the watch has shut it down.
int wire_watch_remove(watch *watch, int socket);
/// The number of bytes that were read from a socket, and that have arrived on it.
uint64_t wire_socket_read_bytes(int socket);
uint64_t wire_socket_received_bytes(int socket);
/// Checks a new connection's certificate; returns whether it has no subject alternative names.
int wire_tls_lacks_names(const wire_library *curl, CURL *easy);
void wire_connections_free(wire_loop *loop);

#endif
