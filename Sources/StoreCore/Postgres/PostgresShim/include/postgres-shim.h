// libpq without its headers: found at run time and called through typed functions.
//
// The names, structures and constants are part of libpq's ABI, which has not changed since PostgreSQL 7.4 (`libpq.so.5`). A connection
// belongs to one thread at a time. Call the functions only after `pq_open` has returned 1.

#ifndef STOREHOUSE_POSTGRES_SHIM_H
#define STOREHOUSE_POSTGRES_SHIM_H

#include <stddef.h>

#pragma clang assume_nonnull begin

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;

typedef struct pgNotify {
    char *relname;
    int be_pid;
    char *extra;
    struct pgNotify *_Nullable next;
} PGnotify;

// ConnStatusType, PostgresPollingStatusType, ExecStatusType and PGVerbosity.
enum { PQ_CONNECTION_BAD = 1 };
enum { PQ_POLLING_FAILED = 0, PQ_POLLING_READING = 1, PQ_POLLING_WRITING = 2, PQ_POLLING_OK = 3 };
enum { PQ_EMPTY_QUERY = 0, PQ_COMMAND_OK = 1, PQ_TUPLES_OK = 2 };
enum { PQ_ERRORS_VERBOSE = 2 };
/// The field of a result's error that holds the SQLSTATE.
enum { PQ_DIAG_SQLSTATE = 'C', PQ_DIAG_MESSAGE = 'M' };

/// Finds the libpq that the program links, or loads one. Thread-safe; after the first success, the whole process uses that library.
///
/// `path` names a library to load instead of the system's. Returns 1 on success.
int pq_open(const char *_Nullable path);

/// Checks a URL or a list of parameters; returns NULL if it is well-formed, else a message to release with `pq_free`.
char *_Nullable pq_check(const char *url);
void pq_free(void *_Nullable memory);

/// Begins to connect; poll until `pq_connect_poll` returns `PQ_POLLING_OK` or `PQ_POLLING_FAILED`.
PGconn *_Nullable pq_connect_start(const char *url);
int pq_connect_poll(PGconn *connection);
int pq_status(const PGconn *connection);
int pq_socket(const PGconn *connection);
const char *pq_error(const PGconn *connection);
void pq_finish(PGconn *connection);
/// Makes the connection nonblocking: no call waits for the network.
int pq_set_nonblocking(PGconn *connection);

int pq_send_query(PGconn *connection, const char *query);
int pq_send_prepare(PGconn *connection, const char *name, const char *query);
/// Sends binary parameters and requests binary results.
int pq_send_prepared(
    PGconn *connection, const char *name, int count, const char *_Nullable const *_Nullable values, const int *_Nullable lengths);
/// Returns 0 if everything was sent, 1 if the socket must become writable first, −1 on failure.
int pq_flush(PGconn *connection);
int pq_consume_input(PGconn *connection);
int pq_is_busy(PGconn *connection);
PGresult *_Nullable pq_get_result(PGconn *connection);
/// The next notice; release it with `pq_free`.
PGnotify *_Nullable pq_notifies(PGconn *connection);

int pq_result_status(const PGresult *result);
const char *_Nullable pq_result_error_field(const PGresult *result, int field);
const char *pq_result_error(const PGresult *result);
int pq_row_count(const PGresult *result);
int pq_column_count(const PGresult *result);
/// The bytes of a field; NULL for a null field.
const char *_Nullable pq_value(const PGresult *result, int row, int column, int *length);
void pq_clear(PGresult *result);

#pragma clang assume_nonnull end

#endif
