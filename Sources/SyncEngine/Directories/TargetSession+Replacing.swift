internal import StoreCore

// A file of the list may stand where a directory has stood so far, or the other way round. What is in its way then goes before the other
// removals: with the content already there, as an old version goes that is replaced, and only if the plan removes it anyway.

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
    func makesWay(below key: String) -> Bool {
        state.withLock { state in state.removable.contains { $0.utf8.starts(with: (key + "/").utf8) } }
    }

    /// Removes what is in the way of a file that has arrived, as far as the plan removes it and nobody has changed it since.
    ///
    /// - Throws: ``SyncError/Code/changedLocally`` where somebody has; what is in the way of the plan too is found by the next step.
    func makeWay(for path: RelativePath, key: String) throws {
        guard state.withLock({ !$0.removable.isEmpty }) else { return }
        if makesWay(for: path) {
            for ancestor in path.ancestors { try replace(ancestor) }
        }
        let isDirectory = try places.inDirectory(of: path, isMaking: false) { try $0.status(of: $1)?.kind == .directory }
        guard isDirectory == true else { return }
        let inside = state.withLock { state in state.removable.filter { $0.utf8.starts(with: (key + "/").utf8) } }
        for other in inside.sorted() { try replace(other) }
    }

    private func replace(_ key: String) throws {
        guard state.withLock({ $0.removable.contains(key) && !$0.replaced.contains(key) }) else { return }
        let path = try RelativePath(key)
        let found = try places.inDirectory(of: path, isMaking: false) { try $0.status(of: $1) } ?? nil
        guard let found else { return }
        guard state.withLock({ $0.knows(FileStamp(found), of: key) }) else { throw SyncError.changedLocally(.contents) }
        try remove(path, key: key)
        state.withLock { _ = $0.replaced.insert(key) }
    }
}

extension TargetSession.State {
    /// Whether a file is still what the inventory has seen.
    func knows(_ stamp: FileStamp?, of key: String) -> Bool {
        guard let stamp else { return false }
        return journal.records[key]?.matching(stamp) != nil || edited[key] == stamp
    }
}
