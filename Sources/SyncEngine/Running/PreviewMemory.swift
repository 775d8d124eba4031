internal import StoreCore

/// The previews that have arrived, of items whose content has not: the next pass does not download them again.
///
/// It lives as long as the synchronizer, and is bounded by the downloads of the last pass.
final class PreviewMemory<Item: SyncItem>: Sendable {
    private let versions = Lock<[Item.Key: Item.Version]>([:])

    /// The downloads whose preview has not arrived in their version; forgets all others.
    func missing(among downloads: [SyncPlan<Item>.Download]) -> [SyncPlan<Item>.Download] {
        versions.withLock { versions in
            guard !versions.isEmpty else { return downloads }
            let known = versions
            versions = [:]
            return downloads.filter { download in
                guard let version = known[download.item.key], version == download.item.version else { return true }
                versions[download.item.key] = version
                return false
            }
        }
    }

    /// Remembers a preview.
    func arrived(_ item: Item) {
        versions.withLock { $0[item.key] = item.version }
    }

    /// Forgets a preview whose content is there.
    func contentArrived(of key: Item.Key) {
        versions.withLock { $0[key] = nil }
    }
}
