public import Foundation
import StoreCore
internal import StorePlatform

/// A record that the user has accepted a text.
public struct Acceptance: Hashable, Codable, Sendable {
    /// The identifier of the accepted text, as in its source.
    public var identifier: String
    /// The accepted version; `nil` for an unversioned text.
    public var version: SemanticVersion?
    /// The SHA-256 of the accepted text.
    public var digest: String
    /// The wall-clock time of the acceptance.
    public var date: Date
    /// Whether a digest or a verifier had confirmed that the accepted text belongs to the version.
    ///
    /// Otherwise the text may be older than its version, and the acceptance covers no other wording of the same version.
    public var isVerified: Bool

    /// The size of a change that requires another acceptance.
    public enum Granularity: Hashable, Sendable {
        /// Any newer version, by the precedence of SemVer.
        case any
        /// A newer major number; versions that differ only behind it need no other acceptance.
        case major
        /// A newer first or second number.
        case minor
        /// Any other wording, with any version.
        case digest
    }

    /// Makes the acceptance of a text.
    package init(of text: VersionedText, at date: Date) {
        self.init(identifier: text.identifier, version: text.version, digest: text.digest, date: date, isVerified: text.isVerified)
    }

    init(identifier: String, version: SemanticVersion?, digest: String, date: Date, isVerified: Bool = true) {
        self.identifier = identifier
        self.version = version
        self.digest = digest
        self.date = date
        self.isVerified = isVerified
    }

    /// Decodes an acceptance; one that does not say whether it is verified counts as verified, so that no user is asked again.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        identifier = try values.decode(String.self, forKey: .identifier)
        version = try values.decodeIfPresent(SemanticVersion.self, forKey: .version)
        digest = try values.decode(String.self, forKey: .digest)
        date = try values.decode(Date.self, forKey: .date)
        isVerified = try values.decodeIfPresent(Bool.self, forKey: .isVerified) ?? true
    }

    /// Returns whether this acceptance covers a shown text, so that no other one is needed.
    ///
    /// An acceptance of the same or a higher version covers a text. An unversioned text cannot be compared, so only an acceptance of its
    /// wording covers it. An acceptance of an unverified text covers no other wording of the same version.
    ///
    /// - Parameters:
    ///   - text: The shown text.
    ///   - granularity: The size of a change that requires another acceptance.
    func covers(_ text: VersionedText, _ granularity: Granularity) -> Bool {
        guard let version, let shown = text.version else { return digest == text.digest }
        // The accepted bytes may be those of an older version, which the origin replaced after it had published the version.
        if !isVerified, version == shown, digest != text.digest { return false }
        switch granularity {
        case .any: return version >= shown
        case .major: return version >= shown || version.agrees(with: shown, upTo: .major)
        case .minor: return version >= shown || version.agrees(with: shown, upTo: .minor)
        // The store shows a text below its floor only because the newer one is missing, so its wording is not new.
        case .digest: return digest == text.digest || (text.isBelowFloor && version > shown)
        }
    }
}

/// All acceptances of one text in the order of their saves, one for each wording of a version.
struct AcceptanceHistory: Hashable, Codable, Sendable {
    private(set) var all: [Acceptance] = []

    /// The newest acceptance: that of the highest version, and the last one among equal versions.
    var newest: Acceptance? {
        all.reduce(nil) { best, next in
            guard let best, Rank(version: next.version) < Rank(version: best.version) else { return next }
            return best
        }
    }

    /// Adds an acceptance in place of one with the same wording and version.
    mutating func add(_ acceptance: Acceptance) {
        var acceptance = acceptance
        all.removeAll { old in
            guard old.version?.description == acceptance.version?.description, old.digest == acceptance.digest else { return false }
            acceptance.isVerified = acceptance.isVerified || old.isVerified
            return true
        }
        all.append(acceptance)
    }

    /// Returns whether a shown text needs acceptance.
    func isNeeded(for text: VersionedText, _ granularity: Acceptance.Granularity) -> Bool {
        !all.contains { $0.covers(text, granularity) }
    }
}

/// The acceptances of a session; each is saved before it counts.
actor AcceptanceLedger {
    private let file: KeptValue<[String: AcceptanceHistory]>
    private let lock: SessionLock
    private let executor = DiskExecutor()
    /// The acceptances as last read or saved, with the files' statuses at that time.
    private var known: (histories: [String: AcceptanceHistory], serial: UInt64, statuses: [FileStatus?])?

    init(directory: Directory, options: FileWriteOptions, patience: Duration = SessionLock.usualPatience) {
        file = KeptValue(name: "accepted", directory: directory, options: options)
        lock = SessionLock(directory: directory, patience: patience)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Returns the acceptances of a text.
    ///
    /// - Throws: ``TextStoreError/Code/damagedFile`` if the acceptances cannot be read; callers then treat the text as not accepted.
    func history(of identifier: String) throws(TextStoreError) -> AcceptanceHistory {
        try load().histories[identifier] ?? AcceptanceHistory()
    }

    /// Saves an acceptance beside the earlier ones.
    ///
    /// Reading, comparing, and writing are one critical section under the session's lock, so no other store's acceptance is lost.
    func accept(_ acceptance: Acceptance) throws(TextStoreError) -> [TextStoreError] {
        try file.makeDirectory()
        let held = try lock.take()
        defer { withExtendedLifetime(held) {} }
        // Another store may have saved acceptances since the last read, perhaps without a visible change of the files' statuses.
        known?.statuses = []
        var histories: [String: AcceptanceHistory] = [:]
        var serial: UInt64 = 0
        do throws(TextStoreError) { (histories, serial) = try load(keepsUnreadable: true) } catch {
            // A damaged file must not prevent acceptance, so it is replaced. An unreadable file may be intact and stays.
            guard error.code == .damagedFile else { throw error }
        }
        histories[acceptance.identifier, default: AcceptanceHistory()].add(acceptance)
        serial += 1
        let faults = try file.save(histories, serial: serial)
        known = (histories, serial, file.statuses)
        return faults
    }

    /// Reads the acceptances.
    ///
    /// - Parameter keepsUnreadable: Whether to throw if a file cannot be read, rather than to use what this process knows.
    private func load(keepsUnreadable: Bool = false) throws(TextStoreError) -> (histories: [String: AcceptanceHistory], serial: UInt64) {
        // Read before the content: a save in between changes the status, and the next call reads again.
        let statuses = file.statuses
        if let known, known.statuses == statuses { return (known.histories, known.serial) }
        let (copies, faults) = file.load()
        if copies.isEmpty, keepsUnreadable, let fault = faults.first(where: { $0.code == .fileSystem }) { throw fault }
        // Damage or removal of the files loses no acceptance that this process knows.
        if copies.isEmpty, let known { return (known.histories, known.serial) }
        if copies.isEmpty, let fault = faults.first(where: { $0.code == .fileSystem }) ?? faults.first { throw fault }
        let found = (copies.first?.value ?? [:], copies.first?.serial ?? 0)
        known = (found.0, found.1, statuses)
        return found
    }
}
