internal import Foundation
import StoreCore

/// The last manifest from the origin, its validator, and the times of the last and next check; saved as one record.
struct ManifestRecord: Codable, Hashable, Sendable {
    /// The manifest's address; a record of another address is ignored.
    var url: String
    /// The response body as received; `nil` before the first one.
    var body: Data?
    var validator: Validator?
    /// The header fields of the response; saved only for a verifier, which sees them again at the next start.
    var headers: [String: String]?
    var receivedAt: Date?
    /// The time of the last check, successful or not.
    var attemptedAt: Date?
    /// The number of failed checks since the last successful one.
    var failures = 0
    /// The pause after the last check, in seconds.
    var pause: Double = 0

    /// Returns whether a check is due.
    ///
    /// A last check in the future means that the clock was set back. Its age is then unknown, and a check is due.
    func isDue(at now: Date) -> Bool { dueAt(now) <= now }

    func dueAt(_ now: Date) -> Date {
        guard let attemptedAt, attemptedAt <= now else { return .distantPast }
        return attemptedAt.addingTimeInterval(pause)
    }

    mutating func succeeded(at now: Date, _ policy: TextStorePolicy) {
        attemptedAt = now
        failures = 0
        pause = policy.checkInterval.timeInterval
    }

    /// Bounds a saved pause by the policy, which may be stricter than the one of the process that saved it.
    func bounded(by policy: TextStorePolicy) -> ManifestRecord {
        var copy = self
        let limit = failures > 0 ? policy.longestDelay : policy.checkInterval
        copy.pause = min(max(0, pause), limit.timeInterval)
        copy.failures = min(max(0, failures), 1_000_000)
        return copy
    }

    mutating func failed(_ error: TextStoreError, at now: Date, _ policy: TextStorePolicy) {
        attemptedAt = now
        failures += 1
        pause = policy.delay(after: error, failures: failures).timeInterval
    }
}

extension VersionManifest {
    /// Returns the manifest without the entries that a version source refuses.
    func taken(by source: VersionSource) -> VersionManifest {
        guard source.preReleases == .refused else { return self }
        var copy = self
        for (identifier, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.version.isPreRelease {
            copy.entries[identifier] = nil
            copy.problems.append(
                Problem(
                    identifier: identifier,
                    reason: "\(entry.version) is a pre-release; allow pre-releases in the version source", group: entry.group)
            )
        }
        return copy
    }
}

extension VersionManifest.Problem {
    /// The problem as an error about its text.
    var refusal: TextStoreError {
        TextStoreError(.malformedEntry, identifier: identifier, "cannot use its entry in the manifest: \(reason); correct the entry")
    }
}
