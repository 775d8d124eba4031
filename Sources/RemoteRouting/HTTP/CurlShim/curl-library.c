#if defined(__linux__)

#define _GNU_SOURCE
#include "curl-library.h"
#include "curl-options.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Weak: NULL unless the program links libcurl itself, as a statically linked program must.
#define WIRE_WEAK(result, name, parameters) extern result name parameters __attribute__((weak));
WIRE_FUNCTIONS(WIRE_WEAK)
WIRE_WEAK(int, curl_global_trace, (const char *))
#undef WIRE_WEAK

enum { WIRE_LIBRARIES = 8 };

static wire_library libraries[WIRE_LIBRARIES];
static int library_count;
static int default_library = -1;
/// Guards the list. An entry is complete before its number is returned; later only its initialization changes.
static pthread_mutex_t libraries_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_prepared_for_fork;
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

wire_library *wire_library_of(int number) { return &libraries[number]; }

/// Finds OpenSSL's functions among the library's dependencies.
static void find_openssl(wire_library *library, void *handle) {
    // The first name is that of OpenSSL 3, the second that of 1.1.
    void *certificate_of = dlsym(handle, "SSL_get1_peer_certificate");
    if (!certificate_of) certificate_of = dlsym(handle, "SSL_get_peer_certificate");
    *(void **)&library->certificate_of = certificate_of;
    *(void **)&library->find_extension = dlsym(handle, "X509_get_ext_by_NID");
    *(void **)&library->free_certificate = dlsym(handle, "X509_free");
}

/// Takes all functions from one handle, because a process may contain two libcurls with different structures.
static int fill(wire_library *library, void *handle) {
#define WIRE_LOOK(result, name, parameters)                                                                                            \
    *(void **)&library->name = dlsym(handle, #name);                                                                                   \
    if (!library->name) return 0;
    WIRE_FUNCTIONS(WIRE_LOOK)
#undef WIRE_LOOK
    *(void **)&library->trace = dlsym(handle, "curl_global_trace");
    find_openssl(library, handle);
    return 1;
}

static int fill_from_linked(wire_library *library) {
#define WIRE_COPY(result, name, parameters)                                                                                            \
    if (!name) return 0;                                                                                                               \
    library->name = name;
    WIRE_FUNCTIONS(WIRE_COPY)
#undef WIRE_COPY
    library->trace = curl_global_trace;
    return 1;
}

/// The system's certificates, which replace a missing file of the build, as in a Python wheel or a static build; NULL without any.
static const char *system_certificates(void) {
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem", NULL,
    };
    const char *const *file = files;
    while (*file && access(*file, F_OK) != 0) file++;
    return *file;
}

static int keep(wire_library found) {
    // The same library keeps its number and its initialization.
    for (int number = 0; number < library_count; number++)
        if (libraries[number].curl_easy_init == found.curl_easy_init) return number;
    if (library_count == WIRE_LIBRARIES) return -1;
    // The argument is the version that the caller knows; `age` is the version that the library fills in.
    curl_version_start *version = found.curl_version_info(CURLVERSION_FOURTH);
    if (!version) return -1;
    found.version = version->version_num;
    found.name = version->version;
    found.features = version->features;
    found.tls = version->ssl_version;
    if (version->age >= CURLVERSION_SEVENTH) found.certificates = version->cainfo ? version->cainfo : version->capath;
    found.certificates = found.certificates && access(found.certificates, F_OK) == 0 ? NULL : system_certificates();
    libraries[library_count] = found;
    return library_count++;
}

