public import Foundation

/// An error of a store itself; what a fetcher throws reaches the caller as it was thrown.
public struct StoreError: LocalizedError, Sendable, CustomStringConvertible {
    /// What kind of error this is.
    public var code: Code

    /// The operation that failed and what to do about it.
    public var message: String

    /// What the error comes from, where something below failed.
    public var underlyingError: (any Error)?

    /// The content that was there but not valid, for `noValidCache`.
    public var staleContent: (any Sendable)?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: What kind of error this is.
    ///   - message: The operation that failed and what to do about it.
    ///   - underlyingError: What it comes from.
    ///   - staleContent: The content that was there but not valid.
    public init(_ code: Code, _ message: String, underlyingError: (any Error)? = nil, staleContent: (any Sendable)? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
        self.staleContent = staleContent
    }

    /// The operation that failed, what to do about it, and what it comes from.
    public var description: String {
        var text = "StoreError.\(code.rawValue): \(message)"
        if let underlyingError { text += " (underlying: \(underlyingError))" }
        return text.escapedForDisplay()
    }

    /// The description, also as `localizedDescription`.
    public var errorDescription: String? { description }

    /// The kinds of errors; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// Only the cache was asked and it has no valid content; `staleContent` carries what is there.
        public static let noValidCache = Code(rawValue: "noValidCache")
        /// All keys were asked for and the cacher cannot list them.
        public static let cannotEnumerate = Code(rawValue: "cannotEnumerate")
        /// A page was asked for in a direction that the fetcher does not have.
        public static let noSuchPage = Code(rawValue: "noSuchPage")
        /// The origin confirmed content that the store does not have.
        public static let nothingToConfirm = Code(rawValue: "nothingToConfirm")
        /// A fetcher waits for a key whose own fetch waits for that fetcher, so that neither could ever end.
        public static let reentrantFetch = Code(rawValue: "reentrantFetch")
        /// The cacher failed in an operation whose success its caller must be able to rely on.
        public static let cacherFailed = Code(rawValue: "cacherFailed")
        /// A record on disk could not be read: damaged, foreign, or of another schema.
        public static let unreadableRecord = Code(rawValue: "unreadableRecord")
        /// A value could not be written in a form that can be read again.
        public static let unwritableRecord = Code(rawValue: "unwritableRecord")
        /// A file or directory operation failed.
        public static let fileSystem = Code(rawValue: "fileSystem")
    }
}
