internal import StoreCore
internal import StorePlatform

// Operations on one file: load, save and removal.

extension FileCacher {
    /// Writes a file; creates the directory if it is missing.
    func write(_ bytes: [UInt8], as name: String) throws(StoreError) {
        // Retries, because another process may remove the directory or the temporary file at any moment. A process that removes all records
        // over and over defeats several attempts in a row.
        for _ in 0..<32 {
            do throws(StoreError) {
                return try AtomicFile.write(bytes, as: name, in: directory, kind: RecordFiles.temporaryKind, options: options)
            } catch {
                guard error.fileSystemErrno == ENOENT else { throw error }
                try directory.create(durability: options.durability)
            }
        }
        throw .fileSystem("saving into", path: directory.path, errno: ENOENT)
    }

    /// Changes a file to a size in bytes, or to zero if it is removed, and updates the sum of all files.
    func change(_ key: FileKey, to size: Int, _ body: () throws(StoreError) -> Void) throws(StoreError) {
        state.withLock { $0.ledger.changeBegan(key.digest) }
        var old = 0
        do throws(StoreError) {
            old = try spaceOfRecord(key)
            try body()
        } catch {
            // The first error counts; the next scan corrects an unknown space.
            changeEnded(key, from: old, to: (try? spaceOfRecord(key)) ?? old)
            throw error
        }
        // Only the file system knows what it has allocated. A file that was removed since counts until the next scan.
        let found = (try? spaceOfRecord(key)) ?? 0
        changeEnded(key, from: old, to: size > 0 ? max(found, size, RecordFiles.leastSpace) : found)
    }

    private func changeEnded(_ key: FileKey, from old: Int, to new: Int) {
        state.withLock { state in
            guard state.ledger.changeEnded(key.digest, from: old, to: new) == .scan else { return }
            state.sweep = Task.detached(priority: .utility) { await self.scanAndSweep() }
        }
    }

    private func spaceOfRecord(_ key: FileKey) throws(StoreError) -> Int {
        guard let status = try directory.status(of: key.fileName), status.kind == .regular else { return 0 }
        return RecordFiles.space(of: status)
    }

    func openFile(_ name: String, _ param: Param) throws(StoreError) -> OpenFile? {
        do throws(StoreError) {
            return try OpenFile(reading: directory.path(of: name))
        } catch {
            // A symbolic link, which is not followed, or a socket.
            guard error.fileSystemErrno == ELOOP || error.isOfSocket else { throw error }
            report(.foreign, name, "reading a record: its path is not a regular file; move it away", param, underlying: error)
            return nil
        }
    }

    func isOurs(_ status: FileStatus, _ name: String, _ param: Param) -> Bool {
        guard status.kind == .regular else {
            report(.foreign, name, "reading a record: its path is not a regular file; move it away", param)
            return false
        }
        guard status.size <= limit else {
            report(.undecodable, name, "reading a record: its \(status.size) bytes exceed the limit of \(limit); raise the limit", param)
            return false
        }
        return true
    }

    /// Deletes a damaged file, unless a new file has replaced it meanwhile.
    func discard(_ key: FileKey, _ status: FileStatus, damage: FileRecordFormat.Damage, _ param: Param) async {
        state.withLock { $0.ledger.changeBegan(key.digest) }
        var failure: (any Error)?
        var isGone = false
        do {
            // The revision of a shared record is lost with the file. From here on, the floor refuses the saves that it refused.
            try await raiseFloor(to: .max)
            isGone = try directory.remove(key.fileName, ifStill: status)
        } catch {
            failure = error
        }
        let space = RecordFiles.space(of: status)
        changeEnded(key, from: space, to: isGone ? 0 : space)
        let outcome = failure == nil ? "it was deleted" : "it could not be deleted"
        report(.damaged, key.fileName, "reading a record: \(damage.reason); \(outcome)", param, underlying: failure)
    }
}

/// A key in its stored form: its canonical JSON, and the file name derived from the JSON's digest.
struct FileKey: Sendable {
    /// The key's canonical JSON; equal for equal keys.
    let json: [UInt8]
    /// The SHA-256 of `json`, the identity of the record in the ledger, in the log, and in the names of leases.
    let digest: SHA256.Digest
    let fileName: String

    /// Encodes a key; throws ``StoreError/Code/unwritableRecord`` if it cannot be encoded, or if an equal key has other JSON.
    init(_ param: some Hashable & Codable) throws(StoreError) {
        do {
            json = try CanonicalJSON.encode(param)
        } catch {
            throw StoreError(
                .unwritableRecord, "encoding the key \(param) of a record; let its type encode every value that is used as a key",
                underlyingError: error)
        }
        try KeyStability.check(param, json)
        digest = SHA256.digest(of: json)
        fileName = RecordFiles.name(of: digest)
    }
}
