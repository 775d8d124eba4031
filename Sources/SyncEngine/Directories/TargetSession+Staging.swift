internal import StoreCore
internal import StorePlatform

// If the list gives neither digest nor size of a file, its content cannot be checked. An origin that serves one login page with status 200
// for every file would replace them all. Such updates are staged: they stay in the directory of parts until the last download has ended,
// and are installed together or not at all.

extension TargetSession {
    /// A complete download that waits to be installed.
    struct StagedUpdate: Sendable {
        var part: FilePart.Staged
        var path: RelativePath
        var version: String
        /// The digest of the file that it replaces; `nil` if that file is missing or unreadable.
        var before: SHA256.Digest?
    }

    /// The number of staged updates installed at a time; each waits for the disk and holds an open file.
    private static let installedAtATime = 64

    func isStaged(_ key: PathKey) -> Bool { state.withLock { $0.stageable.contains(key) } }

    /// Stages an update; if the installed file has the same content, only its version in the journal changes.
    func stage(_ part: FilePart.Staged, of item: some FileItem, as path: RelativePath) throws {
        let key = item.key
        let present = try places.inDirectory(of: path, isMaking: false) { directory, name in
            try (digestIfReadable(of: name, in: directory, key: key), directory.status(of: name))
        }
        if let (digest, status) = present, digest == part.digest, let status,
            state.withLock({ $0.expected[key] == .some(FileStamp(status)) })
        {
            try adopt(key, version: item.version, digest: part.digest, stamp: FileStamp(status))
            if let metadata = item.metadata {
                try describe(path, mode: metadata.boundedMode(places.metadata), modified: metadata.boundedTime(places.metadata))
            }
            state.withLock { _ = $0.stageable.remove(key) }
            return try part.cleanUp(in: places)
        }
        let update = StagedUpdate(part: part, path: path, version: item.version, before: present?.0)
        state.withLock { $0.staged[key] = update }
    }

    /// Returns the digest of an installed file; `nil` if it does not exist, or if it can be replaced but not read.
    private func digestIfReadable(of name: String, in directory: DirectoryHandle, key: PathKey) throws -> SHA256.Digest? {
        do {
            try places.probe?(.reads(key.path))
            return try DirectoryScan.digest(of: name, in: directory)
        } catch  where error.isDenial || error.isLoss {
            return nil
        }
    }

    /// Installs the staged updates; returns the files that were not replaced, with their reasons.
    func installStaged(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<PathKey>] {
        let (staged, count) = state.withLock { (exchange(&$0.staged, with: [:]), $0.stageable.count) }
        guard !staged.isEmpty else { return [] }
        var refusal: (any Error)? = Task.isCancelled ? CancellationError() : nil
        if refusal == nil, !overrides.contains(.sharedContent) {
            refusal = SharedContent.refusal(of: staged.values.map { ($0.before, $0.part.digest) }, planned: count)
        }
        if let refusal {
            // The next pass discards the parts that cannot be removed now.
            for update in staged.values { try? update.part.cleanUp(in: places) }
            return staged.keys.sorted().map { SyncRefusal($0, because: refusal) }
        }
        return await install(staged.values.sorted { $0.path.key < $1.path.key })
    }

    private func install(_ updates: [StagedUpdate]) async -> [SyncRefusal<PathKey>] {
        await withTaskGroup(of: SyncRefusal<PathKey>?.self) { group in
            var refusals: [SyncRefusal<PathKey>] = []
            for (index, update) in updates.enumerated() {
                if index >= Self.installedAtATime, let refusal = await group.next() ?? nil { refusals.append(refusal) }
                group.addTask { [self] in
                    do {
                        try await commit(update.part.reopen(in: places), as: update.path, version: update.version)
                        try places.verify()
                        try update.part.cleanUp(in: places)
                        return nil
                    } catch {
                        // The failure names the directory if the process may not change it, because all of its files fail.
                        return SyncRefusal(update.path.key, because: places.reason(for: error, at: update.path))
                    }
                }
            }
            for await case .some(let refusal) in group { refusals.append(refusal) }
            return refusals.sorted { $0.key < $1.key }
        }
    }
}

/// The check of staged updates: many different files that all receive one content suggest a login page, not an update.
enum SharedContent {
    /// Returns the reason why staged updates must not be installed, by the digest of each changed file before, if it is known, and after.
    ///
    /// A pass that ends early has more planned updates than changed files. Each such pass could otherwise install a few of them.
    static func refusal(of changes: [(before: SHA256.Digest?, after: SHA256.Digest)], planned: Int = 0) -> SyncError? {
        guard max(planned, changes.count) >= SafetyGate.floor, changes.count > 1 else { return nil }
        var counts: [SHA256.Digest: Int] = [:]
        for change in changes { counts[change.after, default: 0] += 1 }
        guard let (shared, count) = counts.max(by: { $0.value < $1.value }), 2 * count > changes.count, shared != emptiness else {
            return nil
        }
        // Files with equal content before may have equal content again.
        var before: [SHA256.Digest: Int] = [:]
        for change in changes where change.after == shared { if let digest = change.before { before[digest, default: 0] += 1 } }
        guard 2 * (before.values.max() ?? 0) <= changes.count else { return nil }
        return SyncError(
            .sharedContent,
            "cannot install the updates: \(count) of \(counted(changes.count, "changed file")) would get the same content, but differed before; "
                + "none of them was replaced; if the source is right, call sync(overriding: .sharedContent)",
            stage: .contents)
    }

    private static let emptiness = SHA256().digest()
}
