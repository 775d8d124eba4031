public import Foundation
import StoreCore

extension TextStore {
    /// Saves the user's acceptance of a text.
    ///
    /// An acceptance never replaces one of another version or wording, so a store that still shows an older text loses no newer acceptance.
    ///
    /// - Parameters:
    ///   - text: The text exactly as the user has seen it: one that a store has returned or published.
    ///   - account: The account that accepts the text, such as the identifier of a signed-in user; `nil` for the user of the device.
    /// - Throws: ``TextStoreError/Code/notShown`` for a text made by its initializer; ``TextStoreError/Code/fileSystem`` if the disk fails;
    ///   ``TextStoreError/Code/damagedFile`` if another version of the framework has written the acceptances. The text then remains
    ///   unaccepted.
    public func accept(_ text: VersionedText, account: String? = nil) async throws {
        // Only a store's texts have their digest already.
        guard text.knownDigest != nil else {
            throw TextStoreError(
                .notShown, identifier: text.identifier,
                "cannot accept the text: no store has shown it; accept the text that the store has returned")
        }
        try await save(Acceptance(of: text, by: account, at: time.date), text.text)
    }

    /// Saves an acceptance, of any text.
    package func save(_ acceptance: Acceptance, _ wording: String = "") async throws {
        for fault in try await ledger.accept(acceptance, wording) { report(.fault(fault)) }
    }

    /// Returns the newest acceptance of a text: of its highest accepted version, and the last one among equal versions.
    ///
    /// - Parameters:
    ///   - provider: The text.
    ///   - account: The account that has accepted the text.
    /// - Returns: The acceptance; `nil` if the account never accepted the text, or has withdrawn its acceptance.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem`` if the acceptances cannot be read.
    public func acceptance(of provider: some TextSourceProvider, account: String? = nil) async throws -> Acceptance? {
        try await acceptance(of: provider.textIdentifier, account: account)
    }

    /// Returns the newest acceptance of the text of an identifier, as the method with a provider does, with the same errors.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the text.
    ///   - account: The account that has accepted the text.
    public func acceptance(of identifier: String, account: String? = nil) async throws -> Acceptance? {
        try await acceptances(of: identifier).newest(by: account)
    }

    private func acceptances(of identifier: String) async throws -> AcceptanceHistory {
        let (history, faults) = try await ledger.history(of: identifier)
        for fault in faults { report(.fault(fault)) }
        return history
    }

    /// Returns whether a shown text needs acceptance, because no acceptance of the same or a higher version covers it.
    ///
    /// If the acceptances cannot be read, the text needs acceptance, and the fault is reported as an event.
    ///
    /// - Parameters:
    ///   - text: The text as the user sees it; pass the same one to ``accept(_:account:)``.
    ///   - granularity: The size of a change that requires another acceptance.
    ///   - account: The account of the acceptances that count; those of other accounts, and of no account, do not.
    public func needsAcceptance(
        of text: VersionedText, granularity: Acceptance.Granularity = .any, account: String? = nil
    ) async -> Bool {
        do {
            return try await acceptances(of: text.identifier)
                .isNeeded(for: text, granularity, by: account, policy.acceptedLanguages)
        } catch {
            // An unnecessary request for acceptance is harmless; a missing one is not.
            report(.fault(.wrapping(error, .damagedFile, "cannot read the acceptances; ask the user to accept the text again")))
            return true
        }
    }

    /// Returns whether the best text at this moment needs acceptance, for a badge or a menu.
    ///
    /// A gate passes the ``VersionedText`` that it shows to the other method, because the best text may change between two calls.
    ///
    /// - Parameters:
    ///   - provider: The text.
    ///   - granularity: The size of a change that requires another acceptance.
    ///   - account: The account of the acceptances that count.
    /// - Throws: ``TextStoreError/Code/unknownIdentifier`` if it is not registered, ``TextStoreError/Code/notAvailable`` if there is none.
    public func needsAcceptance(
        of provider: some TextSourceProvider, granularity: Acceptance.Granularity = .any, account: String? = nil
    ) async throws -> Bool {
        try await needsAcceptance(of: provider.textIdentifier, granularity: granularity, account: account)
    }

