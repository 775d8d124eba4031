#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore

/// An error of a decorated or batched fetch that reached no origin, or received no content for its key.
///
/// The error passes on the advice of the underlying error, so a store retries and serves stale content as it would after that error. Only
/// the delay is different: ``retryAfter`` is the time until a fetch reaches the origin again.
///
/// <doc:OnAServer> shows how to turn such an error into a response.
public struct FetchError: FailureAdvising, LocalizedError, CustomStringConvertible {
    /// The reason for which the fetch reached no origin or received no content.
    public var code: Code

    /// The operation that failed and what to do about it.
    public var message: String

    /// The error of the fetch that caused this error; `nil` if no fetch did.
    public var underlyingError: (any Error)?

    /// The time until a fetch of the key reaches the origin again; `nil` if it is not known.
    public var retryAfter: Duration?

    /// The kind of the underlying failure; transient if that error gives no advice, and permanent for a missing key.
    ///
    /// The refusal of a breaker ends with its hold time, so it is never permanent.
    public var failureKind: FailureKind {
        let kind = code == .missingKey ? .permanent : advice?.failureKind ?? .transient
        return code == .circuitOpen && kind == .permanent ? .transient : kind
    }

    /// The attempts behind the underlying error; 1 if that error gives no advice.
    public var attempts: Int { advice?.attempts ?? 1 }

    /// Whether the underlying error allows stale content; a missing key does not.
    public var allowsStale: Bool { code == .missingKey ? false : advice?.allowsStale ?? true }

    /// Whether a failure memory or a circuit breaker has refused the fetch.
    public var isRefusal: Bool { code == .failedRecently || code == .circuitOpen }

    private var advice: (any FailureAdvising)? { underlyingError as? any FailureAdvising }

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - message: The operation that failed and what to do about it.
    ///   - underlyingError: The error of the fetch that caused this error.
    ///   - retryAfter: The time until a fetch of the key reaches the origin again.
    public init(_ code: Code, _ message: String, underlyingError: (any Error)? = nil, retryAfter: Duration? = nil) {
        self.code = code
        self.message = message
        self.underlyingError = underlyingError
        self.retryAfter = retryAfter
    }

    /// The operation that failed, what to do about it, and the underlying error.
    public var description: String {
        var text = "FetchError.\(code.rawValue): \(message)"
        if let underlyingError { text += " (underlying: \(underlyingError))" }
        return text.escapedForDisplay()
    }

    /// The same text as `description`, for `localizedDescription`.
    public var errorDescription: String? { description }

    /// The kinds of errors. The set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `circuitOpen`.
        public let rawValue: String

        /// Creates a code with a name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The last fetch of this key has just failed.
        ///
        /// See ``Origin/rememberingFailures(for:limit:time:)``.
        public static let failedRecently = Code(rawValue: "failedRecently")
        /// The circuit breaker of the origin is open.
        ///
        /// See ``CircuitBreaker``.
        public static let circuitOpen = Code(rawValue: "circuitOpen")
        /// The response to a batch has no content for this key.
        ///
        /// See ``BatchFetcher``.
        public static let missingKey = Code(rawValue: "missingKey")
    }
}

extension String {
    /// Returns the text with an escape, such as `\u{202E}`, for each character that would act on a terminal or reorder its surroundings.
    ///
    /// Escapes control characters (C0, DEL and C1), the separators of lines and paragraphs, and the marks, embeddings, overrides and
    /// isolates of bidirectional text (Unicode Standard Annex 9, "Explicit Directional Embedding and Override").
    fileprivate func escapedForDisplay() -> String {
        unicodeScalars.reduce(into: "") { text, scalar in
            switch scalar.value {
            case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E, 0x200F, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069:
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default:
                text.unicodeScalars.append(scalar)
            }
        }
    }
}
