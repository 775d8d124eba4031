/// A version as Semantic Versioning 2.0.0 defines it: three numbers of any length, a pre-release, and build metadata.
///
/// ```swift
/// let old = SemanticVersion("1.9.0")
/// let new = SemanticVersion("1.10.0-rc.1+build.5")
/// let odd = SemanticVersion("v1.0.001", mode: .lenient)      // its description stays "v1.0.001"
/// ```
///
/// Order and equality are precedence (section 11): build metadata plays no part, and a pre-release comes before its release. Whether two
/// versions are written alike is what ``isIdentical(to:)`` tells.
public struct SemanticVersion: Sendable, CustomStringConvertible {
    /// The version as it was written, verbatim.
    public let description: String
    /// The first number; `UInt64.max` where it is larger, and then order and equality still look at all its digits.
    public let major: UInt64
    /// The second number, held like the first.
    public let minor: UInt64
    /// The third number, held like the first.
    public let patch: UInt64
    /// Where in the UTF-8 of the description the pre-release begins; 0 where there is none.
    @usableFromInline let preReleaseStart: UInt32
    /// Where the pre-release ends, and the numbers where there is none.
    @usableFromInline let preReleaseEnd: UInt32

    /// How strictly a version is read.
    public enum Mode: Hashable, Sendable {
        /// As the specification says, and nothing else.
        case strict
        /// Also with a `v` in front, with one or two numbers (the missing ones are 0), and with zeros in front of numbers.
        case lenient
    }

    /// Reads a version; `nil` for anything else.
    ///
    /// - Parameters:
    ///   - text: The version; it is kept verbatim.
    ///   - mode: How strictly it is read.
    @inlinable @inline(__always)
    public init?(_ text: String, mode: Mode = .strict) {
        var parts = Parts()
        guard Self.read(text, mode, &parts) == nil else { return nil }
        self.init(text, parts)
    }

    /// Reads a version, or says what is wrong with it.
    ///
    /// - Parameters:
    ///   - text: The version; it is kept verbatim.
    ///   - mode: How strictly it is read.
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

    /// Why a text is no version.
    public struct Malformed: Error, Hashable, Sendable, CustomStringConvertible {
        /// The text.
        public let text: String
        /// What is wrong with it.
        public let reason: String

        /// The text and what is wrong with it.
        public var description: String {
            let shown = text.count > 64 ? text.prefix(64) + "…" : text[...]
            return "“\(shown)” is no version: \(reason)"
        }
    }

    /// Whether this comes before a release.
    public var isPreRelease: Bool { preReleaseStart != 0 }

    /// The pre-release without its hyphen, such as `rc.1`; `nil` for a release.
    public var preRelease: String? {
        guard isPreRelease else { return nil }
        let utf8 = description.utf8
        let start = utf8.index(utf8.startIndex, offsetBy: Int(preReleaseStart))
        return String(description[start..<utf8.index(utf8.startIndex, offsetBy: Int(preReleaseEnd))])
    }

    /// The build metadata without its plus sign; `nil` where there is none.
    public var buildMetadata: String? {
        guard let plus = description.utf8.firstIndex(of: UInt8(ascii: "+")) else { return nil }
        return String(description[description.utf8.index(after: plus)...])
    }

    /// Whether both are written alike, build metadata and leading zeros included.
    ///
    /// - Parameter other: Another version.
    public func isIdentical(to other: SemanticVersion) -> Bool { description == other.description }
}

extension SemanticVersion: Codable {
    /// Reads a version from one string, leniently: what was written once is read again.
    public init(from decoder: any Decoder) throws {
        try self.init(parsing: try decoder.singleValueContainer().decode(String.self), mode: .lenient)
    }

    /// Writes the version as one string, verbatim.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
