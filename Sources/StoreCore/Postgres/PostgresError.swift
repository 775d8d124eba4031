public import Foundation
public import StoreCore

/// An error of a cacher over PostgreSQL, its connection, or its server.
///
/// The description contains no password: libpq names at most the server and the user.
public struct PostgresError: LocalizedError, FailureAdvising, Sendable, CustomStringConvertible {
    /// The reason for the failure. The set of codes is open, so a `switch` needs a `default`.
    public var code: Code
    /// The operation that failed, the reason, and what to do about it.
    public var message: String
    /// The code of five characters by which PostgreSQL identifies an error, such as `28P01`; `nil` if the server has sent none.
    public var state: String?

    /// The kinds of errors. The set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `timedOut`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The client library libpq cannot be loaded when a database is created; install it with the system's package manager.
        public static let libraryMissing = Code(rawValue: "libraryMissing")
        /// libpq cannot parse the URL with which a database is created.
        public static let invalidURL = Code(rawValue: "invalidURL")
        /// The server cannot be reached, or does not accept connections now.
        public static let unreachable = Code(rawValue: "unreachable")
        /// The server refuses the user, the password, or the database.
        public static let refused = Code(rawValue: "refused")
        /// The server and the URL do not agree on TLS.
        public static let encryption = Code(rawValue: "encryption")
        /// The server has no free connection.
        public static let tooManyConnections = Code(rawValue: "tooManyConnections")
        /// The connection was lost during the operation.
        public static let connectionLost = Code(rawValue: "connectionLost")
        /// The server did not respond in time.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The database or the server is read-only.
        public static let readOnly = Code(rawValue: "readOnly")
        /// The user lacks a right, such as the right to create the tables.
        public static let forbidden = Code(rawValue: "forbidden")
        /// A table of the cacher's name exists and has other columns; use another name for the cache.
        public static let foreignTable = Code(rawValue: "foreignTable")
        /// A newer version of the library has created the table.
        public static let newerTable = Code(rawValue: "newerTable")
        /// A key or record cannot be stored.
        public static let unwritableRecord = Code(rawValue: "unwritableRecord")
        /// The content of a record cannot be decoded; raise the cacher's version when the type of the content changes.
        public static let unreadableRecord = Code(rawValue: "unreadableRecord")
        /// Any other error of the server.
        public static let server = Code(rawValue: "server")
    }

    /// The operation that failed, the reason, and what to do about it.
    public var description: String { "PostgresError.\(code.rawValue): \(message)" }
    /// The same text as `description`, for `localizedDescription`.
    public var errorDescription: String? { description }

    /// Whether the next attempt may succeed.
    public var failureKind: FailureKind {
        switch code {
        case .unreachable, .tooManyConnections, .connectionLost, .timedOut: .transient
        case .server: ["40", "53", "55", "57"].contains { state?.hasPrefix($0) == true } ? .transient : .permanent
        default: .permanent
        }
    }

    init(_ code: Code, _ message: String, state: String? = nil) {
        self.code = code
        self.message = message
        self.state = state
    }
}

extension PostgresError {
    /// Describes a connection that failed by libpq's message, in its verbose form.
    init(connecting text: String) {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        let state = Self.state(in: text)
        switch state {
        case "28000" where text.contains("no encryption") || text.contains("SSL off"):
            self.init(.encryption, "connecting: the server requires TLS; add sslmode=require to the URL (\(text))", state: state)
        case "28000", "28P01", "3D000":
            self.init(.refused, "connecting: the server refuses the user or the database; check the URL (\(text))", state: state)
        case "42501":
            self.init(.forbidden, "connecting: the user may not use the database; grant CONNECT (\(text))", state: state)
        case "53300":
            self.init(
                .tooManyConnections,
                "connecting: the server has no free connection; lower `connections` or raise max_connections (\(text))",
                state: state)
        case nil where text.contains("SSL") || text.contains("certificate"):
            self.init(.encryption, "connecting: TLS failed; check sslmode and sslrootcert in the URL (\(text))")
        case nil where text.contains("no password supplied"):
            self.init(.refused, "connecting: the server requires a password; add it to the URL or to .pgpass (\(text))")
        default:
            self.init(
                .unreachable, "connecting: the server cannot be reached; check host and port, and that it runs (\(text))", state: state)
        }
    }

    init(state: String?, _ text: String) {
        switch state {
        case "25006":
            self.init(.readOnly, "the database is read-only; use the primary server (\(text))", state: state)
        case "42501":
            self.init(.forbidden, "the user lacks a right on the table or its schema; grant it (\(text))", state: state)
        case "54000", "22001":
            self.init(.unwritableRecord, "the record is too large for the server; divide it (\(text))", state: state)
        case let state? where state.hasPrefix("57P") || state.hasPrefix("08"):
            self.init(.connectionLost, "the server has ended the connection; the cacher connects again (\(text))", state: state)
        default:
            self.init(.server, text, state: state)
        }
    }

    /// Finds the SQLSTATE after the severity: `FATAL:  28P01: password authentication failed`.
    private static func state(in text: String) -> String? {
        text.split(whereSeparator: { $0 == " " || $0 == "\n" }).first { word in
            word.utf8.count == 6 && word.last == ":" && word.utf8.dropLast().allSatisfy { (48...57).contains($0) || (65...90).contains($0) }
                && word.utf8.contains { (48...57).contains($0) }
        }.map { String($0.dropLast()) }
    }
}
