internal import StoreCore
internal import StorePlatform

extension DirectoryTarget {
    /// The roles of an item: only files have content, and metadata counts by option.
    public var roles: (@Sendable (Item) -> (hasContent: Bool, hasMetadata: Bool))? {
        { [options = layers.metadata] item in
            switch item.metadata?.kind {
            // A file without metadata may be the one that counts of several with its key.
            case nil, .file: return (true, !options.isDisjoint(with: [.times, .modes]))
            case .directory: return (false, options.contains(.directories))
            case .link: return (false, options.contains(.links))
            }
        }
    }

    /// Returns the times, permissions, directories and links that differ from the list.
    @concurrent
    public func metadata(
        in plan: SyncPlan<Item>, of items: [Item]
    ) async throws -> (changes: [SyncPlan<Item>.MetadataChange], refusals: [SyncRefusal<PathKey>]) {
        let session = callingSession
        let hasDirectories = layers.metadata.contains(.directories)
        if let session, !hasDirectories {
            // Without the option, the directories that earlier passes have made stay.
            let made = Set(session.journal.placed.compactMap { $0.value.contains(nil) ? $0.key : nil })
            session.places.named.withLock { $0 = made }
        }
        guard !layers.metadata.isEmpty else { return ([], []) }
        let root = try session?.places.root ?? DirectoryHandle(opening: place)
        let placed = try session?.journal.placed ?? root.map { try journal(in: $0).placed } ?? [:]
        var planning = MetadataPlanning(plan: plan, options: layers.metadata, placed: placed, excludes: excludes, root: root)
        for item in items.sorted(by: { $0.key < $1.key }) {
            try Task.checkCancellation()
            try planning.take(item)
        }
        try planning.refuseForeignWays()
        try planning.takeMissing()
        if let session {
            let named = planning.named
            if hasDirectories { session.places.named.withLock { $0 = named } }
            try session.write(planning.silent)
        }
        return (planning.changes, planning.refusals)
    }

    /// Changes the time or the permissions of a file, or makes or removes a link or an empty directory.
    @concurrent
    public func apply(_ change: SyncPlan<Item>.MetadataChange) async throws {
        let session = try session()
        let options = layers.metadata
        let path = try RelativePath(existing: change.key)
        try session.places.whileThere(at: path) {
            guard let metadata = change.item?.metadata else { return try session.displace(path) }
            switch metadata.kind {
            case .file: try session.describe(path, mode: metadata.boundedMode(options), modified: metadata.boundedTime(options))
            case .directory: try session.makeDirectory(path)
            case .link(let text): try session.makeLink(path, to: text)
            }
        }
        try session.places.verify()
    }
}

/// The comparison of a list's metadata with a directory, without changing anything.
private struct MetadataPlanning<Item: FileItem> {
    struct Found {
        var status: FileStatus
        /// The text of a link.
        var text: String?
        /// Whether this is a directory without entries.
        var isEmpty = false
    }

    let options: MetadataOptions
    var placed: [PathKey: [String?]]
    let excludes: (@Sendable (PathKey) -> Bool)?
    let root: DirectoryHandle?
    /// Whether the process may not examine the last object.
    var isDenied = false
    /// The directory of the last object, opened once for all of its objects.
    var directory: DirectoryHandle?
    var folder: PathKey?
    /// The listed keys of links and directories.
    var listed: Set<PathKey> = []
    var named: Set<PathKey> = []
    var changes: [SyncPlan<Item>.MetadataChange] = []
    var refusals: [SyncRefusal<PathKey>] = []
    /// Changes of the journal that change nothing in the directory.
    var silent: [TargetJournal.Change] = []
    /// The planned links, and the names of the paths to which they lead.
    var ways: [(key: PathKey, names: [String])] = []

    /// The files that get their metadata with their content, or that the pass leaves alone.
    let others: Set<PathKey>
    /// The old keys of moved files by their new keys.
    let moved: [PathKey: PathKey]
    /// The files that the pass removes before it makes links and directories.
    let freed: Set<PathKey>

    init(
        plan: SyncPlan<Item>, options: MetadataOptions, placed: [PathKey: [String?]], excludes: (@Sendable (PathKey) -> Bool)?,
        root: DirectoryHandle?
    ) {
        (self.options, self.placed, self.excludes, self.root) = (options, placed, excludes, root)
        let keys = (plan.additions + plan.updates).map(\.item.key) + plan.refusals.map(\.key)
        others = Set(keys + plan.keptEdits)
        moved = Dictionary(plan.moves.map { ($0.item.key, $0.from.key) }) { first, _ in first }
        freed = Set((plan.removals + plan.moves.compactMap(\.removal)).map(\.local.key))
    }

    mutating func take(_ item: Item) throws {
        let key = item.key
        guard let metadata = item.metadata else { return }
        if metadata.kind == .file {
            guard !others.contains(key), let found = try find(moved[key] ?? key), found.status.kind == .regular else { return }
            let words = metadata.differences(from: found.status, options)
            if !words.isEmpty { changes.append(.init(key, item: item, summary: words.joined(separator: ", "))) }
            return
        }
        // Patterns of directories end with a slash.
        if metadata.kind == .directory, excludes?(PathKey(key.path + "/")) ?? false { return }
        do {
            let path = try RelativePath(key)
            listed.insert(key)
            if case .link(let text) = metadata.kind {
                try take(item, link: text, leadingTo: path.target(ofLink: text))
            } else {
                named.insert(key)
                try take(item, link: nil)
            }
        } catch let error as SyncError {
            refusals.append(SyncRefusal(key, because: error))
        }
    }

