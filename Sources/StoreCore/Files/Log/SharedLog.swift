package import Dispatch
package import StoreCore
package import StorePlatform

// One file, many processes.
//
// The log is a file to which its users append entries. A user is one object of this class, in any process. All users see the entries in the
// order of the file, and a user decides on its entries under the lock of the log, after it has received all entries of the others.
// Therefore the decisions of two users never conflict.
//
// **The lock** is a file of its own, because the log may be replaced while a user waits for it. The system releases the lock when its holder
// ends. A holder that is stopped delays the others for the patience of ``FileLock``, and then their calls throw. Under the lock, a user first
// compares the open files with their names: another user may have replaced the log, and anything may have removed the directory.
//
// **The torn tail.** An append is one write. A process that is killed during it, or a disk that is full, leaves a part of the append behind
// the last complete one. That part was never acknowledged: readers end before it, and the next append cuts it off. Zeros at the end, which
// a loss of power may leave, are a torn tail, too. Anything else that is not an entry is damage: it is reported once to each user, and the
// entries behind it count.
//
// **Compaction** writes the entries that still count to a new file, which takes the log's name in one step. A reader that has the old file
// open reads all of it. A killed compaction leaves a temporary file, which a later user removes.
//
// **News and the gap.** What a user receives is either the entries behind its position, or, after a compaction by another user, all entries
// of the new file: a gap. The user then forgets what it has derived from the old entries, or finds its place in the new ones by their
// numbers.
//
//     no file ──append──▶ entries ◀──────────────── cut and append ──────────────┐
//                          │    ▲ └──kill in an append──▶ entries, torn tail ────┘
//              compaction  │    │                                  │ compaction
//                          ▼    └───append─── fresh entries ◀──────┘
//                   fresh entries    (users with the old file: a gap)
//
//     any state ──directory removed──▶ no file (all users: a gap)
//     any state ──flipped bits──▶ the same entries without the damaged ones, until a compaction

