#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An error of a store itself; errors of a fetcher reach callers unchanged.
///
/// <doc:Gotchas> explains some of their causes.
public struct StoreError: LocalizedError, Sendable, CustomStringConvertible {
    /// The reason for which the operation failed. The set of codes is open, so a `switch` needs a `default`.
    public var code: Code

    /// The operation that failed and what to do about it.
    public var message: String

    /// The error of the layer below, if that layer failed.
    public var underlyingError: (any Error)?

    /// The invalid content that the cache holds, for `noValidCache`.
    public var staleContent: (any Sendable)?

    /// Whether the line breaks of the message are its own, such as those of a history with escaped lines.
    package var keepsLineBreaks = false

    /// Whether another attempt of the same call may succeed, as far as the thrower knows.
    package var isRepeatable = true

    /// Creates an error with a code and a message.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - message: The operation that failed and what to do about it.
    ///   - underlyingError: The error of the layer below.
    ///   - staleContent: The invalid content that the cache holds.
    public init(_ code: Code, _ message: String, underlyingError: (any Error)? = nil, staleContent: (any Sendable)? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
        self.staleContent = staleContent
    }

    /// The operation that failed, what to do about it, and the underlying error.
    public var description: String {
        var text = "StoreError.\(code.rawValue): \(message)"
        // The message of a failed system call contains everything that its error number says.
        if let underlyingError, code != .fileSystem || !(underlyingError is POSIXError) { text += " (underlying: \(underlyingError))" }
        guard keepsLineBreaks else { return text.escapedForDisplay() }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).escapedForDisplay() }.joined(separator: "\n")
    }

    /// The same text as `description`, for `localizedDescription`.
    public var errorDescription: String? { description }

    /// Whether every further attempt of the same call fails in the same way.
    package static func isFinal(_ error: any Error) -> Bool {
        guard let error = error as? StoreError else { return false }
        return !error.isRepeatable || [.reentrantFetch, .closed, .entityNotCreated].contains(error.code)
    }

    /// The kind of a store error. The set of kinds is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `noValidCache`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Only the cache was allowed, and it has no valid content; `staleContent` carries its invalid content.
        public static let noValidCache = Code(rawValue: "noValidCache")
        /// The operation needs all keys, and the cacher cannot list them.
        public static let cannotEnumerate = Code(rawValue: "cannotEnumerate")
        /// A page was requested in a direction that the fetcher does not have.
        public static let noSuchPage = Code(rawValue: "noSuchPage")
        /// The origin confirmed content that the store does not have.
        public static let nothingToConfirm = Code(rawValue: "nothingToConfirm")
        /// Two pieces of work would wait for each other.
        ///
        /// These are two fetches that need each other's keys, or a call of a cacher and a call of its store from within that call.
        public static let reentrantFetch = Code(rawValue: "reentrantFetch")
        /// An attempt of a fetch has passed the time limit of the store's policy.
        public static let fetchTimedOut = Code(rawValue: "fetchTimedOut")
        /// The key is temporary, and the command that creates its entity has failed or was taken back.
        public static let entityNotCreated = Code(rawValue: "entityNotCreated")
        /// The entity of the key was removed, so that only `refresh()` fetches it again; or an observed list no longer has the element.
        public static let removed = Code(rawValue: "removed")
        /// The store, the outbox, or its scope was closed.
        public static let closed = Code(rawValue: "closed")
        /// The cacher failed in an operation whose caller relies on its success.
        public static let cacherFailed = Code(rawValue: "cacherFailed")
        /// A record on disk could not be read: it is damaged, foreign, or of another schema.
        public static let unreadableRecord = Code(rawValue: "unreadableRecord")
        /// A value could not be encoded so that it can be read again.
        public static let unwritableRecord = Code(rawValue: "unwritableRecord")
        /// A file or directory operation failed.
        public static let fileSystem = Code(rawValue: "fileSystem")
        /// The outbox has as many commands, or as many bytes of them, as its policy allows.
        public static let outboxFull = Code(rawValue: "outboxFull")
        /// The type of a submitted command is not registered with the outbox.
        public static let unregisteredCommand = Code(rawValue: "unregisteredCommand")
    }
}
