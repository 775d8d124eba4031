#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
public import StoreCore
internal import StorePlatform

// A directory that several processes share: revisions, changes made by others, and leases.

extension FileCacher: SharedCacher {
    /// Whether the cacher was created to share its directory.
    public var isShared: Bool { shared != nil }

    /// The revision up to which all changes have been delivered to the observers; zero without sharing.
    public var position: Revision { shared?.position ?? .none }

    /// Adds an observer of the changes made by others from now on; without sharing, it is never called.
    ///
    /// - Parameter observer: Called on any thread, never concurrently with itself.
    /// - Returns: The observation, which ends when it is released.
    public func observeChanges(_ observer: @escaping @Sendable (CacherChange<Param>) -> Void) -> ChangeObservation {
        let id = changeObservers.withLock { observers in
            observers.lastID += 1
            observers.all[observers.lastID] = observer
            return observers.lastID
        }
        return ChangeObservation { [weak self] in
            // Released outside the lock.
            _ = self?.changeObservers.withLock { $0.all.removeValue(forKey: id) }
            self?.unfollowIfUnobserved()
        }
    }

    /// Saves a record unless another user of the directory has changed the key since; runs off the caller's actor.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    ///   - base: The position at the time of the decision. Without sharing, it has no effect.
    /// - Returns: The outcome.
    /// - Throws: The errors of ``save(_:param:)``. Cancellation has no effect.
    @concurrent
    public func save(_ record: CacheRecord<Content>, param: Param, over base: Revision) async throws -> SaveOutcome<Content> {
        let encoded = try encode(record, param)
        guard shared != nil else {
            try write(encoded)
            return .saved(.none)
        }
        return try await outcome(of: try await commit(encoded, over: base), param)
    }

    /// Removes the record of a key unless another user of the directory has changed the key since; runs off the caller's actor.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - base: The position at the time of the decision. Without sharing, it has no effect.
    /// - Returns: The outcome.
    /// - Throws: The errors of ``remove(param:)``.
    @concurrent
    public func remove(param: Param, over base: Revision) async throws -> SaveOutcome<Content> {
        guard shared != nil else {
            try await remove(param: param)
            return .saved(.none)
        }
        return try await outcome(of: try await commit(tombstone(of: param), over: base), param)
    }

    /// Waits for the right to fetch a key; without sharing, it is not needed.
    ///
    /// If the process that holds the lease ends, the lease is free at once on Linux and macOS. On iOS, tvOS, watchOS and visionOS, and if
    /// the process is suspended, the lease is free when its duration has passed.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - duration: The time for which the lease keeps others from fetching.
    /// - Returns: The lease, or how the lease of another process has ended.
    /// - Throws: `CancellationError` as soon as the task is canceled; ``StoreError/Code/fileSystem`` if the directory cannot be written.
    @concurrent
    public func lease(_ param: Param, for duration: Duration) async throws -> LeaseOutcome {
        guard let shared else { return .notNeeded }
        return try await shared.lease(FileKey(param).digest, for: duration)
    }
}

extension FileCacher {
    struct ChangeObservers: Sendable {
        var all: [UInt64: @Sendable (CacherChange<Param>) -> Void] = [:]
        var lastID: UInt64 = 0
    }

    /// A record in its stored form, apart from its revision.
    struct Encoded: Sendable {
        let key: FileKey
        var fetchedAt: UInt64
        var details: Data?
        var content: Data
        var schema: Int64

        /// The schema of a file that stands for a removed record; a miss for every cacher.
        static var tombstone: Int64 { .min }

        /// The details of a record that has none of its own, if it has a revision: all fields with their defaults.
        static var defaultDetails: Data {
            Data(#"{"freshness":{"mustRevalidate":false,"storage":"allowed"},"isInvalidated":false}"#.utf8)
        }

        /// The size of the file in bytes, without making it; the file of a shared record has a revision in its details.
        func size(isShared: Bool) -> Int {
            let own = FileRecordFormat.headerSize + key.json.count + content.count
            return isShared ? own + RecordRevision.size + (details ?? Self.defaultDetails).count : own + (details?.count ?? 0)
        }

        /// The bytes of the file, with the revision of a shared record in its details.
        func bytes(_ revision: Revision?) -> [UInt8] {
            let details = revision.map { Data(RecordRevision.adding($0, to: self.details ?? Self.defaultDetails)) } ?? self.details
            return FileRecordFormat.encode(key: key.json, fetchedAt: fetchedAt, details: details, content: content, schema: schema)
        }
    }

