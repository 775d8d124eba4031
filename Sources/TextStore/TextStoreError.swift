public import Foundation
internal import RemoteHTTP
public import StoreCore
internal import StoreFiles
internal import StorePlatform

/// An error about a text, a manifest, or the files of a session: the operation that failed, the reason, and the remedy.
///
/// <doc:OfflineAndFallback> explains which text is shown after a failure.
public struct TextStoreError: LocalizedError, Sendable, Equatable, CustomStringConvertible {
    /// The reason for the failure. The set of codes is open, so a `switch` needs a `default`.
    public var code: Code
    /// The identifier of the affected text; `nil` if the error concerns the manifest or the whole session.
    public var identifier: String?
    /// The failed operation, the reason, and the remedy.
    public var message: String
    /// The error that caused this one, if any.
    public var underlyingError: (any Error)?
    /// The delay that the server requests (`Retry-After`, in seconds or as a date); `nil` if it requests none.
    public var retryAfter: Duration?
    /// The status of an unexpected response; `nil` if the status is not the fault.
    public var status: Int?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - identifier: The identifier of the affected text.
    ///   - message: The failed operation, the reason, and the remedy.
    ///   - underlyingError: The error that caused this one.
    ///   - retryAfter: The delay that the server requests.
    public init(
        _ code: Code, identifier: String? = nil, _ message: String, underlyingError: (any Error)? = nil, retryAfter: Duration? = nil
    ) {
        self.code = code
        self.identifier = identifier
        self.message = message
        self.underlyingError = underlyingError
        self.retryAfter = retryAfter
    }

    /// The code, the text, the message, and the underlying error.
    public var description: String {
        var text = "TextStoreError.\(code.rawValue): "
        if let identifier { text += "text “\(identifier.count > 64 ? identifier.prefix(64) + "…" : identifier[...])”: " }
        text += message
        if let cause { text += " (underlying: \(cause))" }
        // Identifiers come from manifests, and the description may be printed to a terminal.
        return text.escapedForDisplay()
    }

    /// The underlying error as text; `nil` if the message states it already.
    private var cause: String? {
        switch underlyingError {
        case nil: return nil
        case let error as TextStoreError: return message.contains(error.message) ? error.cause : "\(error)"
        case let error as TransportFailure: return message.contains(error.message) ? nil : "\(error)"
        case let error as StoreError where error.fileSystemErrno != nil || error.underlyingError == nil || error.isOfOtherVersion:
            // The message of a failed operation of the disk ends with the system's reason, and one about a version names both versions.
            return message.contains(error.message) ? nil : "StoreError.\(error.code.rawValue): \(error.message)"
        case let error?: return "\(error)"
        }
    }

    /// The description, which is also the `localizedDescription`.
    public var errorDescription: String? { description }

    /// Returns whether code, identifier, and message are equal; underlying errors are not compared.
    public static func == (lhs: TextStoreError, rhs: TextStoreError) -> Bool {
        lhs.code == rhs.code && lhs.identifier == rhs.identifier && lhs.message == rhs.message
    }

    func about(_ identifier: String) -> TextStoreError {
        var copy = self
        copy.identifier = identifier
        return copy
    }

    /// Returns the error itself if it is a `TextStoreError`, and a new error around any other.
    static func wrapping(_ error: any Error, _ code: Code, _ message: String) -> TextStoreError {
        if let error = error as? TextStoreError { return error }
        let wish = (error as? any FailureAdvising)?.retryAfter
        return TextStoreError(code, message, underlyingError: error, retryAfter: wish)
    }

    /// The kinds of errors; an open set.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name of the code, as in the error's description: `timedOut`.
        public let rawValue: String