/// A file of checksummed entries that several processes share, each deciding under the lock of the log.
///
/// A call takes microseconds, and blocks its thread only while another process holds the lock, for a few seconds at most.
package final class SharedLog<Entry: LogEntry>: Sendable {
    /// The entries since the last reading.
    package struct News: Sendable {
        package var entries: [Entry] = []
        package var damages: [LogDamage] = []
        /// Whether another user has replaced the log, so that the entries are those of the whole log.
        package var wasReplaced = false

        package init(entries: [Entry] = [], damages: [LogDamage] = [], wasReplaced: Bool = false) {
            (self.entries, self.damages, self.wasReplaced) = (entries, damages, wasReplaced)
        }

        /// Whether the log has neither grown nor been replaced, and no damage was found.
        package var isEmpty: Bool { entries.isEmpty && damages.isEmpty && !wasReplaced }
    }

    /// The place and the habits of a log.
    package struct Options: Sendable {
        /// The subdirectory of the log; `nil` if the log is in the directory itself.
        package var folder: String?
        package var name = "log"
        package var lockName = "lock"
        /// Whether a file that is not a log counts as a damaged log. Otherwise the log refuses it.
        var acceptsForeign = false
        /// The durability of the directory and of a compaction.
        package var durability = Durability.power
        /// The times at which the entries can be read, on systems that encrypt each file.
        package var protection = FileProtection.inherited
        package var patience = Duration.seconds(5)
        /// The shortest time between two passes of following.
        package var pace = Duration.zero
        /// The longest delay between two attempts to follow.
        package var longestDelay = Duration.seconds(60)

        package init() {}
    }

    package let directory: Directory
    let options: Options
    package let queue: DispatchQueue
    /// The open files and the position. Locked during a whole call, so that two calls do not interleave.
    private let state: Lock<State>
    /// `nil` while the log is not followed.
    let following = Lock<Following?>(nil)
    let follower: FileFollower
    /// The path of the directory that contains the log and its lock.
    let folderPath: String
    package let path: String

    private struct State: Sendable {
        var files: Files?
        var log: LogFile<Entry>
    }

    private struct Files: Sendable {
        let folder: DirectoryHandle
        let lock: FileLock
    }

    /// Makes a user of a log, which is followed on the serial queue; opens no file. The first write creates the directory.
    package init(_ directory: Directory, _ format: LogFormat, _ options: Options = Options(), queue: DispatchQueue? = nil) {
        let queue = queue ?? DispatchQueue(label: "StoreFiles.SharedLog")
        let folderPath = options.folder.map { directory.path(of: $0) } ?? directory.path
        let path = Directory(path: folderPath).path(of: options.name)
        (self.directory, self.options, self.queue, self.folderPath, self.path) = (directory, options, queue, folderPath, path)
        follower = FileFollower(path, in: directory, pace: options.pace, longestDelay: options.longestDelay, on: queue)
        let log = LogFile<Entry>(options.name, format, acceptsForeign: options.acceptsForeign, protection: options.protection)
        state = Lock(State(log: log))
    }

    /// The size of the log in bytes, as far as this user has read it.
    package var byteCount: Int { state.withLock { $0.log.position } }
    /// Whether the log has no unread entries; needs no lock.
    package var isUpToDate: Bool { state.withLock { $0.log.isUpToDate } }
    /// The file that was read last.
    var openFile: WritableFile? { state.withLock { $0.log.file } }

    // MARK: Reading and appending

    /// Returns the entries that other users have appended since the last reading; at first, all entries.
    ///
    /// Throws ``StoreError/Code/unreadableRecord`` if the file is no log of this version, which stays unchanged. After an error, the next
    /// call returns the same entries.
    package func read() throws(StoreError) -> News {
        if isUpToDate { return News() }
        return try transact { transaction throws(StoreError) in transaction.news }
    }

    /// Appends entries in one write, and returns the unread entries before them. A reader finds all of them or none; later readings of this
    /// user do not contain them.
    ///
    /// An error, which may be one of ``read()``, leaves the log unchanged, and the unread entries unread.
    package func append(_ entries: [Entry], durability: Durability) throws(StoreError) -> News {
        try transact(keepsFailed: false) { transaction throws(StoreError) in
            try transaction.append(entries, durability: durability)
            return transaction.news
        }
    }

    /// Appends the entries that a closure returns; no other process can append between its decision and the write.
    ///
    /// The closure must not call the log. It receives the unread entries, which count as read from then on. Its error, and each of
    /// ``read()``, leaves the log unchanged.
    package func append(durability: Durability, _ decide: (News) throws -> [Entry]) throws {
        try transact(decide) { transaction, entries throws(StoreError) in try transaction.append(entries, durability: durability) }
    }

    /// Replaces the log in one step with the entries that a closure returns.
    ///
    /// The closure must not call the log. It receives the unread entries, which count as read from then on. Unless a missing log is
    /// created, nothing happens without one, and the closure is not called. An error leaves the old log, unless only the synchronization of
    /// the directory failed.
    package func compact(creating: Bool = true, _ keep: (News) throws -> [Entry]) throws {
        try transact(creating: creating, keep) { transaction, entries throws(StoreError) in
            do throws(StoreError) { try transaction.replace(by: entries) } catch {
                // A disk may have no room for another file. A missing log has no entries either.
                guard entries.isEmpty, error.isFullDisk else { throw error }
                try transaction.remove()
            }
        }
    }

    /// Keeps the error of a user's closure apart from the errors of the log.
    private func transact(
        creating: Bool = true, _ decide: (News) throws -> [Entry], _ write: (inout Transaction, [Entry]) throws(StoreError) -> Void
    ) throws {
        let result: Result<Void, any Error>? = try transact(creating: creating) { transaction throws(StoreError) in
            let entries: [Entry]
            do { entries = try decide(transaction.news) } catch { return .failure(error) }
            return .success(try write(&transaction, entries))
        }
        if result == nil, creating { throw removedAgain }
        try result?.get()
    }

    // MARK: Transactions

    /// A decision under the lock of the log: the news, and the changes that follow from them.
    package struct Transaction {
        /// The entries that were unread before; they count as read.
        package let news: News
        package let folder: DirectoryHandle
        /// The lock's file. It loses its name when the directory is removed.
        package let lock: WritableFile
        fileprivate var log: LogFile<Entry>
        fileprivate let durability: Durability

        package mutating func append(_ entries: [Entry], durability: Durability = .crash) throws(StoreError) {
            try log.append(entries, durability: durability, in: folder)
        }

        package mutating func replace(by entries: [Entry]) throws(StoreError) {
            try log.replace(by: entries, durability: durability, in: folder)
        }

        fileprivate mutating func remove() throws(StoreError) {
            try folder.remove(log.name)
            if durability == .power { try folder.synchronize() }
            log = LogFile(copyOf: log)
        }

        /// Returns all intact entries of the log.
        package func all() throws(StoreError) -> [Entry] {
            var copy = LogFile<Entry>(copyOf: log), entries: [Entry] = []
            _ = try copy.read(in: folder) { entries.append($0) }
            return entries
        }
    }

    /// Runs a closure under the lock of the log, as the method that takes `creating` does; creates a missing directory.
    package func transact<Result: Sendable>(
        keepsFailed: Bool = true, _ body: (inout Transaction) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard let result = try transact(creating: true, keepsFailed: keepsFailed, body) else { throw removedAgain }
        return result
    }

    private var removedAgain: StoreError {
        let path = directory.path.escapedForDisplay()
        return StoreError(.fileSystem, "cannot keep a log in \(path), which is removed again and again; choose another directory")
    }

    /// Runs a closure under the lock of the log; returns `nil` if the log is missing and not to be created.
    ///
    /// - Parameters:
    ///   - keepsFailed: Whether the news of a transaction that throws count as read.
    ///   - body: Decides and changes. It must not call the log. It runs again if the directory is removed meanwhile.
    package func transact<Result: Sendable>(
        creating: Bool, keepsFailed: Bool = true, _ body: (inout Transaction) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        try access(creating: creating) { files, state throws(StoreError) in
            var (log, news) = (state.log, News())
            let reading = try log.read(in: files.folder) { news.entries.append($0) }
            (news.damages, news.wasReplaced) = (reading.damages, reading.wasReplaced)
            var transaction = Transaction(news: news, folder: files.folder, lock: files.lock.file, log: log, durability: options.durability)
            do throws(StoreError) {
                let result = try body(&transaction)
                state.log = transaction.log
                return result
            } catch {
                if keepsFailed { state.log = transaction.log }
                throw error
            }
        }
    }

    private func access<Result: Sendable>(
        creating: Bool, _ body: (Files, inout State) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        try state.withLock { state throws(StoreError) in
            // Retries, because the directory may be removed at any moment.
            for _ in 0..<8 {
                guard let files = try open(creating: creating, &state) else {
                    if creating { continue }
                    return nil
                }
                do throws(StoreError) {
                    // Reading would create a missing log. Another process may have created it in a new directory.
                    var isMissing = false
                    if !creating { isMissing = try files.folder.status(of: options.name) == nil }
                    if !isMissing, let result = try files.lock.withLock({ () throws(StoreError) in try body(files, &state) }) {
                        return result
                    }
                } catch {
                    // A disk that was removed may come back at the path, and files that were open before stay unusable.
                    if files.folder.isReached(by: Directory(path: folderPath)) { throw error }
                    state.files = nil
                    // The directory was removed in the middle of the change, which is made again.
                    guard error.fileSystemErrno == ENOENT else { throw error }
                }
                state.files = nil
            }
            return nil
        }
    }

    private func open(creating: Bool, _ state: inout State) throws(StoreError) -> Files? {
        // The caller checks under the lock whether the lock's file still has its name.
        if let files = state.files { return files }
        var parent = try DirectoryHandle(opening: directory)
        if parent == nil, creating {
            try directory.create(durability: options.durability)
            parent = try DirectoryHandle(opening: directory)
        }
        guard let parent, let folder = try folder(in: parent, creating: creating) else { return nil }
        // Opening the files would create them.
        for name in creating ? [] : [options.name, options.lockName] where try folder.status(of: name) == nil { return nil }
        // A process may wait for changes while the device is locked, if the entries can be read then.
        let lock = try FileLock(options.lockName, in: folder, patience: options.patience, protection: options.protection)
        let files = Files(folder: folder, lock: lock)
        state.files = files
        // The new files need a watch.
        schedule()
        return files
    }

    private func folder(in parent: DirectoryHandle, creating: Bool) throws(StoreError) -> DirectoryHandle? {
        guard let name = options.folder else { return parent }
        return creating ? try parent.makeDirectory(name, durability: options.durability, mode: 0o700) : try parent.directory(name)
    }

    /// Creates a missing log, checks the format of an existing one, and removes the files of interrupted compactions.
    package func prepare() throws(StoreError) {
        let isPrepared: Void? = try access(creating: true) { files, state throws(StoreError) in
            try LogFile<Entry>.removeOrphans(in: files.folder)
            try state.log.check(in: files.folder)
        }
        if isPrepared == nil { throw removedAgain }
    }
}

extension SharedLog.News: Equatable where Entry: Equatable {}