    enum Commit: Sendable {
        case made(Revision)
        case superseded(Revision)
    }

    /// The file that stands for a removed record, so that an older fetch of another process does not bring it back.
    func tombstone(of param: Param) throws -> Encoded {
        Encoded(
            key: try FileKey(param), fetchedAt: Date().timeIntervalSinceReferenceDate.bitPattern, details: nil, content: Data(),
            schema: Encoded.tombstone)
    }

    /// Writes a file under the lock of the directory, with the next revision, unless another user has changed the key after the base.
    /// Without a base, any change is accepted.
    func commit(_ encoded: Encoded, over base: Revision?) async throws -> Commit {
        guard let shared else { return .made(.none) }
        // The changes that others make from now on concern what is in memory.
        await attach()
        return try await shared.perform {
            try shared.transact { transaction throws(StoreError) in
                let known = try self.knownRevision(of: encoded.key)
                if let base {
                    if let known {
                        if known > base, known.writer != shared.writer { return .superseded(known) }
                    } else {
                        // A damaged record may have any revision.
                        let isDamaged = try self.directory.status(of: encoded.key.fileName)?.kind == .regular
                        let floor = isDamaged ? transaction.numbers.head : transaction.numbers.floor
                        if base.number < floor { return .superseded(Revision(number: floor, writer: 0)) }
                    }
                }
                do throws(StoreError) {
                    let (lock, revision) = (transaction.lock, transaction.next(above: known ?? .none))
                    let bytes = encoded.bytes(revision)
                    try self.change(encoded.key, to: bytes.count) { () throws(StoreError) in
                        try self.write(bytes, as: encoded.key.fileName, lock) { () throws(StoreError) in
                            _ = try transaction.appendChange(of: encoded.key, schema: encoded.schema, above: known ?? .none)
                        }
                    }
                    if encoded.schema == Encoded.tombstone { self.countRemoval() }
                    return .made(revision)
                } catch {
                    guard error.isFullDisk, encoded.schema == Encoded.tombstone else { throw error }
                    // There is no room for a mark. The floor refuses everything that the mark would refuse.
                    try self.change(encoded.key, to: 0) { () throws(StoreError) in _ = try self.directory.remove(encoded.key.fileName) }
                    let revision = try transaction.appendChange(of: encoded.key, schema: encoded.schema, above: known ?? .none)
                    try transaction.raiseFloor(to: revision.number)
                    return .made(revision)
                }
            }
        }
    }

    /// Writes a file under the lock of a transaction. Fails if the directory is removed meanwhile; the transaction then runs again. Calls
    /// `announce` once the file has its bytes: for lack of room, the other users would read again and retry for nothing.
    private func write(
        _ bytes: [UInt8], as name: String, _ lock: WritableFile, _ announce: () throws(StoreError) -> Void
    ) throws(StoreError) {
        var isAnnounced = false
        // Retries, because a cacher that does not share the directory may remove the temporary file.
        for _ in 0..<4 {
            do throws(StoreError) {
                return try AtomicFile.write(
                    bytes, as: name, in: directory, kind: RecordFiles.temporaryKind, options: options
                ) { () throws(StoreError) in
                    if !isAnnounced { try announce() }
                    isAnnounced = true
                    // A process may be stopped for any time before the file gets its name.
                    if !lock.isNamed { throw .fileSystem("saving into", path: directory.path, errno: ENOENT) }
                }
            } catch {
                guard error.fileSystemErrno == ENOENT, lock.isNamed else { throw error }
            }
        }
        throw .fileSystem("saving into", path: directory.path, errno: ENOENT)
    }

    /// Returns the revision of a key's file; `nil` if there is no file, or if something else than a record is at its path.
    private func knownRevision(of key: FileKey) throws(StoreError) -> Revision? {
        do throws(StoreError) {
            return try FileRecordFormat.revision(of: key.fileName, in: directory)
        } catch {
            // A symbolic link or a socket, which the write handles.
            guard error.fileSystemErrno == ELOOP || error.isOfSocket else { throw error }
            return nil
        }
    }