        /// Makes a code from its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The identifier is not registered with the store; register its source before the first read.
        public static let unknownIdentifier = Code(rawValue: "unknownIdentifier")
        /// The identifier, session, directory, or header field cannot be used.
        public static let invalidName = Code(rawValue: "invalidName")
        /// A language is not a tag of BCP 47, or the languages of a text cannot be used together.
        public static let invalidLanguage = Code(rawValue: "invalidLanguage")
        /// The identifier is registered with another source.
        public static let conflictingSource = Code(rawValue: "conflictingSource")
        /// Neither cache nor bundle has the text, and the origin did not deliver it.
        public static let notAvailable = Code(rawValue: "notAvailable")
        /// The bundled file is missing or is not a text.
        public static let unreadableBundleFile = Code(rawValue: "unreadableBundleFile")
        /// The bytes are not a manifest.
        public static let malformedManifest = Code(rawValue: "malformedManifest")
        /// An entry of a manifest cannot be used; the other entries can.
        public static let malformedEntry = Code(rawValue: "malformedEntry")
        /// The manifest's revision is lower than an earlier one.
        public static let outdatedManifest = Code(rawValue: "outdatedManifest")
        /// The response has a status other than 200, or other than 304 to a conditional request.
        public static let unexpectedStatus = Code(rawValue: "unexpectedStatus")
        /// The response has a media type that is not a text's.
        public static let unexpectedMediaType = Code(rawValue: "unexpectedMediaType")
        /// The bytes are not a text: they are not UTF-8, are empty, or contain NUL.
        public static let malformedText = Code(rawValue: "malformedText")
        /// The body is longer than its limit.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// The body is longer or shorter than the manifest or the response head states.
        public static let lengthMismatch = Code(rawValue: "lengthMismatch")
        /// The SHA-256 of the bytes differs from that in the manifest.
        public static let digestMismatch = Code(rawValue: "digestMismatch")
        /// The store's verifier refused the bytes.
        public static let verificationFailed = Code(rawValue: "verificationFailed")
        /// The version is lower than one that was active before.
        public static let belowFloor = Code(rawValue: "belowFloor")
        /// Another text of the same set could not be fetched or used, so the set was not switched.
        public static let incompleteSet = Code(rawValue: "incompleteSet")
        /// The newest manifest no longer lists a fetched set that waits; the set is not activated.
        public static let withdrawn = Code(rawValue: "withdrawn")
        /// The manifest has expired; it replaces no text on the device.
        public static let expiredManifest = Code(rawValue: "expiredManifest")
        /// The manifest's epoch is higher than before, and neither the store's verifier nor its policy accepts it.
        public static let unverifiedEpoch = Code(rawValue: "unverifiedEpoch")
        /// The store sent no request because the last check is recent; `refresh()` checks at once.
        public static let checkedRecently = Code(rawValue: "checkedRecently")
        /// The newest manifest does not list the text as it is shown.
        public static let unconfirmed = Code(rawValue: "unconfirmed")
        /// The version that the newest manifest lists has been fetched, and waits for its activation.
        public static let notActivated = Code(rawValue: "notActivated")
        /// The text did not come from a store, so no user can have seen it there.
        public static let notShown = Code(rawValue: "notShown")
        /// The origin did not respond before the deadline.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The origin could not be reached, or the connection was lost.
        public static let unreachable = Code(rawValue: "unreachable")
        /// A file or directory of the session could not be read or written.
        public static let fileSystem = Code(rawValue: "fileSystem")
        /// A file of the session is damaged and was ignored, or another version of the framework has written it and it stays as it is.
        public static let damagedFile = Code(rawValue: "damagedFile")
    }
}

extension TextStoreError: FailureAdvising {
    /// Transient if the origin may respond better later, fatal for the file system, and otherwise permanent.
    public var failureKind: FailureKind {
        switch code {
        // An address that is none stays one.
        case .unreachable where isInvalidRequest: .permanent
        case .timedOut, .unreachable, .unexpectedStatus, .lengthMismatch: .transient
        case .fileSystem: .fatal
        default: .permanent
        }
    }

    /// Whether a store over this module's fetcher may serve expired content: after 500, 502, 503 and 504, and where no response arrived.
    public var allowsStale: Bool {
        switch code {
        case .unreachable where isInvalidRequest: false
        case .timedOut, .unreachable, .lengthMismatch: true
        case .unexpectedStatus: status.map { [500, 502, 503, 504].contains($0) } ?? false
        default: false
        }
    }

    private var isInvalidRequest: Bool { (underlyingError as? TransportFailure)?.code == .unsupported }
}
