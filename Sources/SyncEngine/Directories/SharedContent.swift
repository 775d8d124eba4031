internal import StoreCore

/// Judges updates that are staged: many files that differed and all get one content are more likely a login page than an update.
enum SharedContent {
    /// Why staged updates must not be installed.
    ///
    /// - Parameter changes: The digest of each file before, `nil` where it is not known, and after; files that stay the same are left out.
    /// - Returns: `nil` where they may be installed.
    static func refusal(of changes: [(before: SHA256.Digest?, after: SHA256.Digest)]) -> SyncError? {
        guard changes.count >= SafetyGate.floor else { return nil }
        var counts: [SHA256.Digest: Int] = [:]
        for change in changes { counts[change.after, default: 0] += 1 }
        guard let (shared, count) = counts.max(by: { $0.value < $1.value }), 2 * count > changes.count, shared != emptiness else {
            return nil
        }
        // Files that were alike before may be alike again.
        var before: [SHA256.Digest: Int] = [:]
        for change in changes where change.after == shared { if let digest = change.before { before[digest, default: 0] += 1 } }
        guard 2 * (before.values.max() ?? 0) <= changes.count else { return nil }
        return SyncError(
            .sharedContent,
            "installing updates: \(count) of \(counted(changes.count, "changed file")) would get the same content, which differed before; none "
                + "of them was replaced. If the source is right, call sync(overriding: .sharedContent)",
            stage: .contents)
    }

    private static let emptiness = SHA256().digest()
}
