internal import Foundation
import StoreCore
internal import StoreFiles
internal import StorePlatform

/// The acceptances of a session; each is saved before it counts.
///
/// With evidence, a record is appended to the log first, and the acceptances name the last record that they contain. A process that is
/// killed in between leaves a record that the next reading adds to the acceptances.
actor AcceptanceLedger {
    /// The acceptances by text; their position is the number of the last record of the evidence that they contain.
    private typealias File = KeptValue<[String: AcceptanceHistory]>

    private let file: File
    private var evidence: EvidenceLog?
    private let lock: SessionLock
    private let executor = DiskExecutor()
    /// The acceptances as last read or saved, with the files' statuses at that time.
    private var known: (state: File.Copy, statuses: [FileStatus?])?
    private var faults: [TextStoreError] = []

    init(
        directory: Directory, options: FileWriteOptions, keepsEvidence: Bool = false, patience: Duration = SessionLock.usualPatience
    ) {
        file = File(name: "accepted", directory: directory, options: options)
        lock = SessionLock(directory: directory, patience: patience)
        evidence = keepsEvidence ? EvidenceLog(directory, options) : nil
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Returns the acceptances of a text, and the faults that no other call has returned.
    ///
    /// - Throws: ``TextStoreError/Code/damagedFile`` if the acceptances cannot be read; callers then treat the text as not accepted.
    func history(of identifier: String) throws(TextStoreError) -> (history: AcceptanceHistory, faults: [TextStoreError]) {
        (try load().value[identifier] ?? AcceptanceHistory(), takeFaults())
    }

    /// Saves an acceptance beside the earlier ones.
    ///
    /// Reading, comparing, and writing are one critical section under the session's lock, so no other store's acceptance is lost.
    ///
    /// - Parameter wording: The accepted text; kept only with evidence.
    func accept(_ acceptance: Acceptance, _ wording: String = "") throws(TextStoreError) -> [TextStoreError] {
        try change { _ in AcceptanceRecord(kind: .accepted, acceptance: acceptance, wording: wording) }.faults
    }

    /// Withdraws all acceptances of a text by an account, and returns whether it had accepted the text.
    func withdraw(
        _ identifier: String, by account: String?, at date: Date
    ) throws(TextStoreError) -> (hasWithdrawn: Bool, faults: [TextStoreError]) {
        let (record, faults) = try change { histories in
            histories[identifier]?.newest(by: account).map { newest in
                var acceptance = newest
                acceptance.date = date
                return AcceptanceRecord(kind: .withdrawn, acceptance: acceptance)
            }
        }
        return (record != nil, faults)
    }

    /// Returns all records of the evidence in their order; none without evidence.
    func records() throws(TextStoreError) -> (records: [AcceptanceRecord], faults: [TextStoreError]) {
        (try evidence?.all() ?? [], takeFaults())
    }

    private func change(
        _ decide: ([String: AcceptanceHistory]) -> AcceptanceRecord?
    ) throws(TextStoreError) -> (AcceptanceRecord?, faults: [TextStoreError]) {
        try file.directory.make(file.options)
        let held = try lock.take()
        defer { withExtendedLifetime(held) {} }
        // Another store may have saved acceptances since the last read, perhaps without a visible change of the files' statuses.
        known?.statuses = []
        var state = File.Copy(serial: 0, value: [:])
        do throws(TextStoreError) { state = try load(keepsUnreadable: true) } catch {
            // A damaged file must not prevent acceptance, so it is replaced. An unreadable file may be intact, a file of another version
            // is, and the evidence is never replaced, so these stay.
            if evidence != nil || error.isOfOtherVersion, let cause = error.underlyingError as? StoreError { throw .saving(cause) }
            guard error.code == .damagedFile else { throw error }
        }
        guard let record = decide(state.value) else { return (nil, takeFaults()) }
        if let number = try evidence?.append(record, after: state.position ?? 0) { state.position = number }
        state.value.take(record)
        state.serial += 1
        do throws(TextStoreError) {
            // Also without evidence, because a store that keeps it would otherwise repeat its older records.
            faults += try file.save(state.value, serial: state.serial, position: state.position)
            known = (state, file.statuses)
        } catch {
            // The evidence is saved, and the next reading adds it to the acceptances.
            guard evidence != nil else { throw error }
            faults.append(error)
            known = (state, [])
        }
        return (record, takeFaults())
    }

    private func takeFaults() -> [TextStoreError] {
        defer {
            faults = []
            evidence?.faults = []
        }
        return faults + (evidence?.faults ?? [])
    }

    /// Reads the acceptances; if asked to, throws for an unreadable file rather than using what this process knows.
    private func load(keepsUnreadable: Bool = false) throws(TextStoreError) -> File.Copy {
        // Read before the content: a save in between changes the status, and the next call reads again.
        let statuses = file.statuses
        if let known, known.statuses == statuses, evidence?.isUpToDate ?? true { return known.state }
        let (copies, faults) = file.load()
        if copies.isEmpty, keepsUnreadable, let fault = faults.first(where: { $0.code == .fileSystem }) { throw fault }
        // Damage or removal of the files loses no acceptance that this process knows.
        var state = copies.first ?? known?.state ?? File.Copy(serial: 0, value: [:])
        if copies.isEmpty, known == nil,
            let fault = faults.first(where: { $0.code == .fileSystem }) ?? faults.first(where: \.isOfOtherVersion) ?? faults.first
        {
            // The evidence contains the acceptances that were saved with it.
            guard evidence != nil else { throw fault }
            self.faults.append(fault)
        }
        for (number, record) in try evidence?.read(after: state.position ?? 0) ?? [] {
            state.value.take(record)
            state.position = number
        }
        known = (state, statuses)
        return state
    }
}

extension [String: AcceptanceHistory] {
    fileprivate mutating func take(_ record: AcceptanceRecord) {
        let identifier = record.acceptance.identifier
        switch record.kind {
        case .accepted: self[identifier, default: AcceptanceHistory()].add(record.acceptance)
        case .withdrawn: self[identifier]?.withdraw(record.acceptance.account)
        }
    }
}
