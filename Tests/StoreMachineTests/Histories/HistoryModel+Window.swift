import StoreCore

// The pages of lists, and their window.

extension HistoryModel {
    /// The pages after the content was replaced. Without identities, each page keeps its size, and the last one absorbs the difference.
    ///
    /// - Parameters:
    ///   - record: The record whose page keys are kept; `nil` if they are replaced.
    ///   - replaced: The record whose page keys are replaced. A list with a window forgets its pages then.
    ///   - count: The new number of elements.
    func pages(of record: Record?, or replaced: Record?, _ count: Int) -> [Page] {
        var pages = (record ?? (rules.window == nil ? replaced : nil))?.pages ?? [Page()]
        var left = count
        for place in pages.indices {
            pages[place].count = place == pages.count - 1 ? left : min(left, pages[place].count)
            left -= pages[place].count
        }
        return pages
    }

    /// The pages that a fetch loads again: a list without its initial page begins with its first one.
    func refetchPages(of record: Record, in flight: inout Flight) {
        let most = rules.window.map { $0 - 1 } ?? .max
        if let first = record.pages.first, let direction = first.direction, let key = first.key,
            !record.pages.contains(where: { $0.direction == nil })
        {
            (flight.asking, flight.askedKey, flight.startsInside) = (direction, key, true)
            flight.nextPages = min(most, record.pages.count - 1)
        } else {
            flight.nextPages = min(most, record.pages.count { $0.direction == .next })
            flight.prevPages = min(most - flight.nextPages, record.pages.count { $0.direction == .prev })
        }
    }

    /// Drops pages of a full list opposite a page that has arrived.
    mutating func makeRoom(_ key: Int, _ direction: PageDirection, _ returnKey: String?) {
        guard let window = rules.window else { return }
        let side: PageDirection = direction == .next ? .prev : .next
        while var accepted = self[key].accepted, accepted.pages.count >= window {
            let dropped = side == .prev ? accepted.pages.removeFirst() : accepted.pages.removeLast()
            let neighbor = side == .prev ? accepted.pages.first : accepted.pages.last
            guard let restored = dropped.direction == side ? dropped.key : neighbor == nil ? returnKey : neighbor?.returnKey else { return }
            if side == .prev {
                accepted.content.removeFirst(dropped.count)
                accepted.prevKey = restored
            } else {
                accepted.content.removeLast(dropped.count)
                accepted.nextKey = restored
            }
            self[key].accepted = accepted
            let wasLoading = self[key].sides[side]?.isLoading == true
            if wasLoading { cancelled += 1 }
            self[key].sides[side] = Side(isInterrupted: wasLoading || self[key].sides[side]?.isInterrupted == true)
        }
    }
}

extension HistoryModel.Record {
    /// Whether the initial page is in the list, so that its confirmation has a meaning.
    var hasInitialPage: Bool { pages.contains { $0.direction == nil } }

    /// Reduces the list to its initial page, because the origin has confirmed only that page.
    mutating func keepInitialPage() {
        guard let place = pages.firstIndex(where: { $0.direction == nil }) else { return }
        let (front, back) = (pages[..<place], pages[(place + 1)...])
        content = Array(content.dropFirst(front.reduce(0) { $0 + $1.count }).prefix(pages[place].count))
        if let key = front.last?.key { prevKey = key }
        if let key = back.first?.key { nextKey = key }
        pages = [HistoryModel.Page(count: content.count)]
    }
}
