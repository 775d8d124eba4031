internal import Foundation
internal import PostgresShim

/// The connections of a process to a PostgreSQL database, for any number of cachers.
///
/// ```swift
/// let database = try PostgresDatabase(
///     url: "postgresql://cache@db.example.com/cache?sslmode=verify-full",
///     connections: 8)
/// let rows = PostgresCacher<User.ID, User>(database, table: "users")
/// let users = Store(
///     cacher: TieredCacher(over: rows), fetcher: UserFetcher(api: api))
/// ```
///
/// The first call of a cacher connects. In addition to the pool, one connection listens to the changes of others and holds the leases.
/// While the server is unavailable, calls fail at once, and the database tries to reconnect with increasing delays of at most 30 seconds.
///
/// One thread serves all connections and sleeps while nothing happens.
public final class PostgresDatabase: Sendable {
    let core: PostgresCore

    /// Loads libpq and checks the URL; does not connect yet.
    ///
    /// - Parameters:
    ///   - url: A URL or a list of parameters as libpq defines them, including those of TLS and authentication.
    ///   - connections: The largest number of connections, without the one that listens; at least one.
    ///   - timeout: The time for the server's response to one call. A server that does not respond in time counts as unavailable. A call
    ///     that waits for another transaction, such as one that was left open, fails after half of that time.
    /// - Throws: ``PostgresError/Code/libraryMissing`` if libpq is not installed; ``PostgresError/Code/invalidURL``.
    public convenience init(url: String, connections: Int = 4, timeout: Duration = .seconds(10)) throws(PostgresError) {
        try self.init(url: url, connections: connections, timeout: timeout, library: nil)
    }

    /// - Parameter library: The path of another libpq.
    init(url: String, connections: Int, timeout: Duration, library: String?) throws(PostgresError) {
        guard pq_open(library) == 1 else { throw .libraryMissing(library) }
        if let message = pq_check(url) {
            defer { pq_free(message) }
            throw PostgresError(
                .invalidURL,
                "parsing the URL of the database: \(String(cString: message).trimmingCharacters(in: .whitespacesAndNewlines)); correct it")
        }
        guard let wake = WakePipe() else {
            throw PostgresError(.unreachable, "no file descriptor is left; close some, or raise the limit")
        }
        core = PostgresCore(url: url, limit: max(1, connections), timeout: timeout, wake: wake)
    }

    deinit { core.stop() }
}

extension PostgresError {
    fileprivate static func libraryMissing(_ path: String?) -> PostgresError {
        #if canImport(Darwin)
        let name = "libpq.5.dylib"
        let remedy = "install it with `brew install libpq`"
        #else
        let name = "libpq.so.5"
        let remedy = "install it with `apt-get install libpq5` or `dnf install libpq`"
        #endif
        return PostgresError(.libraryMissing, "loading PostgreSQL's client library \(path ?? name): it is not installed; \(remedy)")
    }
}
