internal import StoreCore

extension Experiment {
    /// The cost of a value that the origin pushes, from the upstream sequence to one observer.
    static let liveValue = Experiment(
        .observing, "live-value", "a pushed value → one observer, until it saw the last of 200 000"
    ) { scale in
        let count = scale.times(200_000, quick: 20_000)
        return [
            .mutex {
                let mutex = MutexRepository<Int, User> { User(id: $0) }
                let feed = UserFeed(count: count)
                return await perCall(count) {
                    let upstream = Task {
                        for try await value in feed.values(param: 0, after: nil) {
                            if case .content(let user, _) = value { mutex.update(0, user) }
                        }
                    }
                    for await user in mutex.observe(0) where user.id == count { break }
                    upstream.cancel()
                }
            },
            .storehouse {
                let feed = UserFeed(count: count)
                let store = Store(cacher: MemoryCacher<Int, User>(), fetcher: feed)
                return await perCall(count) { for await state in store[0].publish() where state.content?.id == count { break } }
            },
        ]
    }
}

/// An origin that pushes users without pause.
private struct UserFeed: LiveFetcher {
    let count: Int

    struct Values: AsyncSequence, AsyncIteratorProtocol {
        let count: Int
        var last = 0

        func makeAsyncIterator() -> Values { self }

        mutating func next() async throws -> LiveValue<User>? {
            last += 1
            if last <= count { return .content(User(id: last)) }
            // Connected until the task is canceled.
            try await Task.sleep(for: .seconds(86_400))
            return nil
        }
    }

    func values(param: Int, after last: Validator?) -> Values { Values(count: count) }
}
