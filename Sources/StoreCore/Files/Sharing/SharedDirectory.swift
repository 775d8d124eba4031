package import Dispatch
package import StoreCore
package import StorePlatform

/// The changes of a directory that several processes share: their order, their delivery, and the lock under which they are made.
///
/// All work runs on one serial queue, because a thread of Swift's concurrency pool must not wait for the lock of another process. Changes
/// of other processes are delivered on the queue, outside the file lock.
package final class SharedDirectory: Sendable {
    /// The name of the subdirectory for everything that is not a record.
    static let folderName = ".sharing"
    package let directory: Directory
    /// The random number of this user of the directory.
    package let writer: UInt64
    package let queue: DispatchQueue
    package let leaseKind: LeaseKind
    /// The permits for the files of this process's leases.
    package let leasePermits: Permits
    /// The changes, and the lock of the directory, which a process holds for one write.
    let log: SharedLog<SharedChange>
    /// The number of changes that a compaction keeps; it follows when there are twice as many.
    private let slots: Int
    /// Receives the notices; set once, before the first access.
    private let observer = Lock<(@Sendable (Notice) -> Void)?>(nil)
    /// All mutable state. Only the queue changes it; other threads read the position.
    package let state = Lock(State())
    /// Wakes the tasks that wait for the end of a lease.
    let leaseEvents = WatchedState(LeaseEvents())
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
        /// The numbers of the log; `nil` before the first reading, and in a new log.
        var numbers: ChangeNumbers?
        /// The number of changes in the log.
        var count = 0
        /// The ended leases of this process with files that tell the waiters the outcome.
        var endedLeases: [EndedLease] = []
    }

    package init(
        _ directory: Directory, durability: Durability = .crash, protection: FileProtection = .inherited, slots: Int = 1024,
        leaseKind: LeaseKind = .ofPlatform, patience: Duration = .seconds(5), endingTime: Duration = .seconds(60),
        leasePermits: Permits = DescriptorShare.leases
    ) {
        self.directory = directory
        self.slots = slots
        self.leaseKind = leaseKind
        self.leasePermits = leasePermits
        self.endingTime = endingTime
        writer = .random(in: 1...UInt64.max)
        queue = DispatchQueue(label: "StoreCore.SharedDirectory")
        var options = SharedLog<SharedChange>.Options()
        (options.folder, options.name, options.acceptsForeign) = (Self.folderName, "changes", true)
        (options.durability, options.protection, options.patience) = (durability, protection, patience)
        log = SharedLog(directory, .changes, options, queue: queue)
    }

    package var path: String { log.folderPath }

    package var position: Revision { state.withLock { $0.position ?? .none } }

    /// Sets the receiver of notices, which is called on the queue.
    package func observe(_ observer: @escaping @Sendable (Notice) -> Void) { self.observer.withLock { $0 = observer } }

    func onNotice(_ notice: Notice) { observer.withLock { $0 }?(notice) }

    /// Runs work that may block on the directory's queue, and returns its result.
    package func perform<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Swift.Result { try work() }) }
        }
    }

    // MARK: Transactions

    /// The data that a transaction may read and change under the lock of the directory.
    package struct Transaction {
        fileprivate var log: SharedLog<SharedChange>.Transaction
        fileprivate(set) var numbers: ChangeNumbers
        fileprivate var count: Int
        fileprivate let writer: UInt64

        /// The folder of everything that is not a record.
        package var folder: DirectoryHandle { log.folder }
        /// The file of the lock; it loses its name when the directory is removed.
        var lock: WritableFile { log.lock }

        /// Appends a change of a key, and returns its revision. It is greater than that of the existing record, even if a loss of power has
        /// set the log back.
        mutating func appendChange(of key: FileKey, schema: Int64, above known: Revision = .none) throws(StoreError) -> Revision {
            let revision = next(above: known)
            try append(.changed(revision, key.digest, key: key.json.count <= SharedChange.keyLimit ? key.json : nil, schema: schema))
            return revision
        }

        mutating func appendRemovalOfAll() throws(StoreError) { try append(.removedAll(next())) }

        /// Records that the files of some keys are removed, none of which was changed after this number.
        mutating func raiseFloor(to number: UInt64) throws(StoreError) {
            let number = min(number, numbers.head)
            if number > numbers.floor { try append(.floor(number)) }
        }

        /// The revision of the next change.
        func next(above known: Revision = .none) -> Revision {
            Revision(number: max(numbers.head, known.number) &+ 1, writer: writer)
        }

        fileprivate mutating func append(_ entry: SharedChange) throws(StoreError) {
            try log.append([entry])
            numbers.take(entry)
            count += 1
        }

        fileprivate mutating func keep(_ changes: [SharedChange]) throws(StoreError) {
            var first = numbers
            first.head = changes.first?.revision.map { $0.number - 1 } ?? numbers.head
            try log.replace(by: [.began(first)] + changes)
            count = changes.count
        }
    }

    /// Runs a transaction on the queue, then delivers the changes of others up to its end.
    ///
    /// The body runs under the lock of the directory, in this process and in all others. It runs again if another process removes the
    /// directory meanwhile.
    package func transact<Result: Sendable>(_ body: (inout Transaction) throws(StoreError) -> Result) throws(StoreError) -> Result {
        guard let result = try attempt(creating: true, body) else {
            throw .fileSystem("sharing", path: directory.path, errno: ENOENT)
        }
        return result
    }

    /// Delivers the changes of others, if the directory exists, and returns whether it does.
    @discardableResult
    package func catchUp() throws(StoreError) -> Bool {
        if state.withLock({ $0.position != nil }), log.isUpToDate { return true }
        if try attempt(creating: false, { (_) throws(StoreError) in true }) == true { return true }
        state.withLock { state in
            if state.position == nil { state.position = Revision.none }
        }
        return false
    }

    /// Runs a transaction; returns `nil` if the directory is missing and not to be created.
    func attempt<Result: Sendable>(
        creating: Bool, _ body: (inout Transaction) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        dispatchPrecondition(condition: .onQueue(queue))
        // Retries, because another process may remove the directory at any moment.
        for _ in 0..<8 {
            var delivery = Delivery()
            var failure: StoreError?
            var lock: WritableFile?
            let result = try log.transact(creating: creating, keepsFailed: false) { changes throws(StoreError) -> Result? in
                lock = changes.lock
                var transaction = try begin(changes, &delivery)
                defer {
                    delivery.end = transaction.numbers.head
                    state.withLock { ($0.numbers, $0.count) = (transaction.numbers, transaction.count) }
                    changes = transaction.log
                }
                do throws(StoreError) {
                    let result = try body(&transaction)
                    // A log that stays long is compacted later.
                    if transaction.count > 2 * slots {
                        try? transaction.keep(transaction.log.all().filter { $0.revision != nil }.suffix(slots))
                    }
                    return result
                } catch {
                    failure = error
                    return nil
                }
            }
            guard let lock else { return nil }
            deliver(delivery)
            // A change beside a log that was removed meanwhile reaches no other process, so it is made again.
            if lock.isNamed, log.openFile?.isNamed == true {
                if let failure { throw failure }
                if case .some(.some(let result)) = result { return result }
            }
        }
        return nil
    }

    /// Takes the news of the log, and begins a new list of changes if there is none.
    private func begin(
        _ log: SharedLog<SharedChange>.Transaction, _ delivery: inout Delivery
    ) throws(StoreError) -> Transaction {
        let news = log.news
        var (position, numbers, count) = state.withLock { ($0.position, $0.numbers, $0.count) }
        let start = numbers?.start
        if news.wasReplaced { (numbers, count) = (nil, 0) }
        // The number before the first of the unread changes.
        var before = numbers?.head
        for entry in news.entries {
            if numbers == nil, case .began(let first) = entry {
                (numbers, before) = (first, first.head)
            } else {
                numbers?.take(entry)
                count += 1
            }
        }
        let (isDamaged, found) = (!news.damages.isEmpty, numbers)
        var transaction = Transaction(log: log, numbers: found ?? .beginning(FileStatus.now()), count: count, writer: writer)
        // Revisions never restart. A log that ends below a known one was begun by a clock that was set back, or was restored from a backup.
        let known = position?.number ?? 0
        if transaction.numbers.head < known { (transaction.numbers.start, transaction.numbers.head) = (known, known) }
        if isDamaged {
            // A removal may be among the lost changes, so nothing that was decided on before may be saved without a record.
            transaction.numbers.head &+= 1
            transaction.numbers.floor = transaction.numbers.head
            try transaction.keep([])
        } else if transaction.numbers != found {
            try transaction.append(.began(transaction.numbers))
        }
        delivery.end = transaction.numbers.head
        guard let position else { return transaction }
        let changes = news.entries.filter { $0.revision.map { $0.number > position.number } ?? false }
        // Without a directory before, every change in the log is new. A log with another start replaces one that was removed.
        let isWhole =
            position == .none
            ? before == nil || before == found?.start
            : found != nil && start == transaction.numbers.start && before.map { $0 <= position.number } ?? false
        delivery.changes = isWhole && !isDamaged ? changes : nil
        return transaction
    }

    /// Removes all records for all users of the directory.
    ///
    /// A save that was decided on before is superseded, so nothing older comes back.
    func removeAll(depth: RecordFiles.Depth = .directory) throws(StoreError) {
        func remove() throws(StoreError) {
            try transact { transaction throws(StoreError) in
                try transaction.appendRemovalOfAll()
                try RecordFiles.removeFiles(in: directory, depth: depth)
            }
        }
        do throws(StoreError) { try remove() } catch {
            guard error.isFullDisk else { throw error }
            // The log, which may be a new one, has room for the change once the files are removed.
            try RecordFiles.removeFiles(in: directory, depth: depth)
            try remove()
        }
    }

    /// Removes all records in the same way; blocks the calling thread, which must not be the queue's.
    func removeAllAndWait(depth: RecordFiles.Depth) throws(StoreError) {
        let result = queue.sync { Result { () throws(StoreError) in try removeAll(depth: depth) } }
        try result.get()
    }

    /// Returns whether any process has shared the directory.
    package func exists() throws(StoreError) -> Bool { try FileStatus.of(path: log.path) != nil }

    // MARK: Delivery

    private struct Delivery {
        /// The changes of all users since the last delivery; `nil` if some are lost.
        var changes: [SharedChange]? = []
        /// The number up to which everything is delivered afterward.
        var end: UInt64 = 0
    }

    private func deliver(_ delivery: Delivery) {
        guard delivery.end > 0 else { return }
        for change in delivery.changes ?? [] {
            guard let revision = change.revision else { continue }
            if revision.writer != writer { deliver(change, revision) }
            move(to: revision.number)
        }
        if delivery.changes == nil { onNotice(.gap) }
        move(to: delivery.end)
    }

    private func deliver(_ change: SharedChange, _ revision: Revision) {
        guard case .changed(_, let digest, let key, let schema) = change else { return onNotice(.removedAll(revision)) }
        // A long key is only in the file of its record. Without the file, it is unknown which key has changed.
        guard let key = key ?? FileRecordFormat.key(in: directory, RecordFiles.name(of: digest)) else { return onNotice(.gap) }
        onNotice(.changed(key: key, revision, schema: schema))
    }

    /// Moves the position behind every change of this number by any writer.
    private func move(to number: UInt64) {
        state.withLock { $0.position = Revision(number: number, writer: .max) }
    }

    // MARK: Following

    /// Begins to follow the changes at the first call; runs on the queue.
    func follow() {
        guard !log.isFollowed else { return }
        log.follow(isImmediate: true) { [weak self] error in
            guard let self else { return }
            // The position counts from here on, so that no change between the following loads and the next attempt is missed.
            if state.withLock({ $0.position == nil }), (try? catchUp()) == nil { state.withLock { $0.position = Revision.none } }
            onNotice(.lost(error))
        } _: { [weak self] creating throws(StoreError) in
            guard let self else { return }
            if creating { try transact { (_) throws(StoreError) in } } else { try catchUp() }
        }
    }

    /// Ends following; events that are under way have no effect.
    func unfollow() { log.unfollow() }
}
