internal import Foundation
import StoreCore

extension SessionState {
    /// What the shelf has of a text; an object, for it is passed on and looked at often, and there is much in it.
    final class Held: Sendable {
        let active: TextRecord?
        /// Read only where an active file is damaged.
        let previous: TextRecord?
        /// Whether the active file is damaged.
        let isDamaged: Bool
        /// By the sets that wait.
        let pending: [String: TextRecord]
        let floor: Floor?
        /// When it was last found unchanged.
        let checked: Date?

        init(
            active: TextRecord?, previous: TextRecord?, isDamaged: Bool, pending: [String: TextRecord], floor: Floor?, checked: Date?
        ) {
            self.active = active
            self.previous = previous
            self.isDamaged = isDamaged
            self.pending = pending
            self.floor = floor
            self.checked = checked
        }
    }

    /// A bundled text that is shown and newer than all that was: it raises the floor.
    struct Risen: Sendable {
        var identifier: String
        var rank: Rank
        var digest: SHA256.Digest
    }

    /// A text of the bundle.
    struct BundledText: Sendable {
        var text: String
        var digest: SHA256.Digest
        var fileDigest: SHA256.Digest
    }

    /// The best text that is here; an object, so that who reads holds the lock no longer than it takes to find it.
    final class Resolved: Sendable {
        let text: VersionedText
        let rank: Rank
        /// When nothing needs to be done for it; `nil` where that is not known.
        let quiet: Quiet?

        init(text: VersionedText, rank: Rank, quiet: Quiet? = nil) {
            self.text = text
            self.rank = rank
            self.quiet = quiet
        }

        func with(_ quiet: Quiet?) -> Resolved { Resolved(text: text, rank: rank, quiet: quiet) }

        /// The text as it is shown when what is known of versions has expired.
        func text(ifExpired date: Date?) -> VersionedText {
            guard let date, text.staleSince == nil else { return text }
            var text = text
            text.staleSince = date
            return text
        }
    }

    /// A set that could not be fetched, or is held back.
    struct SetFailure: Sendable {
        var error: TextStoreError
        var count: Int
        /// `nil` where only another manifest helps, not time.
        var retryAt: MonotonicInstant?
        /// Verified texts of the set, by their identifiers: only the others are fetched again.
        var kept: [String: TextRecord] = [:]
    }

    /// A stretch of the wall clock, so that who sets that clock ends it, forwards as well as backwards.
    struct Quiet: Sendable {
        /// The era in which that was found; in another one it no longer holds.
        let era: UInt64
        let from: Date
        let until: Date
        /// When the manifest has expired.
        let expiredSince: Date?
        /// Whether time has no part in anything; worked out once, for it is asked at each read.
        let isEndless: Bool

        init(era: UInt64, from: Date, until: Date, expiredSince: Date?) {
            self.era = era
            self.from = from
            self.until = until
            self.expiredSince = expiredSince
            isEndless = until == .distantFuture && expiredSince == nil
        }

        func contains(_ date: Date) -> Bool { from <= date && date < until }
    }
}
