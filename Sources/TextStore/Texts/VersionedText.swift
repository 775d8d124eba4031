public import Foundation
import StoreCore
internal import StorePlatform

/// A text with its version and its source.
///
/// Identifier, text, and version are constants, so that ``digest`` and an acceptance are always those of the shown text.
///
/// <doc:GettingStarted> shows a text and its versions.
public struct VersionedText: Hashable, Sendable {
    /// The identifier of the text, as in its source.
    public let identifier: String
    /// The text itself, decoded from UTF-8 without a byte order mark.
    public let text: String
    /// The version; `nil` for an unversioned text, which is older than every version and not 0.0.0.
    public let version: SemanticVersion?
    /// The source from which the text was taken.
    public let origin: Origin
    /// The time since which the newest manifest does not confirm the text, or at which it expired; `nil` for a current text.
    ///
    /// A manifest confirms a text by listing its version, with its digest if the entry has one. The property is also `nil` while no
    /// manifest is known, and for a text without an address on a server.
    public var staleSince: Date?
    /// Whether a digest or a verifier has confirmed that the bytes belong to the version; bundled texts are verified.
    public var isVerified: Bool
    /// Whether a newer version was active before and is no longer available.
    public var isBelowFloor: Bool
    /// The reason why an awaited text may not be the origin's newest; `nil` if the origin confirmed it.
    ///
    /// It is ``TextStoreError/Code/checkedRecently`` if the store sent no request because the last check is recent, and
    /// ``TextStoreError/Code/unconfirmed`` or ``TextStoreError/Code/notActivated`` if the newest manifest lists another text.
    public var fallbackReason: TextStoreError? {
        get { details?.reason }
        set { details = Details(reason: newValue, language: language) }
    }
    /// The language of a text in several languages, as a tag in its usual case, such as `de-AT`; `nil` for a text in one language.
    public internal(set) var language: String? {
        get { details?.language }
        set { details = Details(reason: fallbackReason, language: newValue) }
    }
    /// Stored out of line, because they are rare, and each read copies the text.
    private var details: Details?
    /// The digest if it is already known.
    var knownDigest: SHA256.Digest?

    private final class Details: Sendable {
        let reason: TextStoreError?
        let language: String?

        /// Makes the details; `nil` if there are none.
        init?(reason: TextStoreError?, language: String?) {
            if reason == nil, language == nil { return nil }
            (self.reason, self.language) = (reason, language)
        }
    }

    /// The place from which the text was taken.
    public enum Origin: String, Hashable, Sendable {
        /// The app's bundle, as it came with the installed version of the app.
        case bundle
        /// A file of the session that an earlier process has saved.
        case cache
        /// The origin: the text was fetched by this process.
        case remote
    }

    /// Makes a text, for tests and previews.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the text.
    ///   - text: The text itself.
    ///   - version: The version.
    ///   - origin: The source of the text.
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
    /// Hashes the text if it was made by the initializer; the store's texts have their digest already.
    public var digest: String { digestBits.hex }

    /// The digest in 256 bits, for comparison without its hexadecimal digits.
    var digestBits: SHA256.Digest { knownDigest ?? Self.digest(of: text) }

    static func digest(of text: String) -> SHA256.Digest {
        var text = text
        return text.withUTF8 { SHA256.digest(of: UnsafeRawBufferPointer($0)) }
    }

    /// Returns whether all properties are equal; versions are compared as written.
    public static func == (lhs: VersionedText, rhs: VersionedText) -> Bool {
        lhs.identifier == rhs.identifier && lhs.version?.description == rhs.version?.description && lhs.origin == rhs.origin
            && lhs.staleSince == rhs.staleSince && lhs.isVerified == rhs.isVerified && lhs.isBelowFloor == rhs.isBelowFloor
            && lhs.fallbackReason == rhs.fallbackReason && lhs.language == rhs.language && lhs.text == rhs.text
    }

    /// Hashes identifier, version as written, and text, but none of the facts about the text.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(identifier)
        hasher.combine(version?.description)
        hasher.combine(text)
    }
}

/// An increase of a text's version.
public struct VersionIncrease: Hashable, Sendable {
    /// The identifier of the text, as in its source.
    public var identifier: String
    /// The version that was active before; `nil` at the first installation, and if the text was unversioned.
    public var from: SemanticVersion?
    /// The version that is active now.
    public var to: SemanticVersion
    /// Whether the text has changed, and not only its version.
    public var textChanged: Bool
    /// Whether no version of this text was active in this session before.
    public var isFirstInstallation: Bool
}

/// An event of a store, for logs.
public enum TextStoreEvent: Sendable {
    /// The store refused a text, an entry of a manifest, or a whole manifest; the previous one stays.
    case refused(TextStoreError)
    /// A file could not be read or written, or was damaged; the store continues without it.
    case fault(TextStoreError)
    /// A fetched text was accepted and saved.
    case saved(identifier: String, version: SemanticVersion?)
    /// A manifest was fetched and accepted, or confirmed.
    case checked(revision: UInt64?)
    /// A manifest's revision exceeds the last one by more than the policy's `revisionJump`; the store uses the manifest.
    ///
    /// `from` is 0 if the very first revision is 2⁶² or more.
    case revisionJumped(from: UInt64, to: UInt64)
    /// A manifest of a higher epoch was accepted, from the origin or from the app's bundle; its revisions start again.
    case epochRaised(from: UInt64, to: UInt64)
}
