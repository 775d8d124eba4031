internal import StoreCore
internal import StorePlatform

// Operations on all records: removing them, listing their keys, and enforcing the limit.

extension FileCacher {
    struct Found {
        var name: SHA256.Digest
        var status: FileStatus
        var space: Int { RecordFiles.space(of: status) }
    }

    /// Removes every record of any schema version, and no other file; runs off the caller's actor.
    ///
    /// - Throws: ``StoreError/Code/fileSystem`` if a file could not be removed, after all other records are removed.
    @concurrent
    public func removeAll() async throws {
        defer { state.withLock { $0.ledger.allRemoved() } }
        if let shared { try await shared.perform { try shared.removeAll() } } else { try RecordFiles.removeAll(in: directory) }
        if options.durability == .power, try directory.status() != nil { try directory.synchronize() }
    }

    /// Returns the keys of all records of this schema version; runs off the caller's actor.
    ///
    /// The call reads only the header and the key of each file. It verifies the key; damage of the content is found when the record is
    /// loaded.
    ///
    /// - Returns: The keys, in no order.
    /// - Throws: ``StoreError/Code/fileSystem`` if a file could not be read; `CancellationError` if the task is canceled.
    @concurrent
    public func keys() async throws -> [Param]? {
        guard var listing = try directory.list() else { return [] }
        var keys: [Param] = []
        var buffer = [UInt8](repeating: 0, count: 1024)
        while let entry = try listing.next() {
            guard let digest = RecordFiles.digest(in: entry.name), entry.kind == .regular || entry.kind == .unknown else { continue }
            if let key = try readKey(entry.name, digest, &buffer) { keys.append(key) }
            if keys.count.isMultiple(of: 256) { try Task.checkCancellation() }
        }
        return keys
    }

    /// Returns the key in a file; `nil` if the file is not a record of this schema version, or if its name does not match the key.
    private func readKey(_ name: String, _ digest: SHA256.Digest, _ buffer: inout [UInt8]) throws -> Param? {
        guard let file = try OpenFile(reading: directory.path(of: name)) else { return nil }
        let status = try file.status()
        guard status.kind == .regular, status.size <= limit else { return nil }
        var count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
        let size = buffer.withUnsafeBytes { bytes in
            FileRecordFormat.sizeOfHeaderAndKey(.init(rebasing: bytes.prefix(count)), fileSize: status.size)
        }
        guard let size else { return nil }
        if size > buffer.count {
            buffer = [UInt8](repeating: 0, count: size)
            count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
        }
        let header: FileRecordFormat.Header
        do {
            header = try buffer.withUnsafeBytes { bytes in
                try FileRecordFormat.readHeader(.init(rebasing: bytes.prefix(count)), fileSize: status.size)
            }
        } catch {
            // The file is a miss; the next load of its key deletes and reports it.
            return nil
        }
        guard isOfThisVersion(header, name, nil), header.schema == schema else { return nil }
        let json = Array(buffer[header.key])
        guard SHA256.digest(of: json) == digest else { return nil }
        do {
            return try decodeKey(json)
        } catch {
            report(
                .undecodable, name,
                Self.undecodable("a key", as: "\(Param.self)", schema), nil, underlying: error)
            return nil
        }
    }

    /// Scans the directory and removes the least recently used records while their space exceeds the limit.
    @concurrent
    func scanAndSweep() async {
        var action = FileLedger.Action.scan
        // Each notice precedes its `end`, because a caller that waits for the sweep expects the notice to have arrived.
        while action == .scan {
            do {
                if backup == .excluded { try directory.excludeFromBackup() }
            } catch {
                reportFailedSweep(error)
            }
            do {
                var found = try await scan()
                try await removeOldMarks(&found)
                let count = found.count
                try await sweep(&found)
                let evicted = count - found.count
                let survivors = found.map { (name: $0.name, size: $0.space) }
                if evicted > 0 { notify(.evicted(count: evicted)) }
                action = end { $0.scanEnded(found: survivors, freed: evicted > 0) }
            } catch {
                reportFailedSweep(error)
                action = end { ledger in
                    ledger.scanFailed()
                    return .none
                }
            }
        }
    }

    /// Ends a scan. If none follows, the same step removes its task, so that the next save may start one.
    private func end(_ body: (inout FileLedger) -> FileLedger.Action) -> FileLedger.Action {
        state.withLock { state in
            let action = body(&state.ledger)
            if action == .none { state.sweep = nil }
            return action
        }
    }

    /// Returns all records without reading them, and removes orphaned temporary files.
    private func scan() async throws -> [Found] {
        guard var listing = try directory.list() else { return [] }
        var found: [Found] = []
        var orphans: [String] = []
        var count = 0
        let orphanedBefore = FileStatus.now() - TemporaryFile.orphanAge.saturatedNanoseconds
        while let entry = try listing.next() {
            count += 1
            // Other tasks need the thread too.
            if count.isMultiple(of: 512) { await Task.yield() }
            if let name = RecordFiles.digest(in: entry.name) {
                guard let status = try listing.status(of: entry), status.kind == .regular else { continue }
                found.append(Found(name: name, status: status))
            } else if RecordFiles.isTemporary(entry.name) {
                guard let status = try listing.status(of: entry), status.kind == .regular else { continue }
                if status.modified < orphanedBefore { orphans.append(entry.name) }
            }
        }
        for name in orphans { try directory.remove(name) }
        return found
    }

    /// Removes the least recently used records beyond the limit; `found` keeps the others.
    private func sweep(_ found: inout [Found]) async throws {
        let sizes = found.lazy.map { (name: $0.name, size: $0.space) }
        var (total, target, hasChanges) = state.withLock { state in
            (state.ledger.total(found: sizes), state.ledger.target, state.ledger.hasChanges)
        }
        guard total > limit else { return }
        found.sort { $0.status.modified > $1.status.modified }
        // The most recently saved record is never removed.
        var keep = hasChanges ? 0 : 1
        var survivors: [Found] = []
        var count = 0
        // The revisions of removed records are forgotten first, so that no older content takes their place.
        if shared != nil {
            var (rest, victims) = (total, [SHA256.Digest]())
            for oldest in found.dropFirst(keep).reversed() where rest > target {
                rest -= oldest.space
                victims.append(oldest.name)
            }
            try await forgetRevisions(of: victims)
            // A victim that is changed meanwhile stays, and no other record is removed in its place.
            keep = found.count - victims.count
        }
        while total > target, found.count > keep, let oldest = found.popLast() {
            let isChanged = state.withLock { $0.ledger.isChanged(oldest.name) }
            let name = RecordFiles.name(of: oldest.name)
            if !isChanged, try directory.remove(name, ifStill: oldest.status) {
                total -= oldest.space
            } else {
                survivors.append(oldest)
            }
            count += 1
            if count.isMultiple(of: 128) { await Task.yield() }
        }
        found += survivors
    }
}
