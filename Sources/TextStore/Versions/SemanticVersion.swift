/// A version as Semantic Versioning 2.0.0 defines it: three numbers of any length, a pre-release, and build metadata.
///
/// ```swift
/// let old = SemanticVersion("1.9.0")
/// let new = SemanticVersion("1.10.0-rc.1+build.5")
/// let odd = SemanticVersion("v1.0.001", mode: .lenient)  // described as written
/// ```
///
/// Order and equality are precedence (section 11): build metadata is ignored, and a pre-release comes before its release.
/// ``isIdentical(to:)`` compares the spelling.
///
/// <doc:VersionsAndManifests> explains pre-releases, and the manifests that list versions.
public struct SemanticVersion: Sendable, CustomStringConvertible {
    /// The version as it was written, verbatim.
    public let description: String
    /// The first number. `UInt64.max` stands for larger numbers, which order and equality compare by all their digits.
    public let major: UInt64
    /// The second number, represented like the first.
    public let minor: UInt64
    /// The third number, represented like the first.
    public let patch: UInt64
    /// The offset of the pre-release in the description's UTF-8; 0 without one.
    @usableFromInline let preReleaseStart: UInt32
    /// The end offset of the pre-release, or of the numbers without one.
    @usableFromInline let preReleaseEnd: UInt32

    /// The strictness of parsing a version.
    public enum Mode: Hashable, Sendable {
        /// Accepts exactly the grammar of SemVer 2.0.0.
        case strict
        /// Also accepts a leading `v`, one or two numbers (missing ones are 0), and leading zeros.
        case lenient
    }

    /// Parses a version; `nil` for any other text.
    ///
    /// - Parameters:
    ///   - text: The version, which is kept verbatim.
    ///   - mode: The strictness of parsing.
    @inlinable @inline(__always)
    public init?(_ text: String, mode: Mode = .strict) {
        var parts = Parts()
        guard Self.read(text, mode, &parts) == nil else { return nil }
        self.init(text, parts)
    }

    /// Parses a version, or throws the reason why the text is not one.
    ///
    /// - Parameters:
    ///   - text: The version, which is kept verbatim.
    ///   - mode: The strictness of parsing.
    /// - Throws: ``Malformed`` with the reason.
    public init(parsing text: String, mode: Mode = .strict) throws(Malformed) {
        var parts = Parts()
        if let flaw = Self.read(text, mode, &parts) { throw Malformed(text: text, reason: flaw.rawValue) }
        self.init(text, parts)
    }

    @inlinable @inline(__always)
    init(_ text: String, _ parts: Parts) {
        description = text
        (major, minor, patch) = (parts.major, parts.minor, parts.patch)
        (preReleaseStart, preReleaseEnd) = (parts.preReleaseStart, parts.preReleaseEnd)
    }

    /// The reason why a text is not a version.
    public struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        /// The whole text that was to be parsed.
        public let text: String
        /// The flaw in words, for a message.
        public let reason: String

        /// The text, shortened to 64 characters, and its flaw.
        public var description: String {
            let shown = text.count > 64 ? text.prefix(64) + "…" : text[...]
            return "“\(shown)” is not a version: \(reason)"
        }
    }

    /// Whether the version is a pre-release.
    public var isPreRelease: Bool { preReleaseStart != 0 }

    /// The pre-release without its hyphen, such as `rc.1`; `nil` for a release.
    public var preRelease: String? {
        guard isPreRelease else { return nil }
        let utf8 = description.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: Int(preReleaseStart))
        return String(description[start..<utf8.index(utf8.startIndex, offsetBy: Int(preReleaseEnd))])
    }

    /// The build metadata without its plus sign; `nil` without any.
    public var buildMetadata: String? {
        guard let plus = description.utf8.firstIndex(of: UInt8(ascii: "+")) else { return nil }
        return String(description[description.utf8.index(after: plus)...])
    }

    /// Returns whether both are written identically, including build metadata and leading zeros.
    ///
    /// - Parameter other: Another version.
    public func isIdentical(to other: SemanticVersion) -> Bool { description == other.description }
}

extension SemanticVersion: Codable {
    /// Decodes a version from a string, leniently, so that every encoded version can be decoded; throws `Malformed` for other strings.
    public init(from decoder: any Decoder) throws {
        try self.init(parsing: try decoder.singleValueContainer().decode(String.self), mode: .lenient)
    }

    /// Encodes the version as a string, verbatim.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
