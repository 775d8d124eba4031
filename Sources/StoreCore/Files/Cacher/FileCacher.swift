#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore
package import StorePlatform

/// Keeps each record in a file of its own, in one directory; crash-safe and bounded in bytes.
///
/// ```swift
/// let users = FileCacher<Int, String>(
///     directory: cachesDirectory.appending(path: "users"),
///     expiry: .after(.seconds(3600)))
/// try await users.save(CacheRecord(content: "Ada", fetchedAt: Date()), param: 1)
/// let record = try await users.load(param: 1)  // Ada, even after a restart
/// ```
///
/// **Atomic.** A record is written to a temporary file, which is then renamed. A reader, in this process or another, sees the old record or
/// the new one. ``Durability`` decides which events a save survives. A file with a wrong checksum is a miss; it is deleted and reported.
///
/// **One directory for each kind of data.** A file's name depends on its key alone, so two cachers of different content in one directory
/// overwrite each other's records. Files with other names may exist in the directory; the cacher never touches them.
///
/// **Keys** are identified by their JSON. Equal keys must encode to equal JSON, and different keys to different JSON. The cacher normalizes
/// the order of sets and dictionaries, and Unicode's different spellings of one text.
///
/// **The limit** applies to the space on disk. A file counts with the blocks that the file system allocates for it, and with 4 096 bytes at
/// least, so that there are never more than `limit / 4_096` files. Beyond the limit, the cacher removes the least recently used records in
/// the background until nine tenths of the limit remain. A load counts as a use, with a resolution of one hour. The first save starts a
/// scan of the directory in the background. The limit may be exceeded until that scan ends, and while several processes save into one
/// directory.
///
/// A load costs one open, one read and the decoding; a save costs one write, one rename and the encoding. Both run off the caller's actor.
/// Put a ``TieredCacher`` in front.
///
/// <doc:Persisting> explains the choice of a cacher, and <doc:SharingACache> the sharing of its directory.
public final class FileCacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>: Cacher {
    /// The lifetime of content whose origin states none.
    public let expiry: Expiry

    let directory: Directory
    let options: FileWriteOptions
    let backup: FileBackup
    let schema: Int64
    let limit: Int
    private let encoder = JSONEncoder()
    private let decoder = CanonicalJSON.decoder()
    private let onFault: @Sendable (FileCacherFault) -> Void
    /// The observers of notices; the list only grows.
    private let observers = Lock<[@Sendable (CacherNotice<Param>) -> Void]>([])
    /// The directory's changes and locks, if other processes use it too.
    package let shared: SharedDirectory?
    let changeObservers = Lock(ChangeObservers())
    /// The sizes of the files and the running scan; guarded by one lock, so that there is never a second scan.
    let state: Lock<State>

    struct State: Sendable {
        var ledger: FileLedger
        var sweep: Task<Void, Never>?
        /// The records of a shared directory that this cacher has removed.
        var removals = 0
        /// Whether a record of another version of the file format was reported.
        var hasReportedVersion = false
    }

    /// Creates a cacher; the first save creates the directory, with access only for the current user of the system.
    ///
    /// If other processes share the directory, the first load of a store creates it too.
    ///
    /// - Parameters:
    ///   - directory: A directory that no other cacher uses, as a file URL.
    ///   - expiry: The lifetime of content whose origin states none.
    ///   - version: The version of the content's schema. Raise it when `Content` or `Param` can no longer decode older records. Records of
    ///     another version are misses; they stay until they are overwritten or evicted.
    ///   - limit: The largest space of all records on disk, in bytes; each record takes 4 096 bytes at least. A single record above the limit
    ///     cannot be saved or loaded.
    ///   - durability: The events that a save survives.
    ///   - protection: The periods during which the files can be read, on Apple's systems.
    ///   - backup: Whether backups include the directory, on Apple's systems.
    ///   - sharing: The other users of the directory. A ``Store`` over a directory shared by processes shows their changes, and fetches a
    ///     missing key once for all of them.
    ///   - onFault: Called for each damaged or unreadable file, for a failed sweep, and once if there are records in another version of the
    ///     file format; runs on any thread.
    public convenience init(
        directory: URL, expiry: Expiry = .never, version: Int = 1, limit: Int = 256_000_000, durability: Durability = .crash,
        protection: FileProtection = .inherited, backup: FileBackup = .inherited, sharing: FileSharing = .none,
        onFault: @escaping @Sendable (FileCacherFault) -> Void = { _ in }
    ) {
        self.init(
            directory: directory, expiry: expiry, version: version, limit: limit, backup: backup,
            options: FileWriteOptions(durability: durability, protection: protection), sharing: sharing, onFault: onFault)
    }

