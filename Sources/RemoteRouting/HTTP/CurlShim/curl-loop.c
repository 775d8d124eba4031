// The loop, which waits for sockets and timers on behalf of libcurl.

#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-loop.h"
#include "curl-options.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 64 };

// MARK: Waking

int wire_event_make(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void wire_event_post(int event) {
    uint64_t one = 1;
    // The write fails only if the counter is at its maximum, which wakes the loop as well.
    ssize_t written = write(event, &one, sizeof one);
    (void)written;
}

void wire_event_close(int event) { close(event); }

void wire_thread_prepare(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_setname_np(pthread_self(), "storehouse.wire");
}

// MARK: The loop

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int on_socket(CURL *easy, int socket, int what, void *context, void *of_socket) {
    pool *own = context;
    wire_loop *loop = own->loop;
    if (what == CURL_POLL_REMOVE) {
        // libcurl's resolver may have closed its socket already.
        epoll_ctl(loop->epoll, EPOLL_CTL_DEL, socket, NULL);
        char *transfer = NULL;
        loop->curl->curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
        if (transfer) wire_transfer_unwatched((wire_transfer *)transfer);
        return 0;
    }
    struct epoll_event event = {.events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0), 
        .data.u64 = (uint64_t)(own - loop->pools) << 32 | (uint32_t)socket};
    int operation = of_socket ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int result = epoll_ctl(loop->epoll, operation, socket, &event);
    if (result < 0 && errno == EEXIST) result = epoll_ctl(loop->epoll, EPOLL_CTL_MOD, socket, &event);
    if (result < 0 && errno == ENOENT) result = epoll_ctl(loop->epoll, EPOLL_CTL_ADD, socket, &event);
    return 0;
}

static int on_timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    pool *own = context;
    own->timer = milliseconds < 0 ? -1 : milliseconds == 0 ? 0 : now() + milliseconds;
    return 0;
}

wire_loop *wire_loop_make(int library, int event, long idle_connections, int lookups) {
    wire_loop *loop = calloc(1, sizeof *loop);
    if (!loop) return NULL;
    if (wire_watch_make(&loop->watch) < 0) {
        free(loop);
        return NULL;
    }
    loop->curl = wire_library_of(library);
    loop->event = event;
    loop->idle_connections = idle_connections;
    loop->lookups = lookups;
    loop->last_ended = &loop->ended;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.u64 = (uint32_t)event};
    if (loop->epoll < 0 || epoll_ctl(loop->epoll, EPOLL_CTL_ADD, event, &wake) < 0) goto failed;
    for (pool *each = loop->pools; each < loop->pools + POOLS; each++) {
        CURLM *multi = loop->curl->curl_multi_init();
        if (!multi) goto failed;
        *each = (pool){.loop = loop, .multi = multi, .timer = -1};
        loop->curl->curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        loop->curl->curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, each);
        loop->curl->curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
        loop->curl->curl_multi_setopt(multi, CURLMOPT_TIMERDATA, each);
        // As many as the server allows; the machine limits the running exchanges.
        loop->curl->curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 10000L);
    }
    return loop;
failed:
    // libcurl ignores a missing pool, and the system a missing descriptor.
    wire_loop_free(loop);
    return NULL;
}

int wire_loop_descriptors(wire_loop *loop) {
    pthread_mutex_lock(&loop->watch.lock);
    int sockets = loop->watch.count;
    pthread_mutex_unlock(&loop->watch.lock);
    // A lookup has two descriptors, and so have two addresses of a host that race.
    return sockets + 2 * loop->starting_count;
}

int wire_loop_lookups(const wire_loop *loop) { return loop->abandoned_count; }

void wire_loop_free(wire_loop *loop) {
    wire_process_enter();
    while (loop->idle_count > 0) {
        wire_transfer *transfer = loop->idle[--loop->idle_count];
        loop->curl->curl_easy_cleanup(transfer->easy);
        free(transfer);
    }
    for (pool *each = loop->pools; each < loop->pools + POOLS; each++) loop->curl->curl_multi_cleanup(each->multi);
    wire_process_leave();
    close(loop->epoll);
    wire_watch_free(&loop->watch);
    wire_connections_free(loop);
    free(loop);
}

