// The functions of one libcurl.

#if defined(__linux__)

#include "curl-shim.h"

typedef void CURL;
typedef void CURLM;

struct curl_slist;

typedef struct {
    int msg;
    CURL *easy;
    union {
        void *whatever;
        int result;
    } data;
} CURLMsg;

typedef struct {
    int age;
    const char *version;
    unsigned version_num;
    const char *host;
    int features;
    const char *ssl_version;
    long ssl_version_num;
    const char *libz_version;
    const char *const *protocols;
    const char *ares;
    int ares_num;
    const char *libidn;
    int iconv_ver_num;
    const char *libssh_version;
    unsigned brotli_ver_num;
    const char *brotli_version;
    unsigned nghttp2_ver_num;
    const char *nghttp2_version;
    const char *quic_version;
    // The following members exist if `age` is 6 or more (7.70).
    const char *cainfo;
    const char *capath;
} curl_version_start;

// Each function with its result, name and parameters.
#define WIRE_FUNCTIONS(F)                                                                                                              \
    F(int, curl_global_init, (long))                                                                                                   \
    F(curl_version_start *, curl_version_info, (int))                                                                                  \
    F(CURL *, curl_easy_init, (void))                                                                                                  \
    F(void, curl_easy_cleanup, (CURL *))                                                                                               \
    F(void, curl_easy_reset, (CURL *))                                                                                                 \
    F(int, curl_easy_setopt, (CURL *, int, ...))                                                                                       \
    F(int, curl_easy_getinfo, (CURL *, int, ...))                                                                                      \
    F(int, curl_easy_pause, (CURL *, int))                                                                                             \
    F(CURLM *, curl_multi_init, (void))                                                                                                \
    F(int, curl_multi_cleanup, (CURLM *))                                                                                              \
    F(int, curl_multi_setopt, (CURLM *, int, ...))                                                                                     \
    F(int, curl_multi_add_handle, (CURLM *, CURL *))                                                                                   \
    F(int, curl_multi_remove_handle, (CURLM *, CURL *))                                                                                \
    F(int, curl_multi_socket_action, (CURLM *, int, int, int *))                                                                       \
    F(CURLMsg *, curl_multi_info_read, (CURLM *, int *))                                                                               \
    F(struct curl_slist *, curl_slist_append, (struct curl_slist *, const char *))                                                     \
    F(void, curl_slist_free_all, (struct curl_slist *))

typedef struct {
#define WIRE_MEMBER(result, name, parameters) result(*name) parameters;
    WIRE_FUNCTIONS(WIRE_MEMBER)
#undef WIRE_MEMBER
    unsigned version;
    const char *name;
    int features;
    const char *tls;
    /// A file of certificates; NULL if the build's own exist.
    const char *certificates;
    /// Turns on messages (since 8.3); NULL in older versions.
    int (*trace)(const char *);
    /// The functions of the library's OpenSSL; NULL if it has none, or hides them.
    void *(*certificate_of)(const void *);
    int (*find_extension)(const void *, int, int);
    void (*free_certificate)(void *);
    int is_initialized;
    int initialization;
} wire_library;

/// The library of a number that `wire_library_default` or `wire_library_open` returned.
wire_library *wire_library_of(int number);

/// Applies the TLS requirements of a request; returns a `CURLcode`.
int wire_tls_apply(const wire_library *curl, CURL *easy, const wire_tls *tls);

/// Makes the exit of the process wait until no loop is inside libcurl; see the definition.
void wire_process_enter(void);
void wire_process_leave(void);

#endif
