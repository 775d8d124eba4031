package import Dispatch
#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
package import StoreCore
package import StorePlatform

/// The changes of a directory that several processes share: their order, their delivery, and the lock under which they are made.
///
/// All work runs on one serial queue, because a thread of Swift's concurrency pool must not wait for the lock of another process. Changes
/// of other processes are delivered on the queue, outside the file lock.
package final class SharedDirectory: Sendable {
    /// The name of the subdirectory for everything that is not a record.
    package static let folderName = ".sharing"
    private static let ringName = "changes"

    package let directory: Directory
    /// The random number of this user of the directory.
    package let writer: UInt64
    package let queue: DispatchQueue
    package let leaseKind: LeaseKind
    /// The permits for the files of this process's leases.
    package let leasePermits: Permits
    private let slots: UInt32
    private let durability: Durability
    /// Receives the notices; set once, before the first access.
    private let observer = Lock<(@Sendable (Notice) -> Void)?>(nil)
    /// All mutable state. Only the queue changes it; other threads read the position.
    package let state = Lock(State())
    /// Wakes the tasks that wait for the end of a lease.
    let leaseEvents = WatchedState(LeaseEvents())
    /// The lock of the directory, which a process holds for one write.
    private let lock: PatientLock
    /// The time within which waiters read how a lease has ended.
    package let endingTime: Duration

    /// A fact that concerns the user of the directory.
    package enum Notice: Sendable {
        /// Another user saved or removed a record. The key is its canonical JSON. The schema is unknown after a change by an older version of
        /// the package.
        case changed(key: [UInt8], Revision, schema: Int64?)
        case removedAll(Revision)
        /// Changes may have been lost, so any record may have changed.
        case gap
        /// The directory cannot be followed, for this reason. It is reported once, until following works again.
        case lost(StoreError)
    }

    package struct State: Sendable {
        /// The last delivered change: `nil` before the first access, `.none` while there is no directory.
        var position: Revision?
        /// The start of the ring to which the position belongs.
        var start: UInt64 = 0
        var files: Files?
        var following = Following()
        /// The ended leases of this process with files that tell the waiters the outcome.
        var endedLeases: [EndedLease] = []
    }

    package struct Files: Sendable {
        let folder: DirectoryHandle
        let ring: WritableFile
        /// The watch on the ring; `nil` while the directory is not followed.
        var watch: FileWatch?
        /// The watch on the directory, because the ring does not notice that its directory is renamed.
        var directoryWatch: FileWatch?
    }

    package init(
        _ directory: Directory, durability: Durability = .crash, slots: UInt32 = ChangeRing.defaultSlots,
        leaseKind: LeaseKind = .ofPlatform, patience: Duration = .seconds(5), endingTime: Duration = .seconds(60),
        leasePermits: Permits = DescriptorShare.leases
    ) {
        self.directory = directory
        self.durability = durability
        self.slots = slots
        self.leaseKind = leaseKind
        self.leasePermits = leasePermits
        lock = PatientLock(patience: patience)
        self.endingTime = endingTime
        writer = .random(in: 1...UInt64.max)
        queue = DispatchQueue(label: "StoreCore.SharedDirectory")
    }

    package var path: String { directory.path(of: Self.folderName) }
    package var ringPath: String { path + "/" + Self.ringName }

    /// The revision up to which all changes have been delivered.
    package var position: Revision { state.withLock { $0.position ?? .none } }

    /// Sets the receiver of notices, which is called on the queue.
    package func observe(_ observer: @escaping @Sendable (Notice) -> Void) { self.observer.withLock { $0 = observer } }

    package func onNotice(_ notice: Notice) { observer.withLock { $0 }?(notice) }

    /// Runs work that may block on the directory's queue, and returns its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    // MARK: Transactions

    /// The data that a transaction may read and change under the lock of the directory.
    package struct Transaction {
        let files: Files
        var header: ChangeRing.Header
        fileprivate let writer: UInt64

        /// Adds a change to the ring.
        ///
        /// - Parameters:
        ///   - kind: The kind of change.
        ///   - key: The key; `nil` for a change of all keys.
        ///   - schema: The version of the new record's schema; `nil` for a change of all keys.
        ///   - known: The revision of the existing record. The new revision is greater, even if a loss of power has set the ring back.
        /// - Returns: The revision of the change.
        mutating func append(
            _ kind: ChangeRing.Entry.Kind, _ key: FileKey?, schema: Int64? = nil, above known: Revision = .none
        ) throws(StoreError) -> Revision {
            let revision = Revision(number: max(header.head, known.number) &+ 1, writer: writer)
            let digest = key?.digest ?? SHA256.Digest(0, 0, 0, 0)
            let entry = ChangeRing.Entry(revision, kind, digest, key: key?.json, schema: schema)
            try files.ring.write(entry.bytes, at: Self.offset(of: revision.number, header))
            header.head = revision.number
            if kind == .removedAll { header.floor = revision.number }
            try files.ring.write(header.bytes, at: 0)
            return revision
        }

        /// Records that the files of some keys are removed, none of which was changed after this number.
        mutating func raiseFloor(to number: UInt64) throws(StoreError) {
            guard number > header.floor else { return }
            header.floor = min(number, header.head)
            try files.ring.write(header.bytes, at: 0)
        }

        /// Returns the changes after a position; `nil` if some are lost.
        func entries(after position: UInt64) throws(StoreError) -> [ChangeRing.Entry]? {
            guard position != header.head else { return [] }
            guard let numbers = header.numbers(after: position) else { return nil }
            var entries: [ChangeRing.Entry] = []
            entries.reserveCapacity(numbers.count)
            for number in numbers {
                let bytes = try files.ring.read(ChangeRing.slotSize, at: Self.offset(of: number, header))
                guard let entry = ChangeRing.Entry(bytes, number: number) else { return nil }
                entries.append(entry)
            }
            return entries
        }

        private static func offset(of number: UInt64, _ header: ChangeRing.Header) -> Int {
            ChangeRing.headerSize + Int(number % UInt64(header.slots)) * ChangeRing.slotSize
        }
    }

    /// Runs a transaction on the queue, then delivers the changes of others up to its end.
    ///
    /// - Parameter body: Runs under the lock of the directory, in this process and in all others. Runs again if another process removes the
    ///   directory meanwhile.
    package func transact<Result>(_ body: (inout Transaction) throws(StoreError) -> Result) throws(StoreError) -> Result {
        guard let result = try attempt(creating: true, body) else {
            throw .fileSystem("sharing", path: directory.path, errno: ENOENT)
        }
        return result
    }

    /// Delivers the changes of others, if the directory exists.
    ///
    /// - Returns: Whether it exists.
    @discardableResult
    package func catchUp() throws(StoreError) -> Bool {
        if try isUpToDate() { return true }
        if try attempt(creating: false, { (_) throws(StoreError) in true }) == true { return true }
        state.withLock { state in
            if state.position == nil { state.position = Revision.none }
        }
        return false
    }

    /// Whether every change has been delivered; reads only the header, and needs no lock.
    private func isUpToDate() throws(StoreError) -> Bool {
        let (files, position, start) = state.withLock { ($0.files, $0.position, $0.start) }
        guard let files, let position, files.ring.isNamed else { return false }
        let header = ChangeRing.Header(try files.ring.read(ChangeRing.headerSize, at: 0))
        return header?.start == start && header?.head == position.number
    }

    private func attempt<Result>(
        creating: Bool, _ body: (inout Transaction) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        dispatchPrecondition(condition: .onQueue(queue))
        // Retries, because another process may remove the directory at any moment.
        for _ in 0..<8 {
            guard let files = try open(creating: creating) else { return nil }
            var delivery = Delivery.nothing
            var failure: StoreError?
            let result = try lock.withLock(files.ring, named: Self.ringName, in: files.folder) { () throws(StoreError) -> Result? in
                guard files.ring.isNamed else { return nil }
                var transaction = Transaction(files: files, header: try header(of: files), writer: writer)
                delivery = try prepareDelivery(transaction)
                do throws(StoreError) {
                    let result = try body(&transaction)
                    delivery.end = transaction.header.head
                    return result
                } catch {
                    delivery.end = transaction.header.head
                    failure = error
                    return nil
                }
            }
            deliver(delivery)
            // A change beside a ring that was removed meanwhile reaches no other process, so it is made again.
            if files.ring.isNamed {
                if let failure { throw failure }
                if let result { return result }
            }
            state.withLock { $0.files = nil }
        }
        return nil
    }

    /// Reads the header, and begins a new ring if there is none.
    private func header(of files: Files) throws(StoreError) -> ChangeRing.Header {
        let bytes = try files.ring.read(ChangeRing.headerSize, at: 0)
        if let version = ChangeRing.version(of: bytes), version != ChangeRing.version {
            throw StoreError(
                .unreadableRecord,
                "sharing \(directory.path.escapedForDisplay()): its list of changes has version \(version), and this program reads version "
                    + "\(ChangeRing.version); update the older program, or choose another directory")
        }
        let existing = ChangeRing.Header(bytes)
        var header = existing ?? ChangeRing.Header(slots: slots, now: FileStatus.now())
        let known = position.number
        // Revisions never restart. A ring that ends below a known one was begun by a clock that was set back, or was restored from a backup.
        if header.head < known { (header.start, header.head) = (known, known) }
        if header != existing { try files.ring.write(header.bytes, at: 0) }
        return header
    }

    /// Opens the files, unless they are open and still have their names.
    ///
    /// - Returns: `nil` if they are missing and not to be created.
    package func open(creating: Bool) throws(StoreError) -> Files? {
        if let files = state.withLock({ $0.files }), files.ring.isNamed { return files }
        var parent = try DirectoryHandle(opening: directory)
        if parent == nil, creating {
            try directory.create(durability: durability)
            parent = try DirectoryHandle(opening: directory)
        }
        guard let parent else { return nil }
        let folder =
            if creating { try parent.makeDirectory(Self.folderName, durability: durability, mode: 0o700) } else {
                try parent.directory(Self.folderName)
            }
        guard let folder else { return nil }
        // Opening the ring would create it.
        if !creating, try folder.status(of: Self.ringName) == nil { return nil }
        let files = Files(folder: folder, ring: try WritableFile(Self.ringName, in: folder, mode: 0o600))
        state.withLock { $0.files = files }
        // The new files need a watch.
        schedule()
        return files
    }

    /// Removes all records for all users of the directory.
    ///
    /// A save that was decided on before is superseded, so nothing older comes back.
    func removeAll(depth: RecordFiles.Depth = .directory) throws(StoreError) {
        try transact { transaction throws(StoreError) in
            do throws(StoreError) {
                _ = try transaction.append(.removedAll, nil)
                try RecordFiles.removeFiles(in: directory, depth: depth)
            } catch {
                guard error.isFullDisk else { throw error }
                // The ring has room for the change once the files are removed.
                try RecordFiles.removeFiles(in: directory, depth: depth)
                _ = try transaction.append(.removedAll, nil)
            }
        }
    }

    /// Removes all records in the same way; blocks the calling thread, which must not be the queue's.
    func removeAllAndWait(depth: RecordFiles.Depth) throws(StoreError) {
        let result = queue.sync { Result { () throws(StoreError) in try removeAll(depth: depth) } }
        try result.get()
    }

    /// Returns whether any process has shared the directory.
    package func exists() throws(StoreError) -> Bool { try FileStatus.of(path: ringPath) != nil }

    // MARK: Delivery

    /// The changes to deliver after a transaction.
    private struct Delivery {
        /// The changes of all users since the last delivery; `nil` if some are lost.
        var entries: [ChangeRing.Entry]?
        var isFirst = false
        var start: UInt64 = 0
        /// The number up to which everything is delivered afterward.
        var end: UInt64 = 0

        static var nothing: Delivery { Delivery(entries: []) }
    }

    private func prepareDelivery(_ transaction: Transaction) throws(StoreError) -> Delivery {
        let (position, start) = state.withLock { ($0.position, $0.start) }
        var delivery = Delivery(entries: [], start: transaction.header.start, end: transaction.header.head)
        guard let position else {
            delivery.isFirst = true
            return delivery
        }
        if position == .none {
            // There was no directory, so every change in the ring is new.
            delivery.entries = try transaction.entries(after: delivery.start)
        } else {
            // A ring with another start replaces one that was removed.
            delivery.entries = start == delivery.start ? try transaction.entries(after: position.number) : nil
        }
        return delivery
    }

    private func deliver(_ delivery: Delivery) {
        guard delivery.start != 0 else { return }
        if let entries = delivery.entries {
            for entry in entries {
                if entry.revision.writer != writer { deliver(entry) }
                move(to: entry.revision.number, delivery.start)
            }
        } else {
            onNotice(.gap)
        }
        move(to: delivery.end, delivery.start)
    }

    private func deliver(_ entry: ChangeRing.Entry) {
        switch entry.kind {
        case .removedAll: onNotice(.removedAll(entry.revision))
        case .changed:
            // A long key is only in the file of its record. Without the file, it is unknown which key has changed.
            guard let key = entry.key ?? FileRecordFormat.key(in: directory, RecordFiles.name(of: entry.digest)) else {
                return onNotice(.gap)
            }
            onNotice(.changed(key: key, entry.revision, schema: entry.schema))
        }
    }

    private func move(to number: UInt64, _ start: UInt64) {
        state.withLock { state in
            // After every change of this number by any writer.
            state.position = Revision(number: number, writer: .max)
            state.start = start
        }
    }
}
