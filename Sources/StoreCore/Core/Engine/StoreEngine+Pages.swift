// Pages of lists: requests, what memory knows of the ends of a list, and the merge indexes of idle lists.

extension StoreEngine {
    /// Requests a page beside a list and waits for the result.
    @usableFromInline
    func requestPage(_ direction: PageDirection, of param: BoxedKey, continueWhenError: Bool) async -> PageRequest {
        switch await request(param, .page(direction, continueWhenError: continueWhenError)) {
        case .page(let request): return request
        case .cancelled: return .failed(CancellationError())
        case .failure(let error): return .failed(error)
        case .content, .done, .outdated: preconditionFailure("a caller for a page received another kind of result")
        }
    }

    /// The reason for which a list in memory has no next page; `nil` if its fetcher did not guess.
    func guessedEnd(of param: BoxedKey) -> GuessedEnd? { details(of: param)?.fields.guessedEnd }

    /// Whether the last page at one side of a list in memory has added no element.
    func hasEmptyPage(_ direction: PageDirection, of param: BoxedKey) -> Bool {
        guard let pages = details(of: param)?.fields.pages?.all else { return false }
        let page = direction == .next ? pages.last : pages.first
        return page?.direction == direction && page?.count == 0
    }

    /// The details of a record in memory; `nil` if all of them have their defaults.
    private func details(of param: BoxedKey) -> RecordDetails? {
        state.withLock { state in
            let param = state.resolve(param)
            guard let key = state.live[param] else { return front?.entry(param)?.record.details }
            return key.value.machine.book.held?.record.details
        }
    }
}

/// The merge indexes of the idle lists that were extended last.
///
/// A key becomes idle between two pages of a loop that loads all of them. Without its index, each page would cost a pass over the list.
struct IdleIndexes<Param: Hashable & Sendable> {
    /// An index is as large as its list, so only a few are kept.
    private static var limit: Int { 4 }

    /// In the order in which their lists became idle, the oldest first. The details are the identity of a list: each accepted list has its
    /// own, because they hold its page key.
    private var entries: [(param: Param, details: RecordDetails, index: AnyObject)] = []

    var count: Int { entries.count }

    /// Keeps the index of a list that becomes idle, or drops an outdated one. Dropped keys are user objects and go to `leftovers`.
    mutating func keep(_ index: AnyObject?, of param: Param, _ details: RecordDetails?, _ leftovers: inout [any Sendable]) {
        // Most stores hold no lists.
        if entries.isEmpty, index == nil { return }
        _ = take(param, nil, &leftovers)
        guard let index, let details else { return }
        if entries.count == Self.limit { leftovers.append(entries.removeFirst().param) }
        entries.append((param, details, index))
    }

    /// Takes out the index of a list that becomes live, if the list is unchanged.
    mutating func take(_ param: Param, _ details: RecordDetails?, _ leftovers: inout [any Sendable]) -> AnyObject? {
        guard let position = entries.firstIndex(where: { $0.param == param }) else { return nil }
        let found = entries.remove(at: position)
        leftovers.append(found.param)
        return found.details === details ? found.index : nil
    }

    /// Forgets all indexes; their keys are user objects and go to `leftovers`.
    mutating func removeAll(_ leftovers: inout [any Sendable]) {
        for entry in entries { leftovers.append(entry.param) }
        entries = []
    }
}
