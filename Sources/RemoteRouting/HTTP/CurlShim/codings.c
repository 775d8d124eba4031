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

// The public structures of zstd, unchanged since 1.0.
typedef struct {
    const void *bytes;
    size_t size;
    size_t place;
} zstd_input;
typedef struct {
    void *bytes;
    size_t size;
    size_t place;
} zstd_output;

// ZSTD_d_windowLogMax, and the largest window of the content coding: 8 MiB (RFC 9659).
#define ZSTD_WINDOW 100
#define ZSTD_WINDOW_LOG 23

typedef enum { GZIP, BROTLI, ZSTD, CODINGS } coding;

struct wire_inflater {
    coding coding;
    // Whether the only member of a brotli stream has ended.
    int has_ended;
    z_stream stream;
    // The state of libbrotlidec or libzstd.
    void *state;
};

static int (*init)(z_stream *, int, const char *, int);
static int (*run)(z_stream *, int);
static int (*reset)(z_stream *);
static int (*end)(z_stream *);

static void *(*brotli_make)(void *(*)(void *, size_t), void (*)(void *, void *), void *);
static int (*brotli_run)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
static void (*brotli_free)(void *);

static void *(*zstd_make)(void);
static size_t (*zstd_set)(void *, int, int);
static size_t (*zstd_run)(void *, zstd_output *, zstd_input *);
static unsigned (*zstd_failed)(size_t);
static size_t (*zstd_free)(void *);

static int is_available[CODINGS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_zlib(void) {
    if (inflateInit2_ && inflate && inflateReset && inflateEnd) {
        init = inflateInit2_;
        run = inflate;
        reset = inflateReset;
        end = inflateEnd;
        is_available[GZIP] = 1;
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
    is_available[GZIP] = init && run && reset && end;
}

static void find_brotli(void) {
    void *handle = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    *(void **)&brotli_make = dlsym(handle, "BrotliDecoderCreateInstance");
    *(void **)&brotli_run = dlsym(handle, "BrotliDecoderDecompressStream");
    *(void **)&brotli_free = dlsym(handle, "BrotliDecoderDestroyInstance");
    is_available[BROTLI] = brotli_make && brotli_run && brotli_free;
}

static void find_zstd(void) {
    void *handle = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    *(void **)&zstd_make = dlsym(handle, "ZSTD_createDStream");
    // Since 1.4; without it, the window is not bounded.
    *(void **)&zstd_set = dlsym(handle, "ZSTD_DCtx_setParameter");
    *(void **)&zstd_run = dlsym(handle, "ZSTD_decompressStream");
    *(void **)&zstd_failed = dlsym(handle, "ZSTD_isError");
    *(void **)&zstd_free = dlsym(handle, "ZSTD_freeDStream");
    is_available[ZSTD] = zstd_make && zstd_set && zstd_run && zstd_failed && zstd_free;
}

static void find(void) {
    find_zlib();
    find_brotli();
    find_zstd();
}

static coding named(const char *name) {
    if (strcmp(name, "gzip") == 0) return GZIP;
    if (strcmp(name, "br") == 0) return BROTLI;
    return strcmp(name, "zstd") == 0 ? ZSTD : CODINGS;
}

int wire_inflater_is_available(const char *name) {
    pthread_once(&once, find);
    coding wanted = named(name);
    return wanted != CODINGS && is_available[wanted];
}

static int begin(wire_inflater *inflater) {
    switch (inflater->coding) {
    case GZIP:
        // 31: a 32 KiB window with the header and trailer of gzip.
        return init(&inflater->stream, 31, "1.2.0", (int)sizeof(z_stream)) == 0;
    case BROTLI:
        inflater->state = brotli_make(NULL, NULL, NULL);
        return inflater->state != NULL;
    default:
        inflater->state = zstd_make();
        return inflater->state && !zstd_failed(zstd_set(inflater->state, ZSTD_WINDOW, ZSTD_WINDOW_LOG));
    }
}

wire_inflater *wire_inflater_make(const char *name) {
    if (!wire_inflater_is_available(name)) return NULL;
    wire_inflater *inflater = calloc(1, sizeof *inflater);
    if (!inflater) return NULL;
    inflater->coding = named(name);
    if (begin(inflater)) return inflater;
    if (inflater->state) zstd_free(inflater->state);
    free(inflater);
    return NULL;
}

void wire_inflater_free(wire_inflater *inflater) {
    switch (inflater->coding) {
    case GZIP: end(&inflater->stream); break;
    case BROTLI: brotli_free(inflater->state); break;
    default: zstd_free(inflater->state);
    }
    free(inflater);
}

static int run_gzip(z_stream *stream, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
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

static int run_brotli(wire_inflater *inflater, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    // A stream has one member (RFC 7932).
    if (inflater->has_ended) return -1;
    size_t in_left = *in_count, out_left = *out_count;
    // 0: malformed. 1: the end. 2 and 3: no progress without more input or output space.
    int result = brotli_run(inflater->state, &in_left, &in, &out_left, &out, NULL);
    *in_count -= in_left;
    *out_count -= out_left;
    inflater->has_ended = result == 1;
    return result == 0 ? -1 : inflater->has_ended;
}

static int run_zstd(void *state, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    zstd_input input = {.bytes = in, .size = *in_count};
    zstd_output output = {.bytes = out, .size = *out_count};
    // 0: the end of a frame, completely written.
    size_t result = zstd_run(state, &output, &input);
    *in_count = input.place;
    *out_count = output.place;
    return zstd_failed(result) ? -1 : result == 0;
}

int wire_inflater_run(wire_inflater *inflater, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    switch (inflater->coding) {
    case GZIP: return run_gzip(&inflater->stream, in, in_count, out, out_count);
    case BROTLI: return run_brotli(inflater, in, in_count, out, out_count);
    default: return run_zstd(inflater->state, in, in_count, out, out_count);
    }
}

void wire_inflater_reset(wire_inflater *inflater) {
    // zstd begins the next frame itself.
    if (inflater->coding == GZIP) reset(&inflater->stream);
}

#endif
