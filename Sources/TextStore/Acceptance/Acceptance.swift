public import Foundation
import StoreCore

/// That somebody has accepted a text.
public struct Acceptance: Hashable, Codable, Sendable {
    /// The text.
    public var identifier: String
    /// The version that was accepted; `nil` for an unversioned text.
    public var version: SemanticVersion?
    /// The SHA-256 of the text that was accepted.
    public var digest: String
    /// When it was accepted.
    public var date: Date

    /// Whether a change is so large that the text must be accepted again.
    public enum Granularity: Hashable, Sendable {
        /// Any other version.
        case any
        /// Another first number.
        case major
        /// Another first or second number.
        case minor
        /// Any other wording, whatever the version.
        case digest
    }

    /// Whether this acceptance is none of another text.
    ///
    /// - Parameters:
    ///   - text: The text that is shown now.
    ///   - granularity: How large a change must be.
    func isOutdated(by text: VersionedText, _ granularity: Granularity) -> Bool {
        // A newer one was accepted before what is shown only for want of it.
        if text.isBelowFloor { return false }
        guard granularity != .digest, let version, let new = text.version else { return digest != text.digest }
        switch granularity {
        case .major: return !new.agrees(with: version, upTo: .major)
        case .minor: return !new.agrees(with: version, upTo: .minor)
        case .any, .digest: return new != version
        }
    }
}

/// The acceptances of a session, saved before they count.
actor AcceptanceLedger {
    private let file: KeptValue<[String: Acceptance]>
    private let lock: SessionLock
    private let executor = DiskExecutor()
    private var known: (accepted: [String: Acceptance], serial: UInt64)?

    init(directory: Directory, options: FileWriteOptions, patience: Duration = SessionLock.usualPatience) {
        file = KeptValue(name: "accepted", directory: directory, options: options)
        lock = SessionLock(directory: directory, patience: patience)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// What was accepted of a text.
    ///
    /// - Throws: ``TextStoreError/Code/damagedFile`` where it is not known: nobody must be taken to have accepted anything.
    func acceptance(of identifier: String) throws(TextStoreError) -> Acceptance? { try load().accepted[identifier] }

    func accept(_ acceptance: Acceptance) throws(TextStoreError) -> [TextStoreError] {
        try file.makeDirectory()
        let held = try lock.take()
        defer { withExtendedLifetime(held) {} }
        // Another process may have accepted another text meanwhile.
        known = nil
        var accepted: [String: Acceptance] = [:]
        var serial: UInt64 = 0
        do throws(TextStoreError) { (accepted, serial) = try load() } catch {
            // What is damaged is asked for again; it must not keep anybody from accepting. What is only out of reach is not written over.
            guard error.code == .damagedFile else { throw error }
        }
        accepted[acceptance.identifier] = acceptance
        serial += 1
        let faults = try file.save(accepted, serial: serial)
        known = (accepted, serial)
        return faults
    }

    private func load() throws(TextStoreError) -> (accepted: [String: Acceptance], serial: UInt64) {
        if let known { return known }
        let (copies, faults) = file.load()
        if copies.isEmpty, let fault = faults.first(where: { $0.code == .fileSystem }) ?? faults.first { throw fault }
        let found = (copies.first?.value ?? [:], copies.first?.serial ?? 0)
        known = found
        return found
    }
}
