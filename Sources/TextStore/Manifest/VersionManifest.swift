public import Foundation
internal import RemoteHTTP
import StoreCore
internal import StorePlatform

/// A manifest: the version of each text and, in its rich form, the address and digest of its file.
///
/// The plain form is an object of identifiers and versions:
///
/// ```text
/// { "eula": "1.2.3", "privacy": "2.0.0" }
/// ```
///
/// In the rich form, `texts` holds the texts, and an entry may be an object. `revision` orders the manifests of one `epoch`. `expires`
/// (RFC 3339) limits how long the manifest is valid. `rollback` returns a text to an older version:
///
/// ```text
/// { "revision": 7, "expires": "2030-01-01T00:00:00Z",
///   "texts": {
///     "eula": {
///       "version": "1.2.3", "url": "eula-1.2.3.txt", "sha256": "…",
///       "length": 5120, "group": "legal" } } }
/// ```
///
/// <doc:VersionsAndManifests> explains each member, and the order of publication.
public struct VersionManifest: Hashable, Sendable {
    /// The entries by the identifiers of their texts.
    public var entries: [String: Entry]
    /// The manifest's position among those of its epoch; `nil` counts as 0.
    public var revision: UInt64?
    /// The position that takes precedence over the revision; `nil` counts as 0. A higher epoch restarts the revisions.
    public var epoch: UInt64?
    /// The time until which the manifest is valid; `nil` for no limit.
    public var expires: Date?
    /// The entries that cannot be used, with the reasons.
    public var problems: [Problem]
    /// The entries of texts with conditions, in the order of preference. A source chooses one of each text for `entries`.
    var variants: [String: [Entry]] = [:]

    /// The version of one text at the origin, and the facts about its file.
    public struct Entry: Hashable, Sendable {
        /// The version of the text, parsed with the mode of the manifest's source.
        public var version: SemanticVersion
        /// The address, absolute or relative to the manifest's.
        public var url: String?
        /// The SHA-256 of the file's bytes in 64 hexadecimal digits, lower case.
        public var sha256: String?
        /// The length of the file in bytes.
        public var length: Int?
        /// The set that the text belongs to.
        public var group: String?
        /// Whether the manifest intends the version even though it is older than an earlier one.
        public var isRollback: Bool
        /// The conditions under which the entry counts; `nil` for none.
        var conditions: Conditions?
        /// The versions that the manifest offers to a share of the other devices. The entry's rollback withdraws none of them, because a
        /// change of a share takes no text back.
        var shared: [SemanticVersion] = []

        /// Makes an entry.
        ///
        /// - Parameters:
        ///   - version: The version.
        ///   - url: The address, absolute or relative to the manifest's.
        ///   - sha256: The SHA-256 of the file's bytes.
        ///   - length: The length of the file in bytes.
        ///   - group: The set that the text belongs to.
        ///   - isRollback: Whether the manifest intends the version even though it is older than an earlier one.
        public init(
            version: SemanticVersion, url: String? = nil, sha256: String? = nil, length: Int? = nil, group: String? = nil,
            isRollback: Bool = false
        ) {
            (self.version, self.url, self.sha256, self.length) = (version, url, sha256, length)
            (self.group, self.isRollback) = (group, isRollback)
        }

        /// Returns whether a file with this digest may be the listed text.
        func allows(_ digest: SHA256.Digest) -> Bool { sha256.map { SHA256.Digest(hex: $0.utf8) == digest } ?? true }

        /// Returns whether both are written identically; versions of equal precedence may differ in their build metadata.
        public static func == (lhs: Entry, rhs: Entry) -> Bool {
            lhs.version.isIdentical(to: rhs.version) && lhs.url == rhs.url && lhs.sha256 == rhs.sha256 && lhs.length == rhs.length
                && lhs.group == rhs.group && lhs.isRollback == rhs.isRollback && lhs.conditions == rhs.conditions
                && lhs.shared == rhs.shared
        }
    }

