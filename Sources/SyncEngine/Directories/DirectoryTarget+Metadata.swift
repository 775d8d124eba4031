internal import StoreCore
internal import StorePlatform

extension DirectoryTarget {
    /// The roles of an item: only files have content, and metadata counts by option.
    public var roles: (@Sendable (Item) -> ItemRoles)? {
        { [options = layers.metadata] item in
            return switch item.metadata?.kind {
            case nil: .content
            case .file: options.isDisjoint(with: [.times, .modes]) ? .content : [.content, .metadata]
            case .directory: options.contains(.directories) ? .metadata : []
            case .link: options.contains(.links) ? .metadata : []
            }
        }
    }

    /// Returns the times, permissions, directories and links that differ from the list.
    ///
    /// - Throws: `StoreError` if the disk fails.
    @concurrent
    public func metadata(
        in plan: SyncPlan<Item>, of items: [Item]
    ) async throws -> (changes: [SyncPlan<Item>.MetadataChange], refusals: [SyncRefusal<PathKey>]) {
        guard !layers.metadata.isEmpty else { return ([], []) }
        let session = callingSession
        let root = try session?.places.root ?? DirectoryHandle(opening: place)
        let placed = try session.map { $0.state.withLock { $0.journal.placed } } ?? root.map { try journal(in: $0).placed } ?? [:]
        var planning = MetadataPlanning<Item>(
            options: layers.metadata, plan: plan, placed: placed, finder: StatusFinder(root), excludes: excludes)
        for item in items.sorted(by: { $0.key < $1.key }) {
            try Task.checkCancellation()
            try planning.take(item)
        }
        try planning.takeMissing()
        if let session {
            session.places.named.withLock { [named = planning.named] in $0 = named }
            try session.record(planning.silent)
        }
        return (planning.changes, planning.refusals)
    }

    /// Changes the time or the permissions of a file, or makes or removes a link or an empty directory.
    @concurrent
    public func apply(_ change: SyncPlan<Item>.MetadataChange) async throws {
        let session = try session()
        let (key, options) = (change.key, layers.metadata)
        let path = try RelativePath(existing: key)
        try session.places.whileThere(at: path) {
            guard let metadata = change.item?.metadata else { return try session.displace(path, key: key) }
            switch metadata.kind {
            case .file: try session.describe(path, key: key, mode: metadata.mode(options), modified: metadata.modified(options))
            case .directory: try session.makeDirectory(path, key: key)
            case .link(let text): try session.makeLink(path, key: key, to: text)
            }
        }
    }
}

/// The comparison of a list's metadata with a directory, without changing anything.
private struct MetadataPlanning<Item: FileItem> {
    private let options: MetadataOptions
    private let placed: [PathKey: [String?]]
    private let excludes: (@Sendable (PathKey) -> Bool)?
    private var finder: StatusFinder
    /// The files that get their metadata with their content, or that the pass leaves alone.
    private let others: Set<PathKey>
    /// The old keys of moved files by their new keys.
    private let moved: [PathKey: PathKey]
    /// The files that the pass removes before it changes metadata.
    private let freed: Set<PathKey>
    /// The listed keys of links and directories.
    private var listed: Set<PathKey> = []
    private(set) var changes: [SyncPlan<Item>.MetadataChange] = []
    private(set) var refusals: [SyncRefusal<PathKey>] = []
    /// The listed directories.
    private(set) var named: Set<PathKey> = []
    /// Changes of the journal that change nothing in the directory.
    private(set) var silent: [TargetJournal.Change] = []

    init(
        options: MetadataOptions, plan: SyncPlan<Item>, placed: [PathKey: [String?]], finder: StatusFinder,
        excludes: (@Sendable (PathKey) -> Bool)?
    ) {
        self.options = options
        self.placed = placed
        self.finder = finder
        self.excludes = excludes
        moved = Dictionary(plan.moves.lazy.map { ($0.item.key, $0.from.key) }, uniquingKeysWith: { first, _ in first })
        others = Set((plan.additions + plan.updates).lazy.map(\.item.key))
            .union(plan.refusals.lazy.map(\.key)).union(plan.keptEdits).union(plan.duplicates)
        freed = Set((plan.removals + plan.moves.compactMap(\.removal)).lazy.map(\.local.key))
    }