    /// Returns whether the best text of an identifier needs acceptance, as the method with a provider does, with the same errors.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of a registered text.
    ///   - granularity: The size of a change that requires another acceptance.
    ///   - account: The account of the acceptances that count.
    public func needsAcceptance(
        of identifier: String, granularity: Acceptance.Granularity = .any, account: String? = nil
    ) async throws -> Bool {
        await needsAcceptance(of: try await text(for: identifier), granularity: granularity, account: account)
    }

    /// Withdraws all acceptances of a text by an account, so that the text needs acceptance again.
    ///
    /// With ``TextStorePolicy/Evidence/allAcceptances``, the evidence keeps the acceptances and records the withdrawal.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the text, registered or not.
    ///   - account: The account that has accepted the text.
    /// - Returns: Whether the account had accepted the text.
    /// - Throws: ``TextStoreError/Code/fileSystem`` if the disk fails; ``TextStoreError/Code/damagedFile`` if another version of the
    ///   framework has written the acceptances. The acceptances then remain.
    @discardableResult
    public func withdrawAcceptances(of identifier: String, account: String? = nil) async throws -> Bool {
        let (hasWithdrawn, faults) = try await ledger.withdraw(identifier, by: account, at: time.date)
        for fault in faults { report(.fault(fault)) }
        return hasWithdrawn
    }

    // MARK: Evidence

    /// Returns every acceptance and withdrawal of all accounts, in the order of their saves.
    ///
    /// An acceptance that another task or process saves meanwhile is returned whole or not at all. Damaged records are skipped and
    /// reported as events.
    ///
    /// - Returns: The records; none without ``TextStorePolicy/Evidence/allAcceptances``.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem`` if the evidence cannot be read.
    /// - Complexity: O(n) in the size of the evidence.
    public func acceptanceRecords() async throws -> [AcceptanceRecord] {
        let (records, faults) = try await ledger.records()
        for fault in faults { report(.fault(fault)) }
        return records
    }

    /// Returns the evidence as a file in UTF-8: one line or row for each record, with the accepted wording.
    ///
    /// The members are `kind`, `identifier`, `version`, `digest`, `language`, `account`, `date` (RFC 3339, in UTC, with milliseconds),
    /// `verified`, and `wording`. Missing values are `null` in JSON and empty cells in a table.
    ///
    /// - Parameter format: The format of the file.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem`` if the evidence cannot be read.
    public func exportAcceptances(as format: AcceptanceRecord.Format) async throws -> Data {
        AcceptanceRecord.export(try await acceptanceRecords(), as: format)
    }

    /// Compares an accepted text with the best text at this moment, even after a restart.
    ///
    /// The accepted wording comes from the evidence (``TextStorePolicy/evidence``). A text in several languages is compared in the accepted
    /// language, in use or not. If its source names a group, the language must be in use.
    ///
    /// - Parameter acceptance: An acceptance of a registered text, such as the one that ``acceptance(of:account:)-(String,_)`` returns.
    /// - Returns: The lines and words that were removed and added since.
    /// - Throws: ``TextStoreError/Code/notAvailable`` if the evidence does not contain the accepted wording, or if no text is available;
    ///   ``TextStoreError/Code/unknownIdentifier`` if the text is not registered, or not in the accepted language.
    public func changes(since acceptance: Acceptance) async throws -> TextDifference {
        let records = try await acceptanceRecords()
        guard let wording = records.lazy.filter({ $0.acceptance.digest == acceptance.digest }).compactMap(\.wording).first else {
            throw TextStoreError(
                .notAvailable, identifier: acceptance.identifier,
                "cannot compare it with the accepted text: the evidence does not have its wording; keep all acceptances in the policy")
        }
        guard let language = acceptance.language else {
            return TextDifference(from: wording, to: try await text(for: acceptance.identifier).text)
        }
        let member = "\(acceptance.identifier)/\(language)"
        // The member need not be in use, so its files may not have been read.
        if let source = session.update({ $0.missingMember(member) }) { await admit([source]) }
        return TextDifference(from: wording, to: try await text(for: member).text)
    }
}