    /// An entry that cannot be used.
    public struct Problem: Hashable, Sendable {
        /// The identifier of the text, as the manifest spells it.
        public var identifier: String
        /// The reason why the entry cannot be used.
        public var reason: String
        /// The set that the entry names; `nil` if the entry names none.
        public var group: String?
    }

    /// The manifest's position in the order of all manifests of the origin; `nil` if it has neither epoch nor revision.
    var edition: Edition? {
        epoch == nil && revision == nil ? nil : Edition(epoch: epoch ?? 0, revision: revision ?? 0)
    }

    /// Reads a manifest.
    ///
    /// An entry that cannot be used appears in ``problems`` and does not affect the others.
    ///
    /// - Parameters:
    ///   - data: The manifest's bytes.
    ///   - mode: The strictness of parsing versions.
    ///   - limit: The largest number of bytes.
    /// - Throws: ``TextStoreError/Code/malformedManifest`` or ``TextStoreError/Code/tooLarge``.
    public init(parsing data: Data, mode: SemanticVersion.Mode = .strict, limit: Int = 1_000_000) throws(TextStoreError) {
        guard data.count <= limit else {
            throw TextStoreError(
                .tooLarge, "cannot read the manifest: its \(data.count) bytes exceed the limit of \(limit); raise the limit")
        }
        let bytes = [UInt8](data)
        let read = bytes.withUnsafeBufferPointer { bytes in
            Result { () throws(JSONValue.Malformed) in try JSONValue.read(bytes, depth: 16) }
        }
        switch read {
        case .failure(let malformed):
            throw .malformed("it is not JSON at byte \(malformed.offset), because \(malformed.reason)")
        case .success(.object(let members)):
            do throws(Refusal) { try self.init(members, mode: mode) } catch { throw .malformed(error.reason) }
        case .success(let other):
            throw .malformed("it is \(other.kind) instead of an object")
        }
    }

    private init(_ members: [JSONValue.Member], mode: SemanticVersion.Mode) throws(Refusal) {
        var texts = members
        revision = nil
        epoch = nil
        expires = nil
        let rich = members.filter { $0.name == "texts" }
        if let member = rich.first, case .object(let inner) = member.value {
            guard rich.count == 1 else { throw Refusal(reason: "it has two members “texts”") }
            texts = inner
            revision = try Self.number("revision", in: members)
            epoch = try Self.number("epoch", in: members)
            expires = try Self.expires(members)
        }
        entries = [:]
        problems = []
        var seen: Set<String> = []
        for member in texts {
            guard seen.insert(member.name).inserted else {
                // Neither duplicate can be preferred.
                let earlier = entries.removeValue(forKey: member.name) ?? variants.removeValue(forKey: member.name)?.first
                let group = earlier?.group ?? Self.group(of: member.value)
                problems.append(Problem(identifier: member.name, reason: "the manifest lists it more than once", group: group))
                continue
            }
            do throws(Refusal) {
                let found = try Self.variants(member.value, mode: mode, revision: revision)
                if let entry = found.first, entry.conditions == nil { entries[member.name] = entry } else { variants[member.name] = found }
            } catch {
                problems.append(Problem(identifier: member.name, reason: error.reason, group: Self.group(of: member.value)))
            }
        }
    }

    private static func number(_ name: String, in members: [JSONValue.Member]) throws(Refusal) -> UInt64? {
        switch try single(name, in: members) {
        case nil: return nil
        case .number(let digits)?:
            guard let number = UInt64(digits) else { throw Refusal(reason: "its \(name) is \(digits.prefix(32)), not a whole number") }
            return number
        case .some(let other): throw Refusal(reason: "its \(name) is \(other.kind) instead of a number")
        }
    }

    /// Returns the group that an entry names, even if the entry is malformed, because the set must not switch without this text.
    private static func group(of value: JSONValue) -> String? {
        if case .array(let values) = value { return values.lazy.compactMap { group(of: $0) }.first }
        guard case .object(let members) = value else { return nil }
        for case .string(let group) in members.lazy.filter({ $0.name == "group" }).map(\.value) where !group.isEmpty { return group }
        return nil
    }

