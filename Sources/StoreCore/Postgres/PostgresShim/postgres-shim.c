#define _GNU_SOURCE
#include "postgres-shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Each function with its result, name and parameters.
#define PQ_FUNCTIONS(F)                                                                                                                \
    F(void *, PQconninfoParse, (const char *, char **))                                                                                \
    F(void, PQconninfoFree, (void *))                                                                                                  \
    F(PGconn *, PQconnectStartParams, (const char *const *, const char *const *, int))                                                 \
    F(int, PQconnectPoll, (PGconn *))                                                                                                  \
    F(int, PQstatus, (const PGconn *))                                                                                                 \
    F(int, PQsocket, (const PGconn *))                                                                                                 \
    F(char *, PQerrorMessage, (const PGconn *))                                                                                        \
    F(void, PQfinish, (PGconn *))                                                                                                      \
    F(int, PQsetErrorVerbosity, (PGconn *, int))                                                                                       \
    F(void *, PQsetNoticeReceiver, (PGconn *, void (*)(void *, const PGresult *), void *))                                             \
    F(int, PQsetnonblocking, (PGconn *, int))                                                                                          \
    F(int, PQsendQuery, (PGconn *, const char *))                                                                                      \
    F(int, PQsendPrepare, (PGconn *, const char *, const char *, int, const unsigned *))                                               \
    F(int, PQsendQueryPrepared, (PGconn *, const char *, int, const char *const *, const int *, const int *, int))                     \
    F(int, PQflush, (PGconn *))                                                                                                        \
    F(int, PQconsumeInput, (PGconn *))                                                                                                 \
    F(int, PQisBusy, (PGconn *))                                                                                                       \
    F(PGresult *, PQgetResult, (PGconn *))                                                                                             \
    F(PGnotify *, PQnotifies, (PGconn *))                                                                                              \
    F(void, PQfreemem, (void *))                                                                                                       \
    F(int, PQresultStatus, (const PGresult *))                                                                                         \
    F(char *, PQresultErrorField, (const PGresult *, int))                                                                             \
    F(char *, PQresultErrorMessage, (const PGresult *))                                                                                \
    F(int, PQntuples, (const PGresult *))                                                                                              \
    F(int, PQnfields, (const PGresult *))                                                                                              \
    F(int, PQgetisnull, (const PGresult *, int, int))                                                                                  \
    F(int, PQgetlength, (const PGresult *, int, int))                                                                                  \
    F(char *, PQgetvalue, (const PGresult *, int, int))                                                                                \
    F(void, PQclear, (PGresult *))

typedef struct {
#define PQ_MEMBER(result, name, parameters) result(*name) parameters;
    PQ_FUNCTIONS(PQ_MEMBER)
#undef PQ_MEMBER
} pq_library;

static pq_library pq;
static int is_open;
/// Guards the search; the functions do not change after it has succeeded.
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/// Takes all functions from one handle, because a process may contain two copies of libpq.
static int fill(void *handle) {
    pq_library found;
#define PQ_LOOK(result, name, parameters)                                                                                              \
    *(void **)&found.name = dlsym(handle, #name);                                                                                      \
    if (!found.name) return 0;
    PQ_FUNCTIONS(PQ_LOOK)
#undef PQ_LOOK
    pq = found;
    return 1;
}

static int load(const char *path) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return handle && fill(handle);
}

int pq_open(const char *path) {
    pthread_mutex_lock(&open_lock);
    if (path) {
        // A named library does not replace the one in use.
        if (!is_open) is_open = load(path);
        else if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
            pthread_mutex_unlock(&open_lock);
            return 0;
        }
    } else if (!is_open) {
#if defined(__APPLE__)
        static const char *const paths[] = {
            "libpq.5.dylib",
            "/opt/homebrew/opt/libpq/lib/libpq.5.dylib",
            "/usr/local/opt/libpq/lib/libpq.5.dylib",
            "/Applications/Postgres.app/Contents/Versions/latest/lib/libpq.5.dylib",
        };
#else
        static const char *const paths[] = {"libpq.so.5"};
#endif
        is_open = dlsym(RTLD_DEFAULT, "PQconnectStartParams") != NULL && fill(RTLD_DEFAULT);
        for (size_t number = 0; !is_open && number < sizeof paths / sizeof *paths; number++) is_open = load(paths[number]);
    }
    int result = is_open;
    pthread_mutex_unlock(&open_lock);
    return result;
}

