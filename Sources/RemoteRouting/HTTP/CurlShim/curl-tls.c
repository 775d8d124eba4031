// The TLS requirements of a request.

#if defined(__linux__)

#include "curl-library.h"
#include "curl-options.h"

#include <string.h>

struct curl_blob {
    void *data;
    size_t len;
    unsigned flags;
};

static int set_blob(const wire_library *curl, CURL *easy, int option, const wire_bytes *bytes) {
    struct curl_blob blob = {.data = (void *)bytes->start, .len = bytes->count, .flags = CURL_BLOB_COPY};
    return curl->curl_easy_setopt(easy, option, &blob);
}

/// libcurl's description of the TLS state of a connection.
typedef struct {
    int backend;
    void *state;
} curl_tls_session;

/// `CURLSSLBACKEND_OPENSSL`, and the number of the extension for alternative names in OpenSSL.
enum { OPENSSL = 1, ALTERNATIVE_NAMES = 85 };

int wire_tls_lacks_names(const wire_library *curl, CURL *easy) {
    curl_tls_session *session = NULL;
    if (!curl->certificate_of || !curl->find_extension || !curl->free_certificate) return 0;
    if (curl->curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) || !session || session->backend != OPENSSL || !session->state) return 0;
    void *certificate = curl->certificate_of(session->state);
    if (!certificate) return 0;
    int place = curl->find_extension(certificate, ALTERNATIVE_NAMES, -1);
    curl->free_certificate(certificate);
    return place < 0;
}

int wire_tls_apply(const wire_library *curl, CURL *easy, const wire_tls *tls) {
    int code = CURLE_OK;
    if (tls->authorities.count) {
        // Clears the directory that libcurl's build may name, because its authorities would be trusted as well.
        if (!code) code = curl->curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        if (!code) code = set_blob(curl, easy, CURLOPT_CAINFO_BLOB, &tls->authorities);
    }
    if (!code && tls->pins) code = curl->curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, tls->pins);
    if (tls->certificate.count) {
        if (!code) code = set_blob(curl, easy, CURLOPT_SSLCERT_BLOB, &tls->certificate);
        if (!code) code = set_blob(curl, easy, CURLOPT_SSLKEY_BLOB, &tls->key);
        // Set even without a password, because OpenSSL would otherwise prompt on the terminal.
        if (!code) code = curl->curl_easy_setopt(easy, CURLOPT_KEYPASSWD, tls->password);
    }
    if (!code && tls->needs_tls13) code = curl->curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
    if (!code && tls->is_alone) {
        code = curl->curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        if (!code) code = curl->curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
        if (!code) code = curl->curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    }
    return code;
}

#endif