    private static func expires(_ members: [JSONValue.Member]) throws(Refusal) -> Date? {
        switch try single("expires", in: members) {
        case nil: return nil
        case .string(let text)?:
            guard let date = RFC3339.date(text) else {
                throw Refusal(reason: "“\(text.prefix(64))” is not a date and time such as 2030-01-01T00:00:00Z")
            }
            return date
        case .some(let other): throw Refusal(reason: "its expiry is \(other.kind) instead of a string")
        }
    }

    private static func single(_ name: String, in members: [JSONValue.Member]) throws(Refusal) -> JSONValue? {
        let found = members.filter { $0.name == name }
        guard found.count <= 1 else { throw Refusal(reason: "it has two members “\(name)”") }
        return found.first?.value
    }

    struct Refusal: Error { let reason: String }

    /// Reads the entry of a text, or its entries with conditions; only the last one may have none.
    private static func variants(_ value: JSONValue, mode: SemanticVersion.Mode, revision: UInt64?) throws(Refusal) -> [Entry] {
        guard case .array(let values) = value else { return [try entry(value, mode: mode, revision: revision)] }
        var entries: [Entry] = []
        for value in values {
            if let last = entries.last, last.conditions == nil { throw Refusal(reason: "an entry without conditions is not the last") }
            entries.append(try entry(value, mode: mode, revision: revision))
        }
        guard !entries.isEmpty else { throw Refusal(reason: "its list of entries is empty") }
        return entries
    }

    private static func entry(_ value: JSONValue, mode: SemanticVersion.Mode, revision: UInt64?) throws(Refusal) -> Entry {
        func version(_ text: String) throws(Refusal) -> SemanticVersion {
            do throws(SemanticVersion.Malformed) { return try SemanticVersion(parsing: text, mode: mode) } catch {
                throw Refusal(reason: error.description)
            }
        }
        if case .string(let text) = value { return Entry(version: try version(text)) }
        guard case .object(let all) = value else { throw Refusal(reason: "its version is \(value.kind); write it as a string") }
        let members = all.filter { $0.value != .null }
        func string(_ name: String) throws(Refusal) -> String? {
            switch try single(name, in: members) {
            case nil: return nil
            case .string(let text)?: return text
            case .some(let other): throw Refusal(reason: "its “\(name)” is \(other.kind); write it as a string")
            }
        }
        guard let text = try string("version") else { throw Refusal(reason: "it has no version") }
        var entry = Entry(version: try version(text), url: try string("url"), group: try string("group"))
        if let digest = try string("sha256")?.lowercased() {
            guard SHA256.Digest(hex: digest.utf8) != nil else { throw Refusal(reason: "its “sha256” is not 64 hexadecimal digits") }
            entry.sha256 = digest
        }
        switch try single("length", in: members) {
        case nil: break
        case .number(let digits)?:
            guard let length = Int(digits), length >= 0 else { throw Refusal(reason: "its “length” is not a number of bytes") }
            entry.length = length
        case .some(let other): throw Refusal(reason: "its “length” is \(other.kind); write it as a number")
        }
        switch try single("rollback", in: members) {
        case nil, .bool(false)?: break
        case .bool(true)?:
            guard revision != nil else { throw Refusal(reason: "a rollback needs a manifest with a revision") }
            entry.isRollback = true
        case .some(let other): throw Refusal(reason: "its “rollback” is \(other.kind) instead of true or false")
        }
        if let conditions = try single("when", in: members) { entry.conditions = try Conditions(reading: conditions) }
        if entry.group?.isEmpty == true { throw Refusal(reason: "its group has an empty name") }
        return entry
    }
}

extension TextStoreError {
    fileprivate static func malformed(_ reason: String) -> TextStoreError {
        TextStoreError(.malformedManifest, "cannot read the manifest: \(reason); correct the manifest")
    }
}
