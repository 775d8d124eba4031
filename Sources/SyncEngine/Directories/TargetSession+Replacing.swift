internal import StoreCore

// A file of the list may stand where a directory has stood so far, or the other way round, or where a folding disk has the file by
// another spelling. What is in its way then goes before the other removals: with the content already there, as an old version goes that
// is replaced, and only if the plan removes it anyway.

extension TargetSession {
    /// Remembers what the plan removes.
    func willRemove(_ entries: some Sequence<LocalEntry<some FileItem>>) {
        let keys = Set(entries.lazy.map(\.key))
        state.withLock { $0.removable = keys }
    }

    /// Whether a file that the plan removes is in the place of one of a path's directories.
    func makesWay(for path: RelativePath) -> Bool {
        guard path.parts.count > 1 else { return false }
        return state.withLock { state in
            !state.removable.isEmpty && path.ancestors.contains { state.removable.contains($0) && !state.replaced.contains($0) }
        }
    }

    /// Whether the plan removes something in a directory of this name.
    func makesWay(below key: PathKey) -> Bool {
        let directory = (key.path + "/").utf8
        return state.withLock { state in state.removable.contains { $0.path.utf8.starts(with: directory) } }
    }

    /// Removes what is in the way of a file that has arrived, as far as the plan removes it and nobody has changed it since.
    ///
    /// - Parameters:
    ///   - path: Where the file goes.
    ///   - key: The same as the list has it.
    ///   - other: A file that the disk takes for the same, and that the plan removes.
    /// - Throws: ``SyncError/Code/changedLocally`` where somebody has, ``SyncError/Code/nameTaken`` where something is in a directory that the
    ///   plan does not remove; nothing of that directory is removed then.
    func makeWay(for path: RelativePath, key: PathKey, insteadOf other: PathKey?) throws {
        guard state.withLock({ !$0.removable.isEmpty }) else { return }
        // Several files may need the same place: to the second one it must look as if it had always been free.
        try makingWay.withLock { _ throws in
            if let other {
                try replace(other)
                let still = state.withLock { state in
                    state.clashes.remove(other)
                    return state.clashes.insert(path)
                }
                if let still { throw SyncError.clash(key, with: still) }
            }
            if makesWay(for: path) {
                for ancestor in path.ancestors { try replace(ancestor, upTo: path.parts.count) }
            }
            let directory = try places.inDirectory(of: path, isMaking: false) { parent, name in
                try parent.status(of: name)?.kind == .directory ? parent.directory(name) : nil
            }
            guard let directory = directory ?? nil else { return }
            for other in try collect(directory, of: key).sorted() { try replace(other, upTo: path.parts.count) }
        }
    }

    /// Finds the files in a directory that is in the way of a key; throws unless all of them may go.
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
                    SyncError.taken(key, by: "a directory has this name, and “\(path.shownSafely)” is in it, which is not to be removed")
                }
                // The repaired text of another name may be the name of a file that the plan removes.
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
            // A user who made an empty directory may want it; a sync leaves none.
            if isEmpty {
                let path = String(prefix.dropLast()).shownSafely
                throw SyncError.taken(key, by: "a directory has this name, and “\(path)” is empty, which no sync leaves")
            }
            return inner
        } refuse: { path, error in
            throw error.isDenial ? SyncError.unreadable(PathKey(key.path + "/" + path), underlyingError: error) : error
        }
        return inside
    }

    /// Removes a file that is in the way.
    ///
    /// - Parameter depth: How deep the last directory is that goes with it: another file may be about to get its name in one above.
    private func replace(_ key: PathKey, upTo depth: Int = 1) throws {
        guard state.withLock({ $0.removable.contains(key) && !$0.replaced.contains(key) }) else { return }
        let path = try RelativePath(existing: key)
        let found = try places.inDirectory(of: path, isMaking: false) { try $0.status(of: $1) } ?? nil
        guard let found else { return }
        guard state.withLock({ $0.knows(FileStamp(found), of: key) }) else { throw SyncError.changedLocally(.contents) }
        try remove(path, key: key, upTo: depth)
        state.withLock { _ = $0.replaced.insert(key) }
    }
}

extension TargetSession.State {
    /// Whether a file is still what the inventory has seen.
    func knows(_ stamp: FileStamp?, of key: PathKey) -> Bool {
        guard let stamp else { return false }
        return journal.records[key]?.matching(stamp) != nil || edited[key] == stamp
    }
}