    package init(
        directory: URL, expiry: Expiry = .never, version: Int = 1, limit: Int = 256_000_000, backup: FileBackup = .inherited,
        options: FileWriteOptions, sharing: FileSharing = .none, onFault: @escaping @Sendable (FileCacherFault) -> Void = { _ in }
    ) {
        precondition(directory.isFileURL, "a FileCacher needs the file URL of a directory, not \(directory)")
        self.directory = Directory(path: directory.standardizedFileURL.path(percentEncoded: false))
        self.expiry = expiry
        self.schema = Int64(version)
        self.limit = limit
        self.backup = backup
        var options = options
        // Another process may sweep this directory.
        options.locksNames = true
        self.options = options
        self.onFault = onFault
        state = Lock(State(ledger: FileLedger(limit: limit)))
        shared = sharing == .none ? nil : SharedDirectory(self.directory, durability: options.durability, protection: options.protection)
        let text = CanonicalJSON.nonConforming
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: text.positiveInfinity, negativeInfinity: text.negativeInfinity, nan: text.nan)
        shared?.observe { [weak self] notice in self?.handle(notice) }
    }

    /// Loads the record of a key; runs off the caller's actor.
    ///
    /// - Parameter param: The key.
    /// - Returns: The record that was saved last; `nil` if there is none, or if it cannot be decoded.
    /// - Throws: ``StoreError/Code/fileSystem`` if the file exists and cannot be read; ``StoreError/Code/unwritableRecord`` if the key
    ///   cannot be encoded; ``StoreError/Code/unreadableRecord`` if the record of a shared directory cannot be decoded, because another
    ///   process may use it. Cancellation has no effect.
    @concurrent
    public func load(param: Param) async throws -> CacheRecord<Content>? {
        if shared != nil { await attach() }
        let key = try FileKey(param)
        let name = key.fileName
        guard let file = try openFile(name, param) else { return nil }
        let status = try file.status()
        guard isOurs(status, name, param) else { return nil }
        var data = Data(count: status.size)
        let count = try data.withUnsafeMutableBytes { try file.read(into: $0) }
        let header: FileRecordFormat.Header
        do throws(FileRecordFormat.Damage) {
            guard count == status.size else { throw FileRecordFormat.Damage(reason: "it became shorter while it was read") }
            header = try FileRecordFormat.readWhole(data)
        } catch {
            // While this file is open, no other file can have its number, so exactly the file that was read is deleted.
            await discard(key, status, damage: error, param)
            return nil
        }
        guard isOfThisVersion(header, name, param), header.schema == schema else { return nil }
        guard data[header.key].elementsEqual(key.json) else {
            report(.foreign, name, "reading a record: the file holds another key; move it away", param)
            return nil
        }
        do {
            let content = try decoder.decode(Content.self, from: data[header.content])
            let details = try decodeDetails(data[header.details])
            let fetchedAt = Date(timeIntervalSinceReferenceDate: Double(bitPattern: header.fetchedAt))
            let record = CacheRecord(content: content, fetchedAt: fetchedAt, details: details.flatMap(RecordDetails.init))
            // The last use was more than an hour ago, or in the future because of a wrong clock.
            if abs(FileStatus.now() - status.modified) > 3_600_000_000_000 { file.touch() }
            return record
        } catch {
            let message = Self.undecodable("a record", as: "\(Content.self)", schema)
            guard shared == nil else { throw unreadable(.undecodable, name, message, underlying: error) }
            report(.undecodable, name, message, param, underlying: error)
            return nil
        }
    }

    /// Saves the record of a key in place of the previous one; runs off the caller's actor.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    /// - Throws: ``StoreError/Code/fileSystem`` with the path and the system's reason; ``StoreError/Code/unwritableRecord`` if the record
    ///   or the key cannot be encoded, or if the record exceeds the limit. The older record then stays. Cancellation has no effect.
    @concurrent
    public func save(_ record: CacheRecord<Content>, param: Param) async throws {
        let encoded = try encode(record, param)
        if shared != nil { _ = try await commit(encoded, over: nil) } else { try write(encoded) }
    }

    /// Removes the record of a key, of any schema version; runs off the caller's actor.
    ///
    /// - Parameter param: The key.
    /// - Throws: ``StoreError/Code/fileSystem`` if the file cannot be removed; ``StoreError/Code/unwritableRecord`` if the key cannot be
    ///   encoded.
    @concurrent
    public func remove(param: Param) async throws {
        guard shared == nil else {
            _ = try await commit(tombstone(of: param), over: nil)
            return
        }
        let key = try FileKey(param)
        try change(key, to: 0) { () throws(StoreError) in
            let wasThere = try directory.remove(key.fileName)
            if wasThere, options.durability == .power { try directory.synchronize() }
        }
    }
}

