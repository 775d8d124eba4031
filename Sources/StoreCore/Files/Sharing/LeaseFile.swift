#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore
package import StorePlatform

/// The means by which a lease keeps others out, and therefore its end if the holder ends first.
package enum LeaseKind: Hashable, Sendable {
    /// By a lock on the lease's file, which the system releases when the holder ends.
    case locked
    /// By a date in the lease's file. If the holder ends without ending its lease, the lease lasts until that date.
    case dated

    /// The kind for this platform. A system that suspends processes terminates a suspended process that holds a lock.
    package static var ofPlatform: LeaseKind { SystemTraits.suspendsProcesses ? .dated : .locked }
}

/// The content of a lease's file, in JSON. It is read and written under the lock of the directory only.
package struct LeaseNote: Codable, Hashable, Sendable {
    /// The random number of the lease that is held; `nil` if none is.
    package var holder: UInt64?
    /// The seconds since 1970 at which the held lease ends.
    package var expires: Double = 0
    /// The lease that ended last, if its waiters need to know how.
    package var ended: Ended?

    package struct Ended: Codable, Hashable, Sendable {
        package var holder: UInt64
        /// The failure; `nil` if the result cannot be stored.
        package var failure: FetchFailedElsewhere?
    }

    private static let sizeLimit = 16_384

    package init(holder: UInt64? = nil, expires: Double = 0, ended: Ended? = nil) {
        self.holder = holder
        self.expires = expires
        self.ended = ended
    }

    /// Reads the note in a lease's file, and whether the file is locked; without a file, an empty note.
    package static func read(_ name: String, in folder: DirectoryHandle) throws(StoreError) -> (note: LeaseNote, isLocked: Bool) {
        guard let file = try OpenFile(reading: name, in: folder) else { return (LeaseNote(), false) }
        return (LeaseNote(try file.read(sizeLimit, at: 0)), try file.isLocked())
    }

    /// Reads a note; an empty or damaged file holds an empty note, because a holder may be killed while it writes.
    package init(reading file: WritableFile) throws(StoreError) {
        self.init(try file.readAll(atMost: Self.sizeLimit))
    }

    private init(_ json: [UInt8]) {
        // A damaged note counts as empty: a lock on the file still tells that the lease is held, and a dated lease is free then.
        self = (try? JSONDecoder().decode(LeaseNote.self, from: Data(json))) ?? LeaseNote()
    }

    package func write(to file: WritableFile) throws(StoreError) {
        let data: Data
        do { data = try JSONEncoder().encode(self) } catch {
            throw StoreError(.unwritableRecord, "encoding the state of a lease", underlyingError: error)
        }
        try file.write(Array(data), at: 0)
        try file.truncate(to: data.count)
    }

    /// Returns the time until the held lease ends, at most `duration`, because a clock that was set back must not prolong a lease.
    package func remaining(atMost duration: Duration) -> Duration {
        min(duration, Duration(saturating: expires - Date().timeIntervalSince1970))
    }
}
