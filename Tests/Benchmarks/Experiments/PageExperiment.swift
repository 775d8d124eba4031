internal import StoreCore

extension Experiment {
    /// Appends pages to an observed list until the observer has seen all of it.
    static let pages = Experiment(.lists, "pages", "1 000 pages of 50 {Int, String} appended, live observer") { scale in
        let pages = Pages(count: scale.times(1_000, quick: 400), size: 50)
        return [
            .actor {
                let list = ActorList<User> { pages[$0] }
                return try await timePages(
                    observing: { for await users in await list.observe() where users.count == pages.total { return } },
                    loading: { for _ in 0..<pages.count { try await list.loadNext() } })
            },
            .mutex {
                let list = MutexList<User> { pages[$0] }
                return try await timePages(
                    observing: { for await users in list.observe() where users.count == pages.total { return } },
                    loading: { for _ in 0..<pages.count { try await list.loadNext() } })
            },
            .storehouse {
                let store = PaginationStore(cacher: MemoryCacher<Int, [User]>(), fetcher: PageFetcher(pages: pages))
                return try await timePages(
                    observing: { for await state in store[0].publish() where state.content?.count == pages.total { return } },
                    loading: {
                        // An observer or this call makes the store fetch the first page.
                        _ = try await store[0].requireData()
                        for _ in 1..<pages.count { await store[0].requestNextData() }
                    })
            },
        ]
    }

    private static func timePages(
        observing: @escaping @Sendable () async -> Void, loading: () async throws -> Void
    ) async rethrows -> [Double] {
        let watch = Stopwatch()
        let observer = Task { await observing() }
        try await loading()
        await observer.value
        return [watch.nanoseconds]
    }
}

/// Prepared pages, so that no figure includes making them.
private struct Pages: Sendable {
    let pages: [[User]]
    let total: Int

    init(count: Int, size: Int) {
        total = count * size
        pages = (0..<count).map { page in (0..<size).map { User(id: page * size + $0, name: "item \(page * size + $0)") } }
    }

    var count: Int { pages.count }

    subscript(page: Int) -> (elements: [User], next: Int?) { (pages[page], page + 1 < pages.count ? page + 1 : nil) }
}

private struct PageFetcher: PaginationFetcher {
    let pages: Pages

    func fetch(param: Int) async throws -> Page<User> { page(0) }

    func fetchNext(nextKey: String, param: Int) async throws -> Page<User> { page(Int(nextKey) ?? 0) }

    private func page(_ number: Int) -> Page<User> {
        let (elements, next) = pages[number]
        return Page(elements, nextKey: next.map { String($0) })
    }
}