    /// Compares a link, which leads to a path with these names, or a directory if there is no text.
    private mutating func take(_ item: Item, link: String?, leadingTo names: [String] = []) throws {
        let key = item.key
        if let found = try find(key) {
            let kind = found.status.kind
            if kind == (link == nil ? .directory : .link), [found.text].hasText(link) {
                if placed[key]?.prefix(1).hasText(link) != true { silent.append(.placed(key, link: link)) }
                return
            }
            guard isOwn(found, key) || (kind == .directory ? isEmptied(key) : freed.contains(key)) else {
                throw SyncError.taken(key, by: kind.words)
            }
            // An object of the other kind makes room first.
            if isOwn(found, key), found.text == nil || link == nil { changes.append(removal(of: key, found)) }
        }
        if link != nil { ways.append((key, names)) }
        changes.append(.init(key, item: item, summary: link.map { "link → \($0)" } ?? "directory"))
    }

    /// Refuses the planned links that lead through a link that no pass has made. A pass checks this again before it makes a link.
    mutating func refuseForeignWays() throws {
        for case .placed(let key, link: let text) in silent { placed[key, default: []].append(text) }
        var refused: Set<PathKey> = []
        for (key, names) in ways {
            for depth in names.indices {
                let through = PathKey(names[...depth].joined(separator: "/"))
                guard let found = try find(through), found.status.kind == .link else { continue }
                if !isOwn(found, through) {
                    refused.insert(key)
                    refusals.append(SyncRefusal(key, because: SyncError.leading(key, through: through)))
                }
                break
            }
        }
        if !refused.isEmpty { changes.removeAll { refused.contains($0.key) } }
    }

    /// Finds the links and directories that the list no longer has.
    mutating func takeMissing() throws {
        for (key, texts) in placed.sorted(by: { $0.key < $1.key }) where !listed.contains(key) {
            guard options.contains(texts.contains(nil) ? .directories : .links) else { continue }
            // An excluded directory then stays when its last file is removed, too.
            guard removes(key, texts) else {
                named.insert(key)
                continue
            }
            let found = try find(key)
            // It may still exist.
            if isDenied { continue }
            if let found, isOwn(found, key) {
                changes.append(removal(of: key, found))
            } else if found == nil, try isBelowEmptyDirectory(key) {
                changes.append(.init(key, item: nil, summary: "directory removed"))
            } else {
                silent.append(.displaced(key))
            }
        }
    }

    /// Returns whether a pass may remove an object with these records. A pattern may exclude a directory with or without a slash at its end.
    private func removes(_ key: PathKey, _ texts: [String?]) -> Bool {
        let isDirectory = texts.contains(nil)
        guard options.contains(isDirectory ? .directories : .links) else { return false }
        return !(excludes.map { $0(key) || isDirectory && $0(PathKey(key.path + "/")) } ?? false)
    }

    /// Returns whether a pass may remove something in a directory. The directory goes with its last file, link or directory.
    private func isEmptied(_ directory: PathKey) -> Bool {
        let prefix = (directory.path + "/").utf8
        func isBelow(_ other: PathKey) -> Bool { other.path.utf8.starts(with: prefix) }
        return freed.contains(where: isBelow) || placed.contains { isBelow($0.key) && removes($0.key, $0.value) }
    }

    /// Returns whether the innermost directory above a missing object is empty: a killed process has made it, but not the object.
    private mutating func isBelowEmptyDirectory(_ key: PathKey) throws -> Bool {
        let parts = key.parts
        for depth in stride(from: parts.count - 1, to: 0, by: -1) {
            let above = PathKey(parts.prefix(depth).joined(separator: "/"))
            if let found = try find(above) { return found.isEmpty && !named.contains(above) }
        }
        return false
    }

    private func removal(of key: PathKey, _ found: Found) -> SyncPlan<Item>.MetadataChange {
        .init(key, item: nil, summary: found.text == nil ? "directory removed" : "link removed")
    }

    /// Returns whether an object is a link or an empty directory that a pass has made.
    private func isOwn(_ found: Found, _ key: PathKey) -> Bool {
        let texts = placed[key] ?? []
        return found.text != nil && texts.hasText(found.text) || found.isEmpty && texts.contains(nil)
    }

    /// Examines an object without following a link; `nil` if it does not exist, or if the process may not examine it.
    private mutating func find(_ key: PathKey) throws -> Found? {
        let parts = key.parts
        guard let name = parts.last else { return nil }
        isDenied = false
        do {
            let wanted = PathKey(parts.dropLast().joined(separator: "/"))
            if folder != wanted {
                folder = nil
                directory = try root?.existingDirectory(at: parts.dropLast())
                folder = wanted
            }
            guard let directory, let status = try directory.status(of: name) else { return nil }
            var found = Found(status: status)
            if status.kind == .link { found.text = directory.textOfLink(name) }
            if status.kind == .directory, let inner = try directory.existingDirectory(name) {
                var listing = try inner.list()
                found.isEmpty = try listing.next() == nil
            }
            return found
        } catch {
            guard error.isDenial else { throw error }
            isDenied = true
            return nil
        }
    }
}
