internal import StoreCore

extension Experiment {
    static var links: [Experiment] { [linkedHit, linkedChange, linkedChanges, linkedPlace, linkedEntity] }

    // MARK: Hit

    private static let linkedHit = Experiment(
        .reading, "linked-hit", "cache hit of a linked list of 50 rows (floor: without links)"
    ) { scale in
        let users = await entities(50)
        let (plain, linked) = (await list(50), await list(50, of: users))
        let count = scale.times(500_000, quick: 100_000)
        @Sendable func time(_ lists: PaginationStore<Int, User>) async throws -> [Double] {
            let watch = Stopwatch()
            var sum = 0
            for _ in 0..<count { sum &+= try await lists[0].requireData().count }
            blackHole(sum)
            return [watch.nanoseconds / Double(count)]
        }
        return [.floor { try await time(plain) }, .storehouse { try await time(linked) }]
    }

    // MARK: Changes

    private static let linkedChange = Experiment(
        .observing, "linked-change", "change of an entity in 3 linked lists of 50 rows, until seen (floor: 3 observers of it)"
    ) { scale in
        let times = scale.times(5_000, quick: 1_000)
        return [
            .floor {
                let users = await entities(50)
                return try await timeChanges(times, of: users, watching: (0..<3).map { _ in { users[7].publish().mapContent(\.name) } })
            },
            .storehouse {
                let users = await entities(50)
                var lists: [PaginationStore<Int, User>] = []
                for _ in 0..<3 { lists.append(await list(50, of: users)) }
                return try await timeChanges(
                    times, of: users, watching: lists.map { list in { list[0].publish().mapContent { $0[7].name } } })
            },
        ]
    }

    /// Measures changes of user 7, each until every observer has seen it.
    private static func timeChanges(
        _ times: Int, of users: Store<Int, User>, watching: [@Sendable () -> LoadingStateSequence<String>]
    ) async throws -> [Double] {
        let (ready, seen) = (Gate(expecting: watching.count), watching.map { _ in Handoff() })
        let tasks = zip(watching, seen).map { states, seen in
            Task {
                var count = 0
                for await state in states() {
                    if count == 0 { ready.arrive() }
                    if state.content == "\(count + 1)" {
                        count += 1
                        seen.send(count)
                    }
                    if count == times { return }
                }
            }
        }
        await ready.wait()
        let watch = Stopwatch()
        for number in 1...times {
            await users[7].update(User(id: 7, name: "\(number)"))
            for seen in seen { blackHole(await seen.receive()) }
        }
        let figure = watch.nanoseconds / Double(times)
        for task in tasks { await task.value }
        return [figure]
    }

    private static let linkedChanges = Experiment(
        .observing, "linked-changes", "1 000 changes of entities of a linked list of 1 000 rows, until its observer saw the last"
    ) { _ in
        [
            .storehouse {
                let users = await entities(1_000)
                let lists = await list(1_000, of: users)
                let ready = Gate(expecting: 1)
                let task = Task {
                    var isFirst = true
                    for await state in lists[0].publish() {
                        if isFirst { ready.arrive() }
                        isFirst = false
                        if state.content?.last?.name == "Grace" { return }
                    }
                }
                await ready.wait()
                let watch = Stopwatch()
                for id in 0..<1_000 { await users[id].update(User(id: id, name: "Grace")) }
                await task.value
                return [watch.nanoseconds]
            }
        ]
    }

    // MARK: Memory

    private static let linkedPlace = linkedMemory("linked-place", of: "a further", afterFirst: true)
    private static let linkedEntity = linkedMemory("linked-entity", of: "the first", afterFirst: false)

    private static func linkedMemory(_ name: String, of list: String, afterFirst isFurther: Bool) -> Experiment {
        Experiment(
            .memory, name, "bytes per row of \(list) observed list of linked entities (floor: without links)", unit: .bytes, rounds: 3
        ) { _ in
            [
                .floor { await bytesPerRow(linked: false, afterFirst: isFurther) },
                .storehouse { await bytesPerRow(linked: true, afterFirst: isFurther) },
            ]
        }
    }

    /// Measures an observed list. The first list with links gives each entity a stamp, which is part of its record.
    private static func bytesPerRow(linked isLinked: Bool, afterFirst isFurther: Bool) async -> [Double] {
        let rows = 20_000
        let users = await entities(rows)
        let first = isFurther ? await list(rows, of: users) : nil
        let ready = Gate(expecting: 1)
        let growth = await HeapUsage.growth {
            let lists = await list(rows, of: isLinked ? users : nil)
            Task { for await _ in lists[0].publish() { ready.arrive() } }
            await ready.wait()
        }
        withExtendedLifetime((users, first)) {}
        return [growth / Double(rows)]
    }

    // MARK: Stores

    private static func entities(_ count: Int) async -> Store<Int, User> {
        let users = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
        for id in 0..<count { await users[id].update(User(id: id)) }
        return users
    }

    private static func list(_ rows: Int, of users: Store<Int, User>? = nil) async -> PaginationStore<Int, User> {
        let lists = PaginationStore(
            cacher: MemoryCacher<Int, [User]>(), fetcher: NoPages(), links: users.map { [.elements(of: $0)] } ?? [])
        await lists[0].update((0..<rows).map { User(id: $0) })
        return lists
    }

    /// An origin that no benchmark calls.
    private struct NoPages: PaginationFetcher {
        func fetch(param: Int) async throws -> Page<User> { Page([]) }
        func fetchNext(nextKey: String, param: Int) async throws -> Page<User> { Page([]) }
    }
}