/// The number of idle connections that a pool may keep.
static long idle_limit(const pool *own) {
    const wire_loop *loop = own->loop;
    // At least half of them, so that idle connections of one pool do not end all connections of the other.
    long idle = loop->idle_connections, least = (idle + 1) / 2;
    for (const pool *each = loop->pools; each < loop->pools + POOLS; each++)
        if (each != own) idle -= each->idle;
    return idle < least ? least : idle;
}

void wire_pool_limit(pool *own) {
    wire_loop *loop = own->loop;
    // libcurl also counts the connections that are opened or in use, and applies the limit whenever one becomes idle.
    long limit = idle_limit(own) + own->opening + own->used;
    if (limit == own->limit) return;
    own->limit = limit;
    loop->curl->curl_multi_setopt(own->multi, CURLMOPT_MAXCONNECTS, limit);
}

/// Takes libcurl's messages about ended transfers, before further connections become idle.
static void note_ends(pool *own) {
    wire_loop *loop = own->loop;
    int left;
    CURLMsg *message;
    while ((message = loop->curl->curl_multi_info_read(own->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *context = NULL;
        // Removing the handle invalidates the message, so it is read first.
        int code = message->data.result;
        loop->curl->curl_easy_getinfo(message->easy, CURLINFO_PRIVATE, &context);
        if (!context) continue;
        wire_transfer *transfer = (wire_transfer *)context;
        transfer->is_over = 1;
        transfer->code = code;
        wire_transfer_release(transfer);
        transfer->next_ended = NULL;
        *loop->last_ended = transfer;
        loop->last_ended = &transfer->next_ended;
    }
    // libcurl closes at most one connection whenever another becomes idle, by the limit before its step. In one step many may become idle,
    // for example when a timer that all their transfers have finds their responses.
    long limit = idle_limit(own);
    if (own->idle > limit + 1) wire_connections_trim(own, limit);
}

/// Lets libcurl handle a socket or its timers.
static void act(pool *own, int socket, int mask) {
    wire_loop *loop = own->loop;
    int running;
    wire_pool_limit(own);
    wire_watch_begin(&loop->watch);
    loop->curl->curl_multi_socket_action(own->multi, socket, mask, &running);
    wire_watch_end(&loop->watch);
    note_ends(own);
}

void wire_loop_turn(wire_loop *loop, int milliseconds) {
    struct epoll_event events[EVENTS];
    for (pool *each = loop->pools; each < loop->pools + POOLS; each++) {
        if (each->timer < 0) continue;
        int64_t left = each->timer == 0 ? 0 : each->timer - now();
        if (left < 0) left = 0;
        if (milliseconds < 0 || left < milliseconds) milliseconds = (int)left;
    }
    int count = epoll_wait(loop->epoll, events, EVENTS, milliseconds);
    wire_process_enter();
    for (int index = 0; index < count; index++) {
        int socket = (int)(uint32_t)events[index].data.u64;
        if (socket == loop->event) {
            uint64_t value;
            // The next turn reads a value that this turn misses.
            ssize_t got = read(loop->event, &value, sizeof value);
            (void)got;
            continue;
        }
        uint32_t what = events[index].events;
        int mask = (what & EPOLLIN ? CURL_CSELECT_IN : 0) | (what & EPOLLOUT ? CURL_CSELECT_OUT : 0)
            | (what & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        act(&loop->pools[events[index].data.u64 >> 32], socket, mask);
    }
    for (pool *each = loop->pools; each < loop->pools + POOLS; each++) {
        if (each->timer < 0 || (each->timer > 0 && each->timer > now())) continue;
        each->timer = -1;
        act(each, CURL_SOCKET_TIMEOUT, 0);
    }
    wire_process_leave();
}

void *wire_loop_finished(wire_loop *loop, int *code) {
    // Resuming a transfer may have ended it.
    for (pool *each = loop->pools; each < loop->pools + POOLS; each++) note_ends(each);
    while (loop->ended) {
        wire_transfer *transfer = loop->ended;
        loop->ended = transfer->next_ended;
        if (!loop->ended) loop->last_ended = &loop->ended;
        *code = transfer->code;
        if (!transfer->is_abandoned) return transfer->context;
        loop->abandoned_count--;
        wire_transfer_end(transfer);
    }
    return NULL;
}

#endif
