// The watch of a loop, which ends connections that keep its thread from all others.
//
// libcurl reads from a connection until nothing more has arrived. A peer that sends frames or records without content faster than they are
// read would hold the thread: neither deadlines nor other exchanges would proceed. Another thread shuts such a connection down.

#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/// The interval between two looks, and the processor time of the loop between two looks that count, in nanoseconds.
enum { INTERVAL = 10000000, LOOK = 10000000 };
/// A socket that is read during all of these looks at one step is shut down. A step that downloads at full speed takes less than one.
enum { LOOKS = 4 };
/// The fewest bytes that a look counts; the two system calls of a look are not atomic.
enum { FEWEST_BYTES = 4096 };
/// The place of `tcpi_bytes_received` in the kernel's `tcp_info`, which the C library's own does not have.
enum { BYTES_RECEIVED = 128 };

uint64_t wire_socket_received_bytes(int socket) {
    uint8_t info[256];
    socklen_t size = sizeof info;
    uint64_t received;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, info, &size) < 0 || size < BYTES_RECEIVED + sizeof received) return 0;
    memcpy(&received, info + BYTES_RECEIVED, sizeof received);
    return received;
}

uint64_t wire_socket_read_bytes(int socket) {
    uint64_t received = wire_socket_received_bytes(socket);
    int unread = 0;
    // Bytes that arrive meanwhile make the result too small, never too large.
    if (ioctl(socket, FIONREAD, &unread) < 0 || (uint64_t)unread > received) return 0;
    return received - (uint64_t)unread;
}

static int64_t processor_time(const watch *watch) {
    struct timespec time;
    if (clock_gettime(watch->clock, &time) < 0) return 0;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/// Notes which sockets were read since the last look; shuts one down that was read during many looks.
static void look(watch *watch, int is_first) {
    pthread_mutex_lock(&watch->lock);
    for (open_socket *each = watch->sockets; each < watch->sockets + watch->count; each++) {
        uint64_t read = wire_socket_read_bytes(each->number);
        each->looks = !is_first && read >= each->read + FEWEST_BYTES ? each->looks + 1 : 0;
        each->read = read;
        if (each->looks < LOOKS || each->is_shut) continue;
        each->is_shut = 1;
        shutdown(each->number, SHUT_RDWR);
    }
    pthread_mutex_unlock(&watch->lock);
}

static void *run(void *context) {
    watch *watch = context;
    struct timespec interval = {.tv_nsec = INTERVAL};
    unsigned seen = 0;
    int64_t last = 0;
    wire_thread_prepare();
    while (!atomic_load(&watch->is_over)) {
        unsigned step = atomic_load(&watch->step);
        if (step != seen) {
            seen = step;
            if (step & 1) {
                last = processor_time(watch);
                look(watch, 1);
            }
        } else if (step & 1) {
            int64_t time = processor_time(watch);
            if (time - last >= LOOK) {
                last = time;
                look(watch, 0);
            }
        } else {
            // The loop waits. It wakes this thread with its next step.
            atomic_store(&watch->is_asleep, 1);
            if (atomic_load(&watch->step) == step && !atomic_load(&watch->is_over))
                while (sem_wait(&watch->wake) < 0 && errno == EINTR) {}
            atomic_store(&watch->is_asleep, 0);
        }
        nanosleep(&interval, NULL);
    }
    return NULL;
}

int wire_watch_make(watch *watch) {
    if (sem_init(&watch->wake, 0, 0) < 0) return -1;
    pthread_mutex_init(&watch->lock, NULL);
    return 0;
}

void wire_watch_free(watch *watch) {
    if (watch->is_running) {
        atomic_store(&watch->is_over, 1);
        sem_post(&watch->wake);
        pthread_join(watch->thread, NULL);
    }
    pthread_mutex_destroy(&watch->lock);
    sem_destroy(&watch->wake);
    free(watch->sockets);
}

/// Starts the thread when the loop opens its first connection; without a thread, the loop works unwatched.
static void start(watch *watch) {
    pthread_attr_t attributes;
    if (watch->is_running || pthread_getcpuclockid(pthread_self(), &watch->clock) != 0) return;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setstacksize(&attributes, 131072);
    watch->is_running = pthread_create(&watch->thread, &attributes, run, watch) == 0;
    pthread_attr_destroy(&attributes);
}

void wire_watch_begin(watch *watch) {
    atomic_fetch_add(&watch->step, 1);
    if (atomic_load(&watch->is_asleep) && atomic_exchange(&watch->is_asleep, 0)) sem_post(&watch->wake);
}

void wire_watch_end(watch *watch) { atomic_fetch_add(&watch->step, 1); }

int wire_watch_add(watch *watch, int socket) {
    start(watch);
    pthread_mutex_lock(&watch->lock);
    if (watch->count == watch->capacity) {
        int capacity = watch->capacity * 2 + 16;
        open_socket *larger = realloc(watch->sockets, (size_t)capacity * sizeof *larger);
        if (larger) {
            watch->sockets = larger;
            watch->capacity = capacity;
        }
    }
    int has_room = watch->count < watch->capacity;
    if (has_room) watch->sockets[watch->count++] = (open_socket){.number = socket};
    pthread_mutex_unlock(&watch->lock);
    return has_room ? 0 : -1;
}

/// Returns whether the watch has shut a socket down, and removes the socket if it is closed.
static int find(watch *watch, int socket, int is_closed) {
    int is_shut = 0;
    pthread_mutex_lock(&watch->lock);
    for (open_socket *each = watch->sockets; each < watch->sockets + watch->count; each++) {
        if (each->number != socket) continue;
        is_shut = each->is_shut;
        if (is_closed) *each = watch->sockets[--watch->count];
        break;
    }
    pthread_mutex_unlock(&watch->lock);
    return is_shut;
}

int wire_watch_has_shut(watch *watch, int socket) { return find(watch, socket, 0); }

int wire_watch_remove(watch *watch, int socket) { return find(watch, socket, 1); }

#endif
