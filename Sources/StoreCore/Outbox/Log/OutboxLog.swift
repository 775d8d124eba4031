internal import Dispatch
#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif
package import StoreCore
internal import StoreFiles
internal import StorePlatform

/// An append-only file of checksummed records that several processes share.
///
/// The log knows nothing about the meaning of a record. A *user* of the log is one object of this class, in any process. All users see the
/// records in the order of the file. A user decides on its records under the lock of the log, after it has received all records of the
/// others. Therefore the decisions of two users never conflict.
///
/// A call takes microseconds, and blocks its thread only while another process holds the lock, for a few seconds at most.
package final class OutboxLog: Sendable {
    /// The records since the last reading.
    package struct News: Hashable, Sendable {
        /// The records in the order of the log.
        package var records: [Data] = []
        /// The damaged parts, which were skipped.
        package var damages: [Damage] = []
        /// Whether another user has replaced the log, so that the records are those of the whole log.
        package var wasReplaced = false

        package init(records: [Data] = [], damages: [Damage] = [], wasReplaced: Bool = false) {
            self.records = records
            self.damages = damages
            self.wasReplaced = wasReplaced
        }

        /// Whether the log has neither grown nor been replaced, and no damage was found.
        package var isEmpty: Bool { records.isEmpty && damages.isEmpty && !wasReplaced }
    }

    /// A part of the file that is not an intact entry.
    package struct Damage: Hashable, Sendable {
        /// The place in the file, in bytes.
        package var offset: Int
        /// The number of bytes that reading skips.
        package var length: Int
        /// The defect in words, for the event that reports it.
        package var reason: String
    }

    static let logName = "log"
    private static let lockName = "lock"

    let directory: Directory
    /// The position up to which this user has read, and the open files. Locked during a whole call, so that two calls do not interleave.
    private let state = Lock(State())
    private let lock = PatientLock()
    let watching = Lock(Watching())
    let queue = DispatchQueue(label: "StoreCore.OutboxLog")
    /// The leases of the deliverer; their files are in a folder of their own.
    let leases: SharedDirectory

    private struct State: Sendable {
        var files: Files?
        /// The log that was read; `nil` before the first reading.
        var log: WritableFile?
        /// The offset up to which the log was read. Everything before it is complete.
        var position = 0
        /// The log if its name in the directory survives a loss of power.
        var synchronizedLog: WritableFile?

        mutating func take(_ unread: Unread) { (log, position) = (unread.log, unread.end) }
    }

    /// The end of the log that this user has not read.
    private struct Unread: Sendable {
        var news = News()
        /// The file that has the log's name now; another user may just have replaced it.
        let log: WritableFile
        /// The offset behind the unread records, at which the next append belongs.
        var end = 0
        /// The size of the file, which is larger if the log has a torn tail.
        var size = 0
    }

    private struct Files: Sendable {
        let folder: DirectoryHandle
        let lock: WritableFile
    }

    /// Opens the log in a directory, which is created if it is missing.
    ///
    /// - Parameter directory: A directory for this log alone.
    /// - Throws: ``StoreError/Code/fileSystem``; ``StoreError/Code/unreadableRecord`` if the file is of a newer version or is not a log.
    ///   Such a file is not changed.
    package convenience init(directory: URL) throws(StoreError) {
        precondition(directory.isFileURL, "an outbox needs the file URL of a directory, not \(directory)")
        try self.init(Directory(path: directory.standardizedFileURL.path(percentEncoded: false)))
    }

    init(_ directory: Directory, leaseKind: LeaseKind = .ofPlatform) throws(StoreError) {
        self.directory = directory
        leases = SharedDirectory(directory, slots: 1, leaseKind: leaseKind)
        try access { files, state throws(StoreError) in
            try Self.removeOrphans(in: files.folder)
            // Only checks the format; the first reading returns the records.
            let log = try Self.openLog(files)
            guard try !OutboxLogFormat.isCurrentHeader(log.read(OutboxLogFormat.headerSize, at: 0)) else { return }
            _ = try Self.unread(log, from: 0, size: log.status().size)
        }
    }

    var logPath: String { directory.path(of: Self.logName) }

    /// The size of the log in bytes, as far as this user has read it.
    package var byteCount: Int { state.withLock { $0.position } }

    /// Returns the records that other users have appended since the last reading; at first, all records.
    ///
    /// - Throws: ``StoreError/Code/fileSystem``; ``StoreError/Code/unreadableRecord`` if another process has replaced the log by a file
    ///   of a newer version. The next call then returns the same records.
    package func read() throws(StoreError) -> News {
        if state.withLock({ Self.isUpToDate($0) }) { return News() }
        return try access { files, state throws(StoreError) in
            let unread = try Self.unread(files, state)
            state.take(unread)
            return unread.news
        }
    }

    /// Appends records in one write: a reader finds all of them or none.
    ///
    /// - Parameters:
    ///   - records: The records, which later readings of this user do not contain.
    ///   - durability: The events that the records survive.
    /// - Returns: The unread records before them.
    /// - Throws: The errors of ``read()``. The log is unchanged, and the unread records stay unread.
    package func append(_ records: [Data], durability: Durability) throws(StoreError) -> News {
        try access { files, state throws(StoreError) in
            var unread = try Self.unread(files, state)
            unread.end = try Self.write(records, after: unread, durability, files, &state)
            state.take(unread)
            return unread.news
        }
    }

    /// Appends the records that a closure returns; no other process can append between its decision and the write.
    ///
    /// - Parameters:
    ///   - durability: The events that the records survive.
    ///   - decide: Receives the unread records, which count as read from then on. It must not call the log.
    /// - Throws: The errors of ``read()``; the error of `decide`. The log is then unchanged.
    package func append(durability: Durability, _ decide: (News) throws -> [Data]) throws {
        try access { files, state throws(StoreError) in
            let unread = try Self.unread(files, state)
            state.take(unread)
            return try Self.catching(decide, unread.news) { records throws(StoreError) in
                state.position = try Self.write(records, after: unread, durability, files, &state)
            }
        }.get()
    }

    /// Replaces the log in one step, which survives a loss of power.
    ///
    /// - Parameter keep: Receives the unread records, which count as read from then on, and returns all records of the new log. It must
    ///   not call the log.
    /// - Throws: The errors of ``read()``; the error of `keep`. The old log then remains, unless only the synchronization of the directory
    ///   failed.
    package func compact(_ keep: (News) throws -> [Data]) throws {
        try access { files, state throws(StoreError) in
            let unread = try Self.unread(files, state)
            state.take(unread)
            return try Self.catching(keep, unread.news) { records throws(StoreError) in
                try Self.replace(by: records, files, &state)
            }
        }.get()
    }

    /// Keeps the error of a user's closure apart from the errors of the log.
    private static func catching(
        _ decide: (News) throws -> [Data], _ news: News, _ body: ([Data]) throws(StoreError) -> Void
    ) throws(StoreError) -> Result<Void, any Error> {
        let records: [Data]
        do { records = try decide(news) } catch { return .failure(error) }
        return .success(try body(records))
    }

    // MARK: Files

    /// Whether the log has no unread records; needs no lock.
    var isUpToDate: Bool { state.withLock { Self.isUpToDate($0) } }
    /// The file that was read last.
    var openLog: WritableFile? { state.withLock(\.log) }

    private static func isUpToDate(_ state: State) -> Bool {
        state.log?.sizeIfNamed == state.position
    }

    /// Runs a change under the lock of the log.
    private func access<Result: Sendable>(
        _ body: (Files, inout State) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try state.withLock { state throws(StoreError) in
            // Retries, because the directory may be removed at any moment.
            for _ in 0..<8 {
                guard let files = try Self.open(directory, &state) else { continue }
                let result = try lock.withLock(files.lock, named: Self.lockName, in: files.folder) { () throws(StoreError) -> Result? in
                    files.lock.isNamed ? try body(files, &state) : nil
                }
                if let result { return result }
                state.files = nil
            }
            let path = directory.path.escapedForDisplay()
            throw StoreError(
                .fileSystem, "cannot keep the log of an outbox in \(path), which is removed again and again; choose another one")
        }
    }

    private static func open(_ directory: Directory, _ state: inout State) throws(StoreError) -> Files? {
        // The caller checks under the lock whether the lock's file still has its name.
        if let files = state.files { return files }
        // A directory is created once, so its name may as well survive a loss of power.
        try directory.create(durability: .power)
        guard let folder = try DirectoryHandle(opening: directory) else { return nil }
        state.files = Files(folder: folder, lock: try WritableFile(lockName, in: folder, mode: 0o600))
        return state.files
    }

    /// Reads the rest of the log, or all of the log that has replaced it.
    private static func unread(_ files: Files, _ state: State) throws(StoreError) -> Unread {
        // A log that has become shorter is no longer the log that was read.
        // The path of the lock leads to the directory, so the shorter way to the name of the log is enough.
        if let log = state.log, let size = log.size(ifNamed: logName, in: files.folder), size >= state.position {
            return try unread(log, from: state.position, size: size)
        }
        let log = try openLog(files)
        var unread = try unread(log, from: 0, size: log.status().size)
        unread.news.wasReplaced = state.log != nil
        return unread
    }

    private static func openLog(_ files: Files) throws(StoreError) -> WritableFile {
        // The file must have no second name, such as in a backup with hard links, because a change would be visible there too.
        try .unshared(logName, in: files.folder, isCopied: true, mode: 0o600)
    }

    private static func unread(_ log: WritableFile, from position: Int, size: Int) throws(StoreError) -> Unread {
        var unread = Unread(log: log, end: position, size: size)
        guard size > position else { return unread }
        let bytes = try log.read(size - position, at: position)
        do throws(OutboxLogFormat.Foreign) {
            let reading = try OutboxLogFormat.read(bytes, from: position)
            // Each record is a copy, so that it does not keep the whole log in memory.
            unread.news.records = reading.records.map { Data(bytes[$0.lowerBound - position..<$0.upperBound - position]) }
            unread.news.damages = reading.damages
            unread.end = reading.end
        } catch {
            throw StoreError(unreadable: log.path, error)
        }
        return unread
    }

    // MARK: Writing

    /// Cuts a torn tail, and appends records.
    ///
    /// - Returns: The offset behind the records.
    private static func write(
        _ records: [Data], after unread: Unread, _ durability: Durability, _ files: Files, _ state: inout State
    ) throws(StoreError) -> Int {
        guard !records.isEmpty else { return unread.end }
        let log = unread.log
        // A header without entries is the rest of a torn append, and is written again.
        let start = unread.end <= OutboxLogFormat.headerSize ? 0 : unread.end
        let bytes = try encode(records, after: start, asOneAppend: true)
        if unread.size > start { try log.truncate(to: start) }
        do throws(StoreError) {
            try log.write(bytes, at: start)
            if durability == .power {
                try log.synchronize()
                if state.synchronizedLog !== log { try files.folder.synchronize() }
                state.synchronizedLog = log
            }
        } catch {
            // Shortening needs no space. If it fails, the next append cuts the incomplete entry.
            _ = try? log.truncate(to: start)
            throw error
        }
        return start + bytes.count
    }

    /// Replaces the log in one step.
    private static func replace(by records: [Data], _ files: Files, _ state: inout State) throws(StoreError) {
        // A log without records stays empty, without a header: if the header were damaged, the file could not be told from a foreign one.
        let bytes = records.isEmpty ? [] : try encode(records, after: 0, asOneAppend: false)
        let log = try WritableFile.replacement(for: logName, in: files.folder, mode: 0o600) { file throws(StoreError) in
            try file.write(bytes, at: 0)
            // A rename may reach the disk before the content of the file.
            try file.synchronize()
        }
        (state.log, state.position) = (log, bytes.count)
        try files.folder.synchronize()
        state.synchronizedLog = log
    }

    /// Returns the bytes of an append at an offset; at the beginning of the file, with the header.
    private static func encode(_ records: [Data], after offset: Int, asOneAppend isOneAppend: Bool) throws(StoreError) -> [UInt8] {
        guard records.allSatisfy({ $0.count <= OutboxLogFormat.longestRecord }) else {
            throw StoreError(.unwritableRecord, "a record of the outbox is longer than \(OutboxLogFormat.longestRecord) bytes; shorten it")
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(OutboxLogFormat.headerSize + OutboxLogFormat.size(of: records))
        if offset == 0 { bytes += OutboxLogFormat.header }
        OutboxLogFormat.append(records, to: &bytes, at: offset, asOneAppend: isOneAppend)
        return bytes
    }

    /// Removes the files of interrupted compactions. Under the lock, no other compaction runs.
    private static func removeOrphans(in folder: DirectoryHandle) throws(StoreError) {
        var orphans: [String] = []
        var entries = try folder.list()
        while let entry = try entries.next() {
            if TemporaryFile.isName(entry.name, kind: WritableFile.replacementKind) { orphans.append(entry.name) }
        }
        for name in orphans { try folder.remove(name) }
    }
}

extension StoreError {
    /// Creates the error for a file that is not a log of this version.
    fileprivate init(unreadable path: String, _ reason: OutboxLogFormat.Foreign) {
        let path = path.escapedForDisplay()
        switch reason {
        case .format:
            self.init(.unreadableRecord, "\(path) is not the log of an outbox; move it away or choose another directory")
        case .version(let version):
            let known = OutboxLogFormat.version
            let remedy =
                version > known
                ? "update the program to send its changes"
                : "send its changes with the earlier version of the program, or move the log away"
            self.init(.unreadableRecord, "the log \(path) has version \(version), and this program reads version \(known); \(remedy)")
        }
    }
}
