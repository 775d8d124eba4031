internal import Foundation
import StoreCore

/// The last manifest of the origin with the validator that describes it, and when it was and may be asked for; saved as one.
struct ManifestRecord: Codable, Hashable, Sendable {
    /// The manifest's address; a record of another one is of no use.
    var url: String
    /// The bytes as they came; `nil` where none came yet.
    var body: Data?
    var validator: Validator?
    /// The header fields of the response; kept only for a verifier, which sees them again at the next start.
    var headers: [String: String]?
    /// When these bytes came.
    var receivedAt: Date?
    /// When the origin was last asked, and has answered or failed.
    var attemptedAt: Date?
    /// Failures since the last answer.
    var failures = 0
    /// How long to wait since the last attempt, in seconds.
    var pause: Double = 0

    init(url: String) { self.url = url }

    /// Whether the origin may be asked again.
    ///
    /// An attempt in the future says that the clock was set back, and then nobody knows how long ago it was.
    func isDue(at now: Date) -> Bool { dueAt(now) <= now }

    /// When the origin may be asked again.
    func dueAt(_ now: Date) -> Date {
        guard let attemptedAt, attemptedAt <= now else { return .distantPast }
        return attemptedAt.addingTimeInterval(pause)
    }

    mutating func succeeded(at now: Date, _ policy: TextStorePolicy) {
        attemptedAt = now
        failures = 0
        pause = policy.checkInterval.timeInterval
    }

    mutating func failed(_ error: TextStoreError, at now: Date, _ policy: TextStorePolicy) {
        attemptedAt = now
        failures += 1
        pause = policy.delay(after: error, failures: failures).timeInterval
    }
}

extension VersionManifest {
    /// The manifest without what a version source does not take.
    func taken(by source: VersionSource) -> VersionManifest {
        guard source.preReleases == .refused else { return self }
        var copy = self
        for (identifier, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.version.isPreRelease {
            copy.entries[identifier] = nil
            copy.problems.append(
                Problem(
                    identifier: identifier, reason: "\(entry.version) is a pre-release; allow them where that is meant", group: entry.group)
            )
        }
        return copy
    }

    /// The problems as errors, each about its text.
    var refusals: [TextStoreError] {
        problems.map { TextStoreError(.malformedEntry, identifier: $0.identifier, "its entry in the manifest is not used: \($0.reason)") }
    }
}
