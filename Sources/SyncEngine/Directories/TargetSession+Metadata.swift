internal import StoreCore
internal import StorePlatform

// Links and listed directories have no content, so nothing is lost with them. The journal records those that a pass has made, because only
// they may be replaced or removed. Every call acts in an open directory, and none follows a link.

extension TargetSession {
    /// Gives an installed file its time and its permissions, unless it was edited or removed since its record.
    func describe(_ path: RelativePath, mode: UInt16?, modified: Int64?) throws {
        let isDone = try places.inDirectory(of: path, isMaking: false) { directory, name in
            try places.probe?(.describes(path.key.path))
            places.touch(path)
            let known = state.withLock { $0.journal.records[path.key] }
            // A file without read permission cannot be opened, so its permissions change by its name.
            if let mode, let found = try directory.status(of: name), found.permissions & 0o400 == 0,
                known?.matching(FileStamp(found)) != nil
            {
                try directory.setPermissions(mode, of: name)
            }
            guard let file = try OpenFile(reading: name, in: directory) else { return false }
            let status = try file.status()
            guard status.kind == .regular, var record = known?.matching(FileStamp(status)) else { return false }
            if let mode { try file.setPermissions(mode) }
            guard let modified, modified != status.modifiedSecond else { return true }
            try file.setModificationTime(modified)
            // Not the stamp that the file has now: bytes written meanwhile must count as an edit.
            record.stamp.modified = modified * 1_000_000_000
            try adopt(path.key, version: record.version, digest: record.digest, stamp: record.stamp)
            return true
        }
        guard isDone ?? false else { throw SyncError.changedLocally(.metadata) }
    }

    func makeDirectory(_ path: RelativePath) throws {
        try places.probe?(.describes(path.key.path))
        // First: if the process ends in between, the next pass removes the directories that no longer belong to the list.
        try write([.placed(path.key, link: nil)])
        try places.inDirectory(of: RelativePath(trusting: path.parts + [""]), isMaking: true) { _, _ in }
    }

    /// Makes a link, or replaces one that a pass has made. Refuses a link that would lead out of the target, and a name in use.
    func makeLink(_ path: RelativePath, to text: String) throws {
        let key = path.key
        try verify(path.target(ofLink: text), of: key)
        // As for a directory, the record comes before new directories above the link.
        if try places.inDirectory(of: path, isMaking: false, { _, _ in }) == nil { try write([.placed(key, link: text)]) }
        try places.inDirectory(of: path, isMaking: true) { directory, name in
            try places.probe?(.describes(key.path))
            let found = try directory.status(of: name)
            if let found, found.kind != .link || !isOwnLink(name, in: directory, key: key) {
                throw SyncError.taken(key, by: found.kind.words)
            }
            places.touch(path)
            // First the text that the link has now, because earlier calls may have recorded others and failed.
            let before = directory.textOfLink(name).map { [TargetJournal.Change.placed(key, link: $0)] } ?? []
            try write(before + [.placed(key, link: text)])
            // If this fails, the next pass forgets a record without a link.
            if found == nil { return try directory.makeLink(name, to: text) }
            let temporaryName = PartNames(path: key.path).bytes + ".link"
            try places.parts.remove(temporaryName)
            try places.parts.makeLink(temporaryName, to: text)
            try places.parts.rename(temporaryName, to: directory, as: name)
        }
    }

    /// Removes a link or an empty directory that a pass has made, and the directories that this leaves empty.
    func displace(_ path: RelativePath) throws {
        let key = path.key
        let isDirectory = state.withLock { $0.journal.placed[key]?.contains(nil) ?? false }
        try places.inDirectory(of: path, isMaking: false) { directory, name in
            try places.probe?(.describes(key.path))
            guard let found = try directory.status(of: name) else { return }
            places.touch(path)
            if found.kind == .link, isOwnLink(name, in: directory, key: key) { try directory.remove(name) }
            if found.kind == .directory, isDirectory { try directory.removeDirectory(name) }
        }
        // A directory that the process may not remove then counts as any other.
        try? places.removeEmptyDirectories(above: path)
        try write([.displaced(key)])
    }

    /// Returns whether a link has a text that a pass has given it.
    private func isOwnLink(_ name: String, in directory: DirectoryHandle, key: PathKey) -> Bool {
        guard let text = directory.textOfLink(name) else { return false }
        return state.withLock { $0.journal.placed[key]?.hasText(text) ?? false }
    }

    /// Throws if the path of a link leads through a link that no pass has made.
    private func verify(_ parts: [String], of key: PathKey) throws {
        var current = places.root
        for (depth, part) in parts.enumerated() {
            let through = RelativePath(trusting: parts).directory(depth + 1)
            if try current.status(of: part)?.kind == .link, !isOwnLink(part, in: current, key: through) {
                throw SyncError.leading(key, through: through)
            }
            // A link of the list obeys the same rule.
            guard let next = try current.existingDirectory(part) else { return }
            current = next
        }
    }
}
