public import Foundation
public import StoreCore

/// What went wrong with a text, a manifest, or the files of a session; it says which text, why, and what to do.
public struct TextStoreError: LocalizedError, Sendable, Equatable, CustomStringConvertible {
    /// What kind of error this is.
    public var code: Code
    /// The text it is about; `nil` where it is about the manifest or the whole session.
    public var identifier: String?
    /// The operation that failed and what to do about it.
    public var message: String
    /// What the error comes from, where something below failed.
    public var underlyingError: (any Error)?
    /// How long the server asks clients to stay away (`Retry-After`, in seconds or as a date); `nil` if it does not.
    public var retryAfter: Duration?
    /// The status of an unexpected response; `nil` if the status is not the fault.
    public var status: Int?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - code: What kind of error this is.
    ///   - identifier: The text it is about.
    ///   - message: The operation that failed and what to do about it.
    ///   - underlyingError: What it comes from.
    ///   - retryAfter: How long the server asks clients to stay away.
    public init(
        _ code: Code, identifier: String? = nil, _ message: String, underlyingError: (any Error)? = nil, retryAfter: Duration? = nil
    ) {
        self.code = code
        self.identifier = identifier
        self.message = message
        self.underlyingError = underlyingError
        self.retryAfter = retryAfter
    }

    /// The text, the operation that failed, what to do about it, and what it comes from.
    public var description: String {
        var text = "TextStoreError.\(code.rawValue): "
        if let identifier { text += "text “\(identifier.count > 64 ? identifier.prefix(64) + "…" : identifier[...])”: " }
        text += message
        if let underlyingError { text += " (underlying: \(underlyingError))" }
        // Identifiers come from manifests, and the text may go to a terminal.
        return text.escapedForDisplay()
    }

    /// The description, also as `localizedDescription`.
    public var errorDescription: String? { description }

    /// Whether both say the same; what they come from plays no part.
    public static func == (lhs: TextStoreError, rhs: TextStoreError) -> Bool {
        lhs.code == rhs.code && lhs.identifier == rhs.identifier && lhs.message == rhs.message
    }

    /// The same error about a text.
    func about(_ identifier: String) -> TextStoreError {
        var copy = self
        copy.identifier = identifier
        return copy
    }

    /// An error as it is, or a foreign one in this form.
    static func wrapping(_ error: any Error, _ code: Code, _ message: String) -> TextStoreError {
        if let error = error as? TextStoreError { return error }
        let wish = (error as? any FailureAdvising)?.retryAfter
        return TextStoreError(code, message, underlyingError: error, retryAfter: wish)
    }

    /// The kinds of errors; the set is open.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The code's name.
        public let rawValue: String

        /// Makes a code of that name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// No text of that identifier was registered.
        public static let unknownIdentifier = Code(rawValue: "unknownIdentifier")
        /// An identifier, session, directory or header field that cannot be used.
        public static let invalidName = Code(rawValue: "invalidName")
        /// The identifier is registered with another source.
        public static let conflictingSource = Code(rawValue: "conflictingSource")
        /// Neither cache nor bundle has the text, and the origin did not give it.
        public static let notAvailable = Code(rawValue: "notAvailable")
        /// The bundle has no such file, or one that is no text.
        public static let unreadableBundleFile = Code(rawValue: "unreadableBundleFile")
        /// The manifest is no manifest.
        public static let malformedManifest = Code(rawValue: "malformedManifest")
        /// One entry of a manifest cannot be used; the others can.
        public static let malformedEntry = Code(rawValue: "malformedEntry")
        /// The manifest's revision is lower than one seen before.
        public static let outdatedManifest = Code(rawValue: "outdatedManifest")
        /// The origin answered with something else than 200, or 304 to a conditional request.
        public static let unexpectedStatus = Code(rawValue: "unexpectedStatus")
        /// The answer is not of a text's media type.
        public static let unexpectedMediaType = Code(rawValue: "unexpectedMediaType")
        /// The bytes are no text: not UTF-8, empty, or with NUL.
        public static let malformedText = Code(rawValue: "malformedText")
        /// There are more bytes than allowed.
        public static let tooLarge = Code(rawValue: "tooLarge")
        /// There are more or fewer bytes than the manifest or the answer's head said.
        public static let lengthMismatch = Code(rawValue: "lengthMismatch")
        /// The bytes have another SHA-256 than the manifest says.
        public static let digestMismatch = Code(rawValue: "digestMismatch")
        /// The store's own verification refused the bytes.
        public static let verificationFailed = Code(rawValue: "verificationFailed")
        /// The version is lower than one that was active before.
        public static let belowFloor = Code(rawValue: "belowFloor")
        /// Another text of the same set could not be had, so the set was not switched.
        public static let incompleteSet = Code(rawValue: "incompleteSet")
        /// The newest manifest no longer lists a set that was fetched and waited; the set is not activated.
        public static let withdrawn = Code(rawValue: "withdrawn")
        /// The manifest has passed its own expiry; it replaces no text that the device has.
        public static let expiredManifest = Code(rawValue: "expiredManifest")
        /// The manifest's epoch is higher than before, and neither the store's verification nor its policy lets the epoch count.
        public static let unverifiedEpoch = Code(rawValue: "unverifiedEpoch")
        /// The store sent no request, because the last check is recent; `refresh()` asks at once.
        public static let checkedRecently = Code(rawValue: "checkedRecently")
        /// The origin did not answer before the deadline.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The origin could not be reached, or the connection was lost.
        public static let unreachable = Code(rawValue: "unreachable")
        /// A file or directory of the session could not be read or written.
        public static let fileSystem = Code(rawValue: "fileSystem")
        /// A file of the session was damaged and is not used.
        public static let damagedFile = Code(rawValue: "damagedFile")
    }
}

extension TextStoreError: FailureAdvising {
    /// Transient where the origin may answer better later, else permanent until something changes.
    public var failureKind: FailureKind {
        switch code {
        case .timedOut, .unreachable, .unexpectedStatus, .lengthMismatch: .transient
        case .fileSystem: .fatal
        default: .permanent
        }
    }

    /// Whether a store over this module's fetcher may serve expired content: after 500, 502, 503 and 504, and where no response arrived.
    public var allowsStale: Bool {
        switch code {
        case .timedOut, .unreachable, .lengthMismatch: true
        case .unexpectedStatus: status.map { [500, 502, 503, 504].contains($0) } ?? false
        default: false
        }
    }
}
