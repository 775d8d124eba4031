// The window of a list (C18): a page added at one end of a full list drops a page at the other end, which becomes the next page there.
// An empty page takes no room. It stays at its end until the next page there is merged with it.

extension KeyMachine {
    /// The pages that a fetch loads again: the loaded ones, up to the size of the window.
    var loadedPages: PageCounts {
        guard let loaded = book.held?.record.details?.fields.pages else { return PageCounts() }
        // A refetch in a window does not count empty pages, so it need not reach those at the ends.
        var pages = rules.list?.window == nil ? loaded.counts : loaded.withoutEmptyEnds.counts
        if let window = rules.list?.window {
            pages.next = min(pages.next, window - 1)
            pages.prev = min(pages.prev, window - 1 - pages.next)
        }
        return pages
    }

    /// Drops pages of a full list at the end opposite a page that is about to be added.
    ///
    /// The pages are dropped before the new one is added. An element that the new page repeats then moves to that page, and does not leave
    /// the list with a dropped one.
    ///
    /// - Parameters:
    ///   - record: The record of the list.
    ///   - window: The largest number of pages.
    ///   - list: The rules of the list.
    ///   - page: The details of the response that contains the new page.
    ///   - direction: The direction in which the new page is added.
    ///   - transition: The transition.
    mutating func makeRoom(
        in record: inout CacheRecord<Content>, of window: Int, _ list: ListRules<Content>, for page: RecordDetails?,
        _ direction: PageDirection, _ transition: inout Transition
    ) {
        let side: PageDirection = direction == .next ? .prev : .next
        let count = list.count(record.content)
        var pages = record.fields.pages?.all ?? [LoadedPage(record.freshness.storage, count: count)]
        // The record comes from a cacher, so its sizes may be wrong. Dropping by them would lose elements.
        guard isPartition(pages.map(\.count), of: count) else { return }
        // The new page will be merged with an empty one.
        let room = pages.emptyEnd(direction) == nil ? window : window + 1
        var (dropped, keyOfDropped) = (0, String?.none)
        while pages.count >= room, let (key, count) = dropPage(at: side, of: &pages, beside: page) {
            dropped += count
            keyOfDropped = key
        }
        guard let keyOfDropped else { return }
        let kept = LoadedPages(pages)
        record.fields.pages = kept
        // A dropped page no longer forbids the storage of the list.
        record.freshness.storage = kept.storage
        if side == .next { record.fields.nextKey = keyOfDropped } else { record.fields.prevKey = keyOfDropped }
        if let elements = list.drop(&record.content, dropped, side) { transition.discarded.append(elements) }
        // The positions in the index are those of the longer list.
        sides?.mergeIndex = nil
        // A page that was requested or failed at this end belongs behind the dropped one.
        interruptPage(side, &transition)
        self[side].forgetFailure(into: &transition.leftovers)
    }

    /// Drops the page at one end.
    ///
    /// - Returns: The key of the page in the direction of this end, and its number of elements; `nil` if the key is unknown, so that the
    ///   page could not be requested again.
    private func dropPage(
        at side: PageDirection, of pages: inout [LoadedPage], beside new: RecordDetails?
    ) -> (key: String, count: Int)? {
        guard let page = side == .next ? pages.last : pages.first else { return nil }
        let rest = side == .next ? pages.dropLast() : pages.dropFirst()
        // The new page will be the neighbor of the last page that is dropped.
        let neighbor = side == .next ? rest.last : rest.first
        let keyOfNew = side == .next ? new?.fields.nextKey : new?.fields.prevKey
        let key = page.direction == side ? page.key : neighbor.map(\.returnKey) ?? keyOfNew
        guard let key, !key.isEmpty else { return nil }
        pages = Array(rest)
        return (key, page.count)
    }
}
