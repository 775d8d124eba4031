public import Foundation

/// Content in files: one for each key, in a directory of its own, crash-safe and bounded in bytes.
///
/// ```swift
/// let users = FileCacher<Int, String>(directory: cachesDirectory.appending(path: "users"), expiry: .after(.seconds(3600)))
/// try await users.save(CacheRecord(content: "Ada", fetchedAt: Date()), param: 1)
/// let record = try await users.load(param: 1)                 // Ada, also after a restart
/// ```
///
/// **Whole or not at all.** A record is written to a temporary file and renamed: whoever reads, in this process or another, sees the old
/// record or the new one. What a save survives is a matter of ``Durability``. A file whose checksum is wrong is a miss; it is deleted and
/// reported.
///
/// **One directory for one kind of data.** A file's name is made of its key alone, so that two cachers of different content in one
/// directory overwrite each other's records. Files under other names may stand there; they are never touched.
///
/// **Keys** are known by their JSON: keys that are equal must encode alike (order in sets and dictionaries, and Unicode's different
/// spellings of one text, are taken care of), and keys that differ must encode differently.
///
/// **The limit** is on the sum of the files' sizes. When it is passed, the records used longest ago are removed in the background until
/// nine tenths are left; a load counts as a use, to the hour. The directory is first looked through at the first save, also in the
/// background; until that has ended, and between processes that save into one directory, the limit may be passed.
///
/// A load costs one open, one read and the decoding; a save one write, one rename and the encoding. Both run off the caller's actor. Put
/// a ``TieredCacher`` in front of it.
public final class FileCacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>: Cacher {
    /// How long content is valid where its origin said nothing.
    public let expiry: Expiry

    let directory: Directory
    let options: FileWriteOptions
    let backup: FileBackup
    let schema: Int64
    let limit: Int
    private let encoder = JSONEncoder()
    private let decoder = JSONDecoder()
    private let onFault: @Sendable (FileCacherFault) -> Void
    /// Who else is told of what goes wrong; it only grows.
    private let observers = Lock<[@Sendable (CacherNotice<Param>) -> Void]>([])
    /// The sizes of the files, and the scan that is running; guarded as one, so that there is never a second scan.
    let state: Lock<State>

    struct State: Sendable {
        var ledger: FileLedger
        /// The task that scans; `nil` where none does.
        var sweep: Task<Void, Never>?
    }

    /// Makes a cacher; the directory is made, for this user only, at the first save.
    ///
    /// - Parameters:
    ///   - directory: A directory of its own, as a file URL.
    ///   - expiry: How long content is valid where its origin said nothing.
    ///   - version: The version of the content's schema: raise it when `Content` or `Param` no longer decode what older versions wrote.
    ///     Records of another version are misses; they stay until they are overwritten or swept.
    ///   - limit: How many bytes all records together may have; a larger single record cannot be saved or loaded.
    ///   - durability: What a save survives.
    ///   - protection: When the files can be read, on Apple's systems.
    ///   - backup: Whether backups take the directory with them, on Apple's systems.
    ///   - onFault: Called for each file that is damaged or not readable, on whatever thread noticed it.
    public convenience init(
        directory: URL, expiry: Expiry = .never, version: Int = 1, limit: Int = 256_000_000, durability: Durability = .crash,
        protection: FileProtection = .inherited, backup: FileBackup = .inherited,
        onFault: @escaping @Sendable (FileCacherFault) -> Void = { _ in }
    ) {
        self.init(
            directory: directory, expiry: expiry, version: version, limit: limit, backup: backup,
            options: FileWriteOptions(durability: durability, protection: protection), onFault: onFault)
    }