char *pq_check(const char *url) {
    char *message = NULL;
    void *options = pq.PQconninfoParse(url, &message);
    if (options) {
        pq.PQconninfoFree(options);
        return NULL;
    }
    return message;
}

void pq_free(void *memory) {
    if (memory) pq.PQfreemem(memory);
}

/// Drops notices, which libpq prints to standard error by default.
static void ignore(void *context, const PGresult *result) {
    (void)context;
    (void)result;
}

PGconn *pq_connect_start(const char *url) {
    // The parameters of the URL replace those before it. A connection to a machine that has vanished fails after about a minute.
    const char *keys[] = {
        "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "fallback_application_name", "dbname",
        "client_encoding", NULL,
    };
    const char *values[] = {"30", "10", "3", "60000", "storehouse", url, "UTF8", NULL};
    PGconn *connection = pq.PQconnectStartParams(keys, values, 1);
    if (!connection) return NULL;
    // The message of a refused connection then contains the SQLSTATE.
    pq.PQsetErrorVerbosity(connection, PQ_ERRORS_VERBOSE);
    pq.PQsetNoticeReceiver(connection, ignore, NULL);
    return connection;
}

int pq_connect_poll(PGconn *connection) { return pq.PQconnectPoll(connection); }
int pq_status(const PGconn *connection) { return pq.PQstatus(connection); }
int pq_socket(const PGconn *connection) { return pq.PQsocket(connection); }
const char *pq_error(const PGconn *connection) { return pq.PQerrorMessage(connection); }
void pq_finish(PGconn *connection) { pq.PQfinish(connection); }
int pq_set_nonblocking(PGconn *connection) { return pq.PQsetnonblocking(connection, 1); }
int pq_send_query(PGconn *connection, const char *query) { return pq.PQsendQuery(connection, query); }

int pq_send_prepare(PGconn *connection, const char *name, const char *query) {
    return pq.PQsendPrepare(connection, name, query, 0, NULL);
}

int pq_send_prepared(PGconn *connection, const char *name, int count, const char *const *values, const int *lengths) {
    enum { MOST = 16 };
    static const int formats[MOST] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    if (count > MOST) return 0;
    return pq.PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1);
}

int pq_flush(PGconn *connection) { return pq.PQflush(connection); }
int pq_consume_input(PGconn *connection) { return pq.PQconsumeInput(connection); }
int pq_is_busy(PGconn *connection) { return pq.PQisBusy(connection); }
PGresult *pq_get_result(PGconn *connection) { return pq.PQgetResult(connection); }
PGnotify *pq_notifies(PGconn *connection) { return pq.PQnotifies(connection); }
int pq_result_status(const PGresult *result) { return pq.PQresultStatus(result); }
const char *pq_result_error_field(const PGresult *result, int field) { return pq.PQresultErrorField(result, field); }
const char *pq_result_error(const PGresult *result) { return pq.PQresultErrorMessage(result); }
int pq_row_count(const PGresult *result) { return pq.PQntuples(result); }
int pq_column_count(const PGresult *result) { return pq.PQnfields(result); }

const char *pq_value(const PGresult *result, int row, int column, int *length) {
    *length = pq.PQgetlength(result, row, column);
    return pq.PQgetisnull(result, row, column) ? NULL : pq.PQgetvalue(result, row, column);
}

void pq_clear(PGresult *result) { pq.PQclear(result); }
