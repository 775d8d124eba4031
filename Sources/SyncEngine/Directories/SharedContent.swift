internal import StoreCore

/// The check of staged updates: many different files that all receive one content suggest a login page, not an update.
enum SharedContent {
    /// Returns the reason why staged updates must not be installed.
    ///
    /// - Parameter changes: The digest of each file before and after, without files that stay the same; an unknown previous digest is
    ///   `nil`.
    /// - Returns: `nil` if the updates may be installed.
    static func refusal(of changes: [(before: SHA256.Digest?, after: SHA256.Digest)]) -> SyncError? {
        guard changes.count >= SafetyGate.floor else { return nil }
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