    package init(
        directory: URL, expiry: Expiry = .never, version: Int = 1, limit: Int = 256_000_000, backup: FileBackup = .inherited,
        options: FileWriteOptions, onFault: @escaping @Sendable (FileCacherFault) -> Void = { _ in }
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
        let text = CanonicalJSON.nonConforming
        encoder.outputFormatting = .withoutEscapingSlashes
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: text.positiveInfinity, negativeInfinity: text.negativeInfinity, nan: text.nan)
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: text.positiveInfinity, negativeInfinity: text.negativeInfinity, nan: text.nan)
    }

    /// Loads the record of a key; off the caller's actor.
    ///
    /// - Parameter param: The key.
    /// - Returns: The record as it was saved last; `nil` where there is none, or none that can be read.
    /// - Throws: ``StoreError/Code/fileSystem`` where the file is there and cannot be read; ``StoreError/Code/unwritableRecord`` where
    ///   the key does not encode. Cancelling has no effect.
    @concurrent
    public func load(param: Param) async throws -> CacheRecord<Content>? {
        let key = try FileKey(param)
        let name = key.fileName
        guard let file = try openFile(name, param) else { return nil }
        let status = try file.status()
        guard isOurs(status, name, param) else { return nil }
        var data = Data(count: status.size)
        let count = try data.withUnsafeMutableBytes { try file.read(into: $0) }
        let head: FileRecordFormat.Head
        do throws(FileRecordFormat.Damage) {
            guard count == status.size else { throw FileRecordFormat.Damage(reason: "it ended while it was read") }
            head = try FileRecordFormat.readWhole(data)
        } catch {
            // While the file is open no other one can have its number, so that what is deleted is what was read.
            discard(key, status, damage: error, param)
            return nil
        }
        guard head.format == FileRecordFormat.version, head.schema == schema else { return nil }
        guard data[head.key].elementsEqual(key.json) else {
            report(.foreign, name, "reading a record: the file holds another key; nothing was changed", param)
            return nil
        }
        do {
            let content = try decoder.decode(Content.self, from: data[head.content])
            let details = head.details.isEmpty ? nil : try decoder.decode(RecordDetails.Fields.self, from: data[head.details])
            let fetchedAt = Date(timeIntervalSinceReferenceDate: Double(bitPattern: head.fetchedAt))
            let record = CacheRecord(content: content, fetchedAt: fetchedAt, details: details.flatMap(RecordDetails.init))
            if isUnusedForLong(status) { file.touch() }
            return record
        } catch {
            report(
                .undecodable, name,
                "decoding a record of schema version \(schema): raise the cacher's version when \(Content.self) changes", param,
                underlying: error)
            return nil
        }
    }

    /// Saves the record of a key in place of the one before it; off the caller's actor.
    ///
    /// - Parameters:
    ///   - record: The record.
    ///   - param: The key.
    /// - Throws: ``StoreError/Code/fileSystem`` with the path and the system's reason; ``StoreError/Code/unwritableRecord`` where record
    ///   or key do not encode, or the record is larger than the limit. The older record then stays. Cancelling has no effect.
    @concurrent
    public func save(_ record: CacheRecord<Content>, param: Param) async throws {
        let key = try FileKey(param)
        let bytes: [UInt8]
        do {
            bytes = FileRecordFormat.encode(
                key: key.json, fetchedAt: record.fetchedAt.timeIntervalSinceReferenceDate.bitPattern,
                details: try record.details.map { try encoder.encode($0.fields) }, content: try encoder.encode(record.content),
                schema: schema)
        } catch {
            throw StoreError(
                .unwritableRecord, "encoding the record of key \(param); let \(Content.self) encode every value it can have",
                underlyingError: error)
        }
        guard bytes.count <= limit else {
            throw StoreError(
                .unwritableRecord,
                "saving the record of key \(param): its \(bytes.count) bytes are more than the limit of \(limit); raise the limit")
        }
        try change(key, to: bytes.count) { () throws(StoreError) in try write(bytes, as: key.fileName) }
    }

    /// Removes the record of a key, of whatever schema version; off the caller's actor.
    ///
    /// - Parameter param: The key.
    /// - Throws: ``StoreError/Code/fileSystem``; ``StoreError/Code/unwritableRecord`` where the key does not encode.
    @concurrent
    public func remove(param: Param) async throws {
        let key = try FileKey(param)
        try change(key, to: 0) { () throws(StoreError) in
            let wasThere = try directory.remove(key.fileName)
            if wasThere, options.durability == .power { try directory.synchronize() }
        }
    }
}

extension FileCacher {
    /// Reads a key back from its canonical JSON.
    func decodeKey(_ json: [UInt8]) throws -> Param {
        try decoder.decode(Param.self, from: Data(json))
    }

    /// Reports a file that a load, or a listing of keys, cannot use.
    func report(
        _ kind: FileCacherFault.Kind, _ name: String, _ message: String, _ param: Param?, underlying: (any Error)? = nil
    ) {
        let path = directory.path(of: name)
        let error = StoreError(.unreadableRecord, "\(message) (\(path))", underlyingError: underlying)
        onFault(FileCacherFault(kind, file: URL(filePath: path), error: error))
        notify(.fault(.load, param, error))
    }

    /// Reports that work in the background failed; it was begun by a save.
    func reportFailedSweep(_ error: any Error) {
        let failure = (error as? StoreError) ?? StoreError(.fileSystem, "sweeping \(directory.path)", underlyingError: error)
        onFault(FileCacherFault(.sweepFailed, file: URL(filePath: directory.path), error: failure))
        notify(.fault(.save, nil, failure))
    }

    func notify(_ notice: CacherNotice<Param>) {
        for observer in observers.withLock({ $0 }) { observer(notice) }
    }

    /// Waits until no scan is running.
    package func settle() async {
        while let sweep = state.withLock({ $0.sweep }) { await sweep.value }
    }
}

extension FileCacher: NoticingCacher {
    package func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void) {
        observers.withLock { $0.append(observer) }
    }
}
