public import Foundation
import StoreCore

/// A text, its version, and its provenance.
///
/// Identifier, text and version are constant, so that ``digest`` and an acceptance are always those of the shown text.
public struct VersionedText: Hashable, Sendable {
    /// The identifier of the text.
    public let identifier: String
    /// The text itself.
    public let text: String
    /// The version; `nil` for an unversioned text, which is older than every version and not 0.0.0.
    public let version: SemanticVersion?
    /// The source of the text.
    public let origin: Origin
    /// Since when something newer is known to exist that is not here, or what is known of versions has expired; `nil` where it is current.
    public var staleSince: Date?
    /// Whether a digest or a signature has shown that the bytes are those of the version; what came with the app is verified.
    public var isVerified: Bool
    /// Whether a newer version was active once that is not here any more.
    public var isBelowFloor: Bool
    /// Why this may not be the text of the origin, if the caller waited for that; `nil` if the origin confirmed the text.
    ///
    /// ``TextStoreError/Code/checkedRecently`` if the store sent no request because the last check is recent.
    public var fallbackReason: TextStoreError? {
        get { fallback?.reason }
        set { fallback = newValue.map(Fallback.init) }
    }
    /// Out of line, for it is seldom there, and texts are copied at each read.
    private var fallback: Fallback?
    /// The digest where it is known already.
    var knownDigest: SHA256.Digest?

    private final class Fallback: Sendable {
        let reason: TextStoreError

        init(_ reason: TextStoreError) { self.reason = reason }
    }

    /// Where a text was taken from.
    public enum Origin: String, Hashable, Sendable {
        /// The app's bundle.
        case bundle
        /// A file of the session, saved by an earlier start of the app.
        case cache
        /// The origin, in this start of the app.
        case remote
    }

    /// Makes a text, for tests and previews.
    ///
    /// - Parameters:
    ///   - identifier: What names the text.
    ///   - text: The text itself.
    ///   - version: The version.
    ///   - origin: Where the text was taken from.
    public init(identifier: String, text: String, version: SemanticVersion?, origin: Origin = .bundle) {
        self.identifier = identifier
        self.text = text
        self.version = version
        self.origin = origin
        isVerified = origin == .bundle
        isBelowFloor = false
    }

    /// The SHA-256 of the text's UTF-8, without a byte order mark, in 64 hexadecimal digits.
    ///
    /// It costs a pass over the text where it came with the app, nothing elsewhere.
    public var digest: String { digestBits.hex }

    /// The digest as a number.
    var digestBits: SHA256.Digest { knownDigest ?? Self.digest(of: text) }

    static func digest(of text: String) -> SHA256.Digest {
        var text = text
        return text.withUTF8 { SHA256.digest(of: UnsafeRawBufferPointer($0)) }
    }

    /// Whether all that is known of both is equal; versions are compared as they are written.
    public static func == (lhs: VersionedText, rhs: VersionedText) -> Bool {
        lhs.identifier == rhs.identifier && lhs.version?.description == rhs.version?.description && lhs.origin == rhs.origin
            && lhs.staleSince == rhs.staleSince && lhs.isVerified == rhs.isVerified && lhs.isBelowFloor == rhs.isBelowFloor
            && lhs.fallbackReason == rhs.fallbackReason && lhs.text == rhs.text
    }

    /// Hashes what names the text and its version.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(identifier)
        hasher.combine(version?.description)
        hasher.combine(text)
    }
}

/// A text whose version has risen.
public struct VersionIncrease: Hashable, Sendable {
    /// The text.
    public var identifier: String
    /// The version that was active before; `nil` at the first installation, and where the text was unversioned.
    public var from: SemanticVersion?
    /// The version that is active now.
    public var to: SemanticVersion
    /// Whether the text differs, and not its version alone.
    public var textChanged: Bool
    /// Whether no version of this text was ever active in this session.
    public var isFirstInstallation: Bool
}

/// What happened in a store beside the states of its texts; for logs.
public enum TextStoreEvent: Sendable {
    /// A text, an entry of a manifest or a whole manifest was refused, and what was there stays.
    case refused(TextStoreError)
    /// A file could not be read or written, or was damaged; the store goes on without it.
    case fault(TextStoreError)
    /// A text was fetched, found good, and saved.
    case saved(identifier: String, version: SemanticVersion?)
    /// A manifest was fetched and found good, or confirmed.
    case checked(revision: UInt64?)
    /// A manifest's revision exceeds the last one by more than the policy's `revisionJump`; the store uses the manifest.
    case revisionJumped(from: UInt64, to: UInt64)
    /// A manifest of a higher epoch was accepted; its revisions start again.
    case epochRaised(from: UInt64, to: UInt64)
}
