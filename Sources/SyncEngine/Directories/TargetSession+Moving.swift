internal import StoreCore
internal import StorePlatform

// A move needs no download: the file gets a second name in the directory of parts, and is then installed from there like a download. Every
// file of a pass is held so before the first one is installed. Chains, swaps and cycles therefore need no order, and no content is ever
// without a name. The old name goes last. A process that is killed leaves at most both names of a file, or a part that the next pass
// recognizes by its digest.

extension TargetSession {
    /// A file that has a second name in the directory of parts.
    struct HeldFile: Sendable {
        var origin: PathKey
        var digest: SHA256.Digest
        var stamp: FileStamp
    }

    /// Gives a local file a second name in the part of its new key; returns `false` if the file has changed and must be downloaded.
    ///
    /// If the disk has no hard links, throws a `StoreError`.
    func hold(_ key: PathKey, for destination: PathKey) throws -> Bool {
        guard let record = state.withLock({ $0.journal.records[key] }) else { return false }
        let name = PartNames(path: destination.path).bytes
        try places.probe?(.holds(key.path))
        try places.parts.remove(name)
        let isLinked: Void? = try places.inDirectory(of: RelativePath(existing: key), isMaking: false) { directory, file in
            try directory.link(file, to: places.parts, as: name)
        }
        guard isLinked != nil else { return false }
        // Examined after the link was made, so that it is the linked file that has the content of the record.
        guard let found = try places.parts.status(of: name), found.kind == .regular, FileStamp(found) == record.stamp else {
            try places.parts.remove(name)
            return false
        }
        state.withLock { $0.held[destination] = HeldFile(origin: key, digest: record.digest, stamp: record.stamp) }
        return true
    }

    /// Installs a held file under its new key, unless the file was written to since it was held.
    func installHeld(_ path: RelativePath, version: String) async throws {
        let name = PartNames(path: path.key.path).bytes
        guard let held = state.withLock({ $0.held[path.key] }) else { throw SyncError.changedLocally(.moves) }
        try await commit(FilePart.Whole(name: name, digest: held.digest, stamp: held.stamp, file: nil), as: path, version: version)
        // If both names already belonged to one file, the system has not removed the first (`rename(2)`).
        try places.parts.remove(name)
        state.withLock { state in
            state.held[path.key] = nil
            state.moved.insert(held.origin)
            state.hasUnflushedMoves = true
        }
    }

    /// Forgets the files that were held and not installed; their content stays under their old names.
    func releaseHeld() throws {
        for key in state.withLock({ exchange(&$0.held, with: [:]) }).keys.sorted() {
            let name = PartNames(path: key.path).bytes
            // The last name of a file is kept: its old name may belong to another file by now.
            if let found = try places.parts.status(of: name), found.linkCount > 1 { try places.parts.remove(name) }
        }
    }

    /// Flushes the new names of moved files, so that a power loss cannot take both names.
    func flushMoves() async throws {
        guard state.withLock({ $0.hasUnflushedMoves }) else { return }
        if places.durability == .power { try await flush() }
        state.withLock { $0.hasUnflushedMoves = false }
    }
}

extension TargetJournal {
    /// Returns the moves of a plan, by the digests that this journal records.
    func moves<Item: FileItem>(in plan: SyncPlan<Item>, digest: (Item) -> SHA256.Digest?) -> [SyncPlan<Item>.Move] {
        var origins: [PathKey: (entry: LocalEntry<Item>, isGone: Bool)] = [:]
        for removal in plan.removals { origins[removal.local.key] = (removal.local, true) }
        for case let local? in plan.updates.lazy.map(\.local) { origins[local.key] = (local, false) }
        let candidates = origins.compactMap { key, origin -> MoveMatcher.Origin? in
            guard !origin.entry.isEdited, !origin.entry.isForeign, let record = records[key], record.version == origin.entry.version else {
                return nil
            }
            return MoveMatcher.Origin(key: key, digest: record.digest, size: Int64(record.stamp.size), isGone: origin.isGone)
        }
        guard !candidates.isEmpty else { return [] }
        var downloads: [PathKey: SyncPlan<Item>.Download] = [:]
        var wanted: [(key: PathKey, digest: SHA256.Digest, size: Int64?)] = []
        for download in [plan.additions, plan.updates].joined() {
            guard let digest = digest(download.item) else { continue }
            downloads[download.item.key] = download
            wanted.append((download.item.key, digest, download.item.byteCount))
        }
        return MoveMatcher.moves(to: wanted, from: candidates).sorted { $0.value < $1.value }.compactMap { from, to in
            guard let origin = origins[from], let download = downloads[to] else { return nil }
            return SyncPlan.Move(download, from: origin.entry)
        }
    }
}