    /// Compares an item of the list.
    mutating func take(_ item: Item) throws {
        guard let metadata = item.metadata else { return }
        let key = item.key
        if metadata.kind == .file {
            guard !others.contains(key), let found = try finder.status(of: moved[key] ?? key), found.kind == .regular else { return }
            let words = metadata.differences(from: found, options)
            if !words.isEmpty { changes.append(.init(key, item: item, summary: words.joined(separator: ", "))) }
            return
        }
        // Patterns of directories end with a slash.
        if metadata.kind == .directory, excludes?(PathKey(key.path + "/")) ?? false { return }
        do {
            let path = try RelativePath(key)
            guard listed.insert(key).inserted else {
                throw SyncError(.duplicateKeys, "cannot make “\(key.shownSafely)”: the list has it twice; correct the list")
            }
            if case .link(let text) = metadata.kind {
                _ = try LinkedPath(text, at: path)
                try take(item, link: text)
            } else {
                named.insert(key)
                try take(item, link: nil)
            }
        } catch let error as SyncError {
            refusals.append(SyncRefusal(key, because: error))
        }
    }

    /// Compares a link, or a directory if there is no text.
    private mutating func take(_ item: Item, link: String?) throws {
        let key = item.key
        if let found = try finder.status(of: key) {
            let text = found.kind == .link ? try finder.textOfLink(key) : nil
            if found.kind == (link == nil ? .directory : .link), text == link {
                if placed[key]?.first != .some(link) { silent.append(.placed(key, link: link)) }
                return
            }
            let isOwn = try makesRoom(key, found.kind, text)
            guard isOwn || found.kind == .directory && holdsOnlyFreed(key) else { throw SyncError.taken(key, by: found.kind.words) }
            // An object of the other kind makes room first.
            if found.kind == (link == nil ? .link : .directory), isOwn {
                changes.append(.init(key, item: nil, summary: "\(link == nil ? "link" : "directory") removed"))
            }
        }
        changes.append(.init(key, item: item, summary: link.map { "link → \($0)" } ?? "directory"))
    }

    /// Returns whether a pass removes an object before it makes another under its name.
    private mutating func makesRoom(_ key: PathKey, _ kind: FileKind, _ text: String?) throws -> Bool {
        let texts = placed[key] ?? []
        switch kind {
        case .link: return text != nil && texts.contains(text)
        case .directory: return try texts.contains(nil) && finder.isEmpty(key)
        default: return freed.contains(key)
        }
    }

    /// Returns whether the plan removes a file in a directory; the directory then goes with its last file.
    private func holdsOnlyFreed(_ key: PathKey) -> Bool {
        let prefix = (key.path + "/").utf8
        return freed.contains { $0.path.utf8.starts(with: prefix) }
    }

    /// Finds the links and directories that the list no longer has.
    mutating func takeMissing() throws {
        for (key, texts) in placed.sorted(by: { $0.key < $1.key }) where !listed.contains(key) {
            let isDirectory = texts.contains(nil)
            guard options.contains(isDirectory ? .directories : .links) else { continue }
            if excludes?(isDirectory ? PathKey(key.path + "/") : key) ?? false { continue }
            let found = try finder.status(of: key)
            if found?.kind == .link, let text = try finder.textOfLink(key), texts.contains(text) {
                changes.append(.init(key, item: nil, summary: "link removed"))
            } else if found?.kind == .directory, isDirectory, try finder.isEmpty(key) {
                changes.append(.init(key, item: nil, summary: "directory removed"))
            } else {
                silent.append(.displaced(key))
            }
        }
    }
}

/// Examines many names in sorted order, and opens the directory of neighbors once; follows no link.
private struct StatusFinder {
    private let root: DirectoryHandle?
    private var folder: PathKey?
    private var directory: DirectoryHandle?

    init(_ root: DirectoryHandle?) { self.root = root }

    /// Returns the status of a name; `nil` if it does not exist, or if the process may not examine it.
    mutating func status(of key: PathKey) throws -> FileStatus? {
        try examine(key) { directory, name in try directory.status(of: name) } ?? nil
    }

    mutating func textOfLink(_ key: PathKey) throws -> String? {
        try examine(key) { directory, name in directory.textOfLink(name) } ?? nil
    }

    /// Returns whether a directory has no entries.
    mutating func isEmpty(_ key: PathKey) throws -> Bool {
        let isEmpty = try examine(key) { directory, name in
            guard let inner = try directory.existingDirectory(name) else { return false }
            var listing = try inner.list()
            return try listing.next() == nil
        }
        return isEmpty ?? false
    }

    private mutating func examine<Result>(_ key: PathKey, _ body: (DirectoryHandle, _ name: String) throws -> Result) throws -> Result? {
        let parts = key.parts
        guard let name = parts.last else { return nil }
        do {
            let wanted = PathKey(parts.dropLast().joined(separator: "/"))
            if folder != wanted {
                (folder, directory) = (nil, root)
                for part in parts.dropLast() { directory = try directory?.existingDirectory(part) }
                folder = wanted
            }
            return try directory.map { try body($0, name) }
        } catch  where error.isDenial {
            return nil
        }
    }
}
