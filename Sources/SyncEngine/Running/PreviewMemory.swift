internal import StoreCore

/// The downloaded previews of items without their content, so that the next pass does not download them again.
///
/// The memory lives as long as the synchronizer, and is bounded by the downloads of the last pass.
final class PreviewMemory<Item: SyncItem>: Sendable {
    private let versions = Lock<[Item.Key: Item.Version]>([:])

    /// Returns the downloads without a preview in their version; forgets all other previews.
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

    /// Records a downloaded preview.
    func arrived(_ item: Item) {
        versions.withLock { $0[item.key] = item.version }
    }

    /// Forgets a preview after its content was downloaded.
    func contentArrived(of key: Item.Key) {
        versions.withLock { $0[key] = nil }
    }
}