static void find_default(void) {
    wire_library found;
    memset(&found, 0, sizeof found);
    int is_found = 0;
    void *symbol = curl_multi_socket_action ? (void *)curl_multi_socket_action : dlsym(RTLD_DEFAULT, "curl_multi_socket_action");
    Dl_info place;
    if (symbol && dladdr(symbol, &place) && place.dli_fname) {
        void *handle = dlopen(place.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        is_found = handle && fill(&found, handle);
    }
    if (!is_found) is_found = fill_from_linked(&found);
    if (!is_found) {
        void *handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
        is_found = handle && fill(&found, handle);
    }
    if (!is_found) return;
    pthread_mutex_lock(&libraries_lock);
    default_library = keep(found);
    pthread_mutex_unlock(&libraries_lock);
}

int wire_library_default(void) {
    pthread_once(&default_once, find_default);
    return default_library;
}

int wire_library_open(const char *path) {
    wire_library found;
    memset(&found, 0, sizeof found);
    int mode = RTLD_NOW | RTLD_LOCAL;
#if defined(RTLD_DEEPBIND) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
    // Otherwise the library's calls to its own functions would reach the libcurl of the process. Sanitizers do not allow this mode.
    mode |= RTLD_DEEPBIND;
#endif
    void *handle = dlopen(path, mode);
    if (!handle || !fill(&found, handle)) return -1;
    pthread_mutex_lock(&libraries_lock);
    int number = keep(found);
    pthread_mutex_unlock(&libraries_lock);
    return number;
}

unsigned wire_library_version(int library) { return libraries[library].version; }
const char *wire_library_name(int library) { return libraries[library].name; }
const char *wire_library_tls(int library) { return libraries[library].tls; }
int wire_library_has_threads(int library) { return (libraries[library].features & CURL_VERSION_ASYNCHDNS) != 0; }
int wire_library_has_http2(int library) { return (libraries[library].features & CURL_VERSION_HTTP2) != 0; }
int wire_library_is_thread_safe(int library) { return (libraries[library].features & CURL_VERSION_THREADSAFE) != 0; }

// MARK: The process's end

// `exit` frees OpenSSL's state while threads still run. This handler is registered after OpenSSL's and therefore runs before it. It waits
// until every loop is between two turns and holds all loops there.
static pthread_rwlock_t process_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_int is_ending;

void wire_process_enter(void) {
    pthread_rwlock_rdlock(&process_lock);
    if (!atomic_load(&is_ending)) return;
    pthread_rwlock_unlock(&process_lock);
    // Otherwise many short-lived loops could starve the writer.
    for (;;) pause();
}

void wire_process_leave(void) { pthread_rwlock_unlock(&process_lock); }

static void hold_loops(void) {
    // Registered once per library; the first call holds all loops.
    if (atomic_exchange(&is_ending, 1)) return;
    // A loop that calls `exit` itself, or that its caller blocks, must not delay the process by more than a second. Counts steps, because
    // timed locks use the wall clock, which may jump.
    struct timespec millisecond = {.tv_nsec = 1000000};
    for (int step = 0; step < 1000 && pthread_rwlock_trywrlock(&process_lock) != 0; step++) nanosleep(&millisecond, NULL);
}

/// Resets the locks, because a forked process has none of the threads that may have held them.
static void forget_loops(void) {
    pthread_rwlock_t open = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutex_t free = PTHREAD_MUTEX_INITIALIZER;
    process_lock = open;
    libraries_lock = free;
}

int wire_library_initialize(int number) {
    wire_library *library = &libraries[number];
    pthread_mutex_lock(&libraries_lock);
    if (!library->is_initialized) {
        // No cleanup, because other code in the process may use the library.
        library->initialization = library->curl_global_init(CURL_GLOBAL_DEFAULT);
        library->is_initialized = 1;
        // For all handles of the process, but only those with CURLOPT_VERBOSE receive messages.
        if (library->trace) library->trace("http/2");
        atexit(hold_loops);
        if (!is_prepared_for_fork) is_prepared_for_fork = pthread_atfork(NULL, NULL, forget_loops) == 0;
    }
    int result = library->initialization;
    pthread_mutex_unlock(&libraries_lock);
    return result;
}

#endif
