internal import StoreCore
internal import StorePlatform

// A file of the list may replace a directory, or a directory a file, or a folding disk may have the file under another spelling. The
// obstacle is then removed before the other removals. It is removed only when the new content is complete, as with a replaced file, and
// only if the plan removes it anyway.

extension TargetSession {
    /// Returns whether a file that the plan removes has the name of one of a path's directories.
    func makesWay(for path: RelativePath) -> Bool {
        guard path.parts.count > 1 else { return false }
        return state.withLock { state in !state.removable.isEmpty && path.ancestors.contains { state.removable.contains($0) } }
    }

    /// Returns whether the plan removes a file in a directory of this name.
    func makesWay(below key: PathKey) -> Bool {
        let directory = (key.path + "/").utf8
        return state.withLock { state in state.removable.contains { $0.path.utf8.starts(with: directory) } }
    }

    /// Removes the files in the way of a complete download, if the plan removes them and they have not changed since.
    ///
    /// One of them may be another spelling, which the disk treats as the same name. Nothing is removed of a directory that contains a file
    /// which the plan does not remove.
    func makeWay(for path: RelativePath, insteadOf other: PathKey?) throws {
        guard state.withLock({ !$0.removable.isEmpty }) else { return }
        // Several files may need the same path; the later ones must find it free.
        try makingWay.withLock { _ throws in
            if let other {
                try replace(other, upTo: path.parts.count)
                let still = state.withLock { state in
                    state.clashes.remove(other)
                    return state.clashes.insert(path)
                }
                if let still { throw SyncError.clash(path.key, with: still) }
            }
            if makesWay(for: path) {
                for ancestor in path.ancestors { try replace(ancestor, upTo: path.parts.count) }
            }
            let directory = try places.inDirectory(of: path, isMaking: false) { parent, name in
                try parent.status(of: name)?.kind == .directory ? parent.directory(name) : nil
            }
            guard let directory = directory ?? nil else { return }
            for other in try collect(directory, of: path.key).sorted() { try replace(other, upTo: path.parts.count) }
        }
    }

    /// Collects the files in a directory that is in the way of a key; throws unless all of them may be removed.
    private func collect(_ directory: DirectoryHandle, of key: PathKey) throws -> [PathKey] {
        var inside: [PathKey] = []
        try DirectoryWalk.visit(directory) { directory, prefix in
            let prefix = key.path + "/" + prefix
            var inner: [String] = []
            var isEmpty = true
            var listing = try directory.list()
            while let entry = try listing.next() {
                isEmpty = false
                let path = PathKey(prefix + entry.name)
                func refusal() -> SyncError {
                    SyncError.taken(key, by: "a directory has this name and contains “\(path.shownSafely)”, which the plan does not remove")
                }
                // The repaired text of this name may equal the name of a file that the plan removes.
                guard entry.isUTF8 else { throw refusal() }
                guard let found = try directory.status(of: entry.name) else { continue }
                if found.kind == .directory {
                    inner.append(entry.name)
                    continue
                }
                guard found.kind == .regular, state.withLock({ $0.removable.contains(path) }) else { throw refusal() }
                guard state.withLock({ $0.knows(FileStamp(found), of: path) }) else { throw SyncError.changedLocally(.contents) }
                inside.append(path)
            }
            // An empty directory was created by a user, because a sync leaves none.
            let path = PathKey(String(prefix.dropLast()))
            let stays = places.named.withLock { $0.contains(path) }
            if isEmpty || stays {
                let reason = stays ? "stays even without files" : "is empty, so no sync has created it"
                throw SyncError.taken(key, by: "a directory has this name, and “\(path.shownSafely)” \(reason)")
            }
            return inner
        } refuse: { path, error in
            throw error.isDenial ? SyncError.unreadable(PathKey(key.path + "/" + path), underlyingError: error) : error
        }
        return inside
    }

    /// Removes a file that is in the way of another. A directory above the depth stays, because it may be about to receive another file.
    private func replace(_ key: PathKey, upTo depth: Int) throws {
        guard state.withLock({ $0.removable.contains(key) }) else { return }
        let path = try RelativePath(existing: key)
        guard try places.inDirectory(of: path, isMaking: false, { try $0.status(of: $1) }) ?? nil != nil else { return }
        try remove(path, upTo: depth, in: .contents)
        state.withLock { _ = $0.replaced.insert(key) }
    }
}

extension TargetSession.State {
    /// Returns whether a file is still as the inventory found it.
    func knows(_ stamp: FileStamp?, of key: PathKey) -> Bool {
        guard let stamp else { return false }
        return journal.records[key]?.matching(stamp) != nil || edited[key] == stamp
    }
}
