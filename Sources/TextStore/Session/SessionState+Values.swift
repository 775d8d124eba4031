internal import Foundation
import StoreCore
internal import StorePlatform

extension SessionState {
    /// The shelf's records of a text; a class, because it is large and copied often.
    final class Held: Sendable {
        let active: TextRecord?
        /// The record that was active before; read only if an active file is damaged.
        let previous: TextRecord?
        /// The record that waits for the activation of its set.
        let waiting: TextRecord?
        /// The key of the group with which the text was switched.
        let group: String?
        let floor: Floor?
        /// The time when the text was last found unchanged.
        let checked: Date?

        init(
            active: TextRecord?, previous: TextRecord?, waiting: TextRecord?, group: String?, floor: Floor?, checked: Date?
        ) {
            (self.active, self.previous, self.waiting) = (active, previous, waiting)
            (self.group, self.floor, self.checked) = (group, floor, checked)
        }
    }

    /// A shown bundled text that is newer than every earlier text and raises the floor.
    typealias Risen = (identifier: String, rank: Rank, digest: SHA256.Digest)

    /// A text of the bundle, read at its registration.
    struct BundledText: Sendable {
        var text: String
        var digest: SHA256.Digest
        var fileDigest: SHA256.Digest
    }

    /// The best available text; a class, so that a read holds the lock only for the lookup.
    final class Resolved: Sendable {
        let text: VersionedText
        let rank: Rank
        /// The period in which reads of the text need no action; `nil` if it is unknown.
        let quiet: Quiet?

        init(text: VersionedText, rank: Rank, quiet: Quiet? = nil) {
            self.text = text
            self.rank = rank
            self.quiet = quiet
        }

        func with(_ quiet: Quiet?) -> Resolved { Resolved(text: text, rank: rank, quiet: quiet) }

        /// Returns the text as it is shown after the manifest has expired.
        func text(ifExpired date: Date?) -> VersionedText {
            guard let date, text.staleSince == nil else { return text }
            var text = text
            text.staleSince = date
            return text
        }
    }

    /// A set with a failed fetch, or one that is held back.
    struct SetFailure: Sendable {
        var error: TextStoreError
        var count: Int
        /// The time of the next attempt; `nil` if only another manifest helps.
        var retryAt: MonotonicInstant?
        /// The verified texts of the set by their identifiers, which the next attempt need not fetch.
        var kept: [String: TextRecord] = [:]
    }

    /// A period of the wall clock in which reads need no action; setting the clock forward or back ends it.
    struct Quiet: Sendable {
        /// The era in which the period was computed; the period is void in any other era.
        let era: UInt64
        let from: Date
        let until: Date
        /// The instant at which a failed fetch is repeated, even if the clock is set back; `nil` without one.
        let deadline: MonotonicInstant?
        /// The time at which the manifest expired.
        let expiredSince: Date?
        /// Whether the period has no end; stored, because every read needs it.
        let isEndless: Bool

        init(era: UInt64, from: Date, until: Date, deadline: MonotonicInstant?, expiredSince: Date?) {
            self.era = era
            self.from = from
            self.until = until
            self.deadline = deadline
            self.expiredSince = expiredSince
            isEndless = until == .distantFuture && deadline == nil && expiredSince == nil
        }

        func contains(_ date: Date) -> Bool { from <= date && date < until }
    }
}