extension FileCacher {
    func encode(_ record: CacheRecord<Content>, _ param: Param) throws -> Encoded {
        let key = try FileKey(param)
        let encoded: Encoded
        do {
            encoded = Encoded(
                key: key, fetchedAt: record.fetchedAt.timeIntervalSinceReferenceDate.bitPattern,
                details: try record.details.map { try encoder.encode($0.fields) }, content: try encoder.encode(record.content),
                schema: schema)
        } catch {
            throw StoreError(
                .unwritableRecord, "encoding the record of key \(param); let \(Content.self) encode every value it can have",
                underlyingError: error)
        }
        let size = encoded.size(isShared: shared != nil)
        guard size <= limit else {
            throw StoreError(
                .unwritableRecord,
                "saving the record of key \(param): its \(size) bytes are more than the limit of \(limit); raise the limit")
        }
        return encoded
    }

    /// Writes the file of a record that has no revision.
    func write(_ encoded: Encoded) throws {
        let bytes = encoded.bytes(nil)
        try change(encoded.key, to: bytes.count) { () throws(StoreError) in try write(bytes, as: encoded.key.fileName) }
    }

    /// Decodes the details of a record; `nil` if they have their defaults.
    private func decodeDetails(_ bytes: Data) throws -> RecordDetails.Fields? {
        guard !bytes.isEmpty else { return nil }
        guard RecordRevision.read(bytes) != nil else { return try decoder.decode(RecordDetails.Fields.self, from: bytes) }
        let details = Data(RecordRevision.removing(from: bytes))
        return details == Encoded.defaultDetails ? nil : try decoder.decode(RecordDetails.Fields.self, from: details)
    }

    /// The message about a file that is intact and has other content. Only the app knows which of the two causes applies.
    static func undecodable(_ part: String, as type: String, _ schema: Int64) -> String {
        "decoding \(part) of schema version \(schema) as \(type): if \(type) has changed, raise the cacher's version; if another kind of data "
            + "is kept in this directory, give each kind a directory of its own"
    }

    func decodeKey(_ json: [UInt8]) throws -> Param {
        try decoder.decode(Param.self, from: Data(json))
    }

    /// Returns whether a record has this version of the file format, and reports the first record that does not.
    ///
    /// A directory may contain thousands of such records, and all reports would be the same.
    func isOfThisVersion(_ header: FileRecordFormat.Header, _ name: String, _ param: Param?) -> Bool {
        guard header.format != FileRecordFormat.version else { return true }
        let isFirst = state.withLock { state in
            defer { state.hasReportedVersion = true }
            return !state.hasReportedVersion
        }
        guard isFirst else { return false }
        let version = OtherVersion(found: header.format, known: FileRecordFormat.version)
        report(
            .undecodable, name,
            "reading a record: its file format has version \(version.found), and this program reads version \(version.known); it and "
                + "others like it are misses and stay until they are overwritten or evicted; to keep them, choose another directory",
            param, underlying: version)
        return false
    }

    /// Reports a file that a load or a listing of keys cannot use.
    func report(
        _ kind: FileCacherFault.Kind, _ name: String, _ message: String, _ param: Param?, underlying: (any Error)? = nil
    ) {
        notify(.fault(.load, param, unreadable(kind, name, message, underlying: underlying)))
    }

    /// Reports a file that a load cannot use, and returns the error.
    private func unreadable(
        _ kind: FileCacherFault.Kind, _ name: String, _ message: String, underlying: (any Error)?
    ) -> StoreError {
        let path = directory.path(of: name)
        let error = StoreError(.unreadableRecord, "\(message) (\(path))", underlyingError: underlying)
        onFault(FileCacherFault(kind, file: URL(filePath: path), error: error))
        return error
    }

    /// Reports a failed sweep as a fault of a save, because a save started it.
    func reportFailedSweep(_ error: any Error) { report(error, .sweepFailed, .save, "sweeping") }

    /// Reports that the changes of other processes cannot be followed for now.
    func reportLostChanges(_ error: any Error) { report(error, .changesLost, .follow, "following") }

    private func report(_ error: any Error, _ kind: FileCacherFault.Kind, _ operation: StoreEventKind.CacherOperation, _ verb: String) {
        let failure = (error as? StoreError) ?? StoreError(.fileSystem, "\(verb) \(directory.path)", underlyingError: error)
        onFault(FileCacherFault(kind, file: URL(filePath: directory.path), error: failure))
        notify(.fault(operation, nil, failure))
    }

    func notify(_ notice: CacherNotice<Param>) {
        for observer in observers.withLock({ $0 }) { observer(notice) }
    }

    /// Waits until no scan runs and the ended leases are released.
    public func settle() async {
        while let sweep = state.withLock({ $0.sweep }) { await sweep.value }
        // The closure cannot fail. The queue is serial, and a lease ends on it.
        try? await shared?.perform {}
    }
}

extension FileCacher: NoticingCacher {
    /// Adds an observer of all later faults and evictions.
    ///
    /// - Parameter observer: Called outside all locks, on any thread. The cacher retains it until it is released itself.
    public func observeNotices(_ observer: @escaping @Sendable (_ notice: CacherNotice<Param>) -> Void) {
        observers.withLock { $0.append(observer) }
    }
}
