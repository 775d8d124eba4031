#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// The public structure of zlib, unchanged since 1.0.
typedef struct {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *, unsigned, unsigned);
    void (*zfree)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
} z_stream;

extern int inflateInit2_(z_stream *, int, const char *, int) __attribute__((weak));
extern int inflate(z_stream *, int) __attribute__((weak));
extern int inflateReset(z_stream *) __attribute__((weak));
extern int inflateEnd(z_stream *) __attribute__((weak));

struct wire_inflater {
    z_stream stream;
};

static int (*init)(z_stream *, int, const char *, int);
static int (*run)(z_stream *, int);
static int (*reset)(z_stream *);
static int (*end)(z_stream *);
static int is_available;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void) {
    if (inflateInit2_ && inflate && inflateReset && inflateEnd) {
        init = inflateInit2_;
        run = inflate;
        reset = inflateReset;
        end = inflateEnd;
        is_available = 1;
        return;
    }
    void *symbol = dlsym(RTLD_DEFAULT, "inflateInit2_");
    Dl_info place;
    void *handle = symbol && dladdr(symbol, &place) ? dlopen(place.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    if (!handle) handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    *(void **)&init = dlsym(handle, "inflateInit2_");
    *(void **)&run = dlsym(handle, "inflate");
    *(void **)&reset = dlsym(handle, "inflateReset");
    *(void **)&end = dlsym(handle, "inflateEnd");
    is_available = init && run && reset && end;
}

int wire_inflater_is_available(void) {
    pthread_once(&once, find);
    return is_available;
}

wire_inflater *wire_inflater_make(void) {
    if (!wire_inflater_is_available()) return NULL;
    wire_inflater *inflater = calloc(1, sizeof *inflater);
    // 31: a 32 KiB window with the header and trailer of gzip.
    if (inflater && init(&inflater->stream, 31, "1.2.0", (int)sizeof(z_stream)) != 0) {
        free(inflater);
        return NULL;
    }
    return inflater;
}

void wire_inflater_free(wire_inflater *inflater) {
    end(&inflater->stream);
    free(inflater);
}

int wire_inflater_run(wire_inflater *inflater, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    z_stream *stream = &inflater->stream;
    // zlib takes 32-bit counts; the caller passes the rest again.
    unsigned in_part = *in_count > UINT_MAX ? UINT_MAX : (unsigned)*in_count;
    unsigned out_part = *out_count > UINT_MAX ? UINT_MAX : (unsigned)*out_count;
    stream->next_in = in;
    stream->avail_in = in_part;
    stream->next_out = out;
    stream->avail_out = out_part;
    int result = run(stream, 0);
    *in_count = in_part - stream->avail_in;
    *out_count = out_part - stream->avail_out;
    // 1: end of the member. −5: no progress without more input or output space.
    return result == 1 ? 1 : result == 0 || result == -5 ? 0 : -1;
}

void wire_inflater_reset(wire_inflater *inflater) { reset(&inflater->stream); }

#endif
