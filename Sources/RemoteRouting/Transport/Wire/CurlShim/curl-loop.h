// The loop of a thread and its transfers.

#if defined(__linux__)

#include "curl-library.h"

enum { IDLE_TRANSFERS = 64 };

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
    int offers_http2;
    /// A hash of the secrets with which the connection must have been made; 0 without secrets.
    uint64_t owner;
    /// The number of arrivals on the connection when the request was sent.
    uint32_t arrivals;
    /// The local port of the request's connection; 0 before the request is sent.
    int port;
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
    /// For each local port, the socket of its request plus one; it may have been closed since.
    int *sockets;
    /// For each local port, whether its connection has carried an HTTP/1 response, so that responses cannot share it.
    uint8_t *is_exclusive;
    /// For each local port, the owner of its connection.
    uint64_t *owners;
    /// For each local port, the number of response parts that have arrived.
    uint32_t *arrivals;
    /// For each local port, the number of transfers that sent a request on its connection and have not ended.
    uint16_t *users;
    wire_transfer *idle[IDLE_TRANSFERS];
    int idle_count;
};

#endif