    private func outcome(of commit: Commit, _ param: Param) async throws -> SaveOutcome<Content> {
        switch commit {
        case .made(let revision): .saved(revision)
        case .superseded(let revision): .superseded(by: try await load(param: param), revision)
        }
    }

    /// Begins to count the position, and to follow the changes if they are observed.
    func attach() async {
        guard let shared else { return }
        let isObserved = changeObservers.withLock { !$0.all.isEmpty }
        let isAttached = shared.state.withLock { $0.position != nil } && (shared.log.isFollowed || !isObserved)
        guard !isAttached else { return }
        do {
            try await shared.perform {
                if isObserved { shared.follow() } else { try shared.catchUp() }
                // The last observer may have left meanwhile.
                self.unfollowIfUnobserved()
            }
        } catch {
            reportLostChanges(error)
        }
    }

    /// Ends following without an observer. Under the lock, so that a new observer arrives before, or follows anew.
    private func unfollowIfUnobserved() { changeObservers.withLock { if $0.all.isEmpty { shared?.unfollow() } } }

    func handle(_ notice: SharedDirectory.Notice) {
        let change: CacherChange<Param>
        switch notice {
        case .changed(let json, let revision, let other):
            // A record of another version is a miss. If the observers fetched it, and so did those of the other version, neither would end.
            if let other, other != schema, other != Encoded.tombstone { return }
            // A key that cannot be decoded belongs to another schema, and so not to this cacher.
            guard let param = try? decodeKey(json) else { return }
            change = .changed(param, revision)
        case .removedAll(let revision):
            change = .removedAll(revision)
            state.withLock { $0.ledger.allRemoved() }
        case .gap:
            change = .gap
        case .lost(let error):
            return reportLostChanges(error)
        }
        for observer in changeObservers.withLock({ Array($0.all.values) }) { observer(change) }
    }

    /// Removes the files that removed records and ended processes have left behind in a shared directory; `found` keeps the other records.
    func removeOldMarks(_ found: inout [Found]) async throws {
        guard let shared else { return }
        let age = TemporaryFile.orphanAge
        try await shared.perform { try shared.removeOldLeases(age: age) }
        let end = FileStatus.now() - age.saturatedNanoseconds
        var old: [SHA256.Digest: FileStatus] = [:]
        // A mark holds its key, so it may have any size.
        for (index, record) in found.enumerated() where record.status.modified < end {
            if index.isMultiple(of: 128) { await Task.yield() }
            // A file that cannot be read is no mark of this user.
            let schema = try? FileRecordFormat.schema(of: RecordFiles.name(of: record.name), in: directory)
            guard schema == Encoded.tombstone else { continue }
            old[record.name] = record.status
        }
        guard !old.isEmpty else { return }
        // From here on, the floor refuses the saves that the marks refused.
        try await forgetRevisions(of: Array(old.keys))
        for (name, status) in old where try !directory.remove(RecordFiles.name(of: name), ifStill: status) { old[name] = nil }
        found.removeAll { old[$0.name] != nil }
    }

    /// Counts the marks of removed records, and starts a scan once there are many.
    private func countRemoval() {
        state.withLock { state in
            state.removals += 1
            guard state.removals.isMultiple(of: 4096), state.ledger.scanAgain() == .scan else { return }
            state.sweep = Task.detached(priority: .utility) { await self.scanAndSweep() }
        }
    }

    /// Raises the floor above the records that a sweep is about to remove.
    func forgetRevisions(of names: [SHA256.Digest]) async throws {
        guard shared != nil else { return }
        var number: UInt64 = 0
        for name in names {
            do throws(StoreError) {
                number = max(number, try FileRecordFormat.revision(of: RecordFiles.name(of: name), in: directory)?.number ?? 0)
            } catch {
                // A file without read permission may have any revision, and must not keep the others from being evicted.
                number = .max
            }
        }
        if number > 0 { try await raiseFloor(to: number) }
    }

    /// Refuses the saves of records without a file that were decided on before a number.
    func raiseFloor(to number: UInt64) async throws {
        guard let shared else { return }
        try await shared.perform {
            try shared.transact { transaction throws(StoreError) in try transaction.raiseFloor(to: number) }
        }
    }
}
