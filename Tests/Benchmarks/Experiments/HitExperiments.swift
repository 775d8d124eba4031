internal import StoreCore

// Each loop is written out, so that the compiler optimizes each contestant fully. All calls are made outside actors.

extension Experiment {
    static var hits: [Experiment] { [hit, expiringHit, hitOfManyKeys, hitByManyTasks] }

    private static let hit = Experiment(.reading, "hit", "cache hit, never expires, 1 key, 1 task") { scale in
        await readOneKey(lifetime: nil, scale.times(500_000, quick: 100_000))
    }

    private static let expiringHit = Experiment(.reading, "hit-expiring", "cache hit, expires, 1 key, 1 task") { scale in
        await readOneKey(lifetime: .seconds(3_600), scale.times(500_000, quick: 100_000))
    }

    private static func readOneKey(lifetime: Duration?, _ count: Int) async -> [Entrant] {
        let (mutex, actor, store) = await filled(1, lifetime: lifetime)
        return [
            .floor { try await perCall(count) { try await loop(count) } },
            .actor { try await perCall(count) { try await loop(count, actor) } },
            .mutex { try await perCall(count) { try await loop(count, mutex) } },
            .storehouse { try await perCall(count) { try await loop(count, store) } },
        ]
    }

    private static let hitByManyTasks = Experiment(.reading, "hit-8-tasks", "cache hit, never expires, 1 key, 8 tasks") { scale in
        let (mutex, actor, store) = await filled(1, lifetime: nil)
        let count = scale.times(80_000, quick: 20_000)
        return [
            .floor { try await perCall(8 * count) { try await inEightTasks { try await loop(count) } } },
            .actor { try await perCall(8 * count) { try await inEightTasks { try await loop(count, actor) } } },
            .mutex { try await perCall(8 * count) { try await inEightTasks { try await loop(count, mutex) } } },
            .storehouse { try await perCall(8 * count) { try await inEightTasks { try await loop(count, store) } } },
        ]
    }

    private static let hitOfManyKeys = Experiment(.reading, "hit-1000-keys", "cache hit, 1 000 keys, handle made per call") { scale in
        let (mutex, actor, store) = await filled(1_000, lifetime: nil)
        let keys = (0..<1_000).shuffled()
        let times = scale.times(400, quick: 100)
        return [
            .floor { try await perCall(1_000 * times) { try await loop(times, over: keys) } },
            .actor { try await perCall(1_000 * times) { try await loop(times, over: keys, actor) } },
            .mutex { try await perCall(1_000 * times) { try await loop(times, over: keys, mutex) } },
            .storehouse { try await perCall(1_000 * times) { try await loop(times, over: keys, store) } },
        ]
    }
}

/// Makes all contestants with the same content.
private func filled(_ keys: Int, lifetime: Duration?) async -> (MutexRepository<Int, User>, ActorRepository<Int, User>, Store<Int, User>) {
    let mutex = MutexRepository<Int, User>(lifetime: lifetime) { User(id: $0) }
    let actor = ActorRepository<Int, User>(lifetime: lifetime) { User(id: $0) }
    let store = Store(cacher: MemoryCacher<Int, User>(expiry: lifetime.map { .after($0) } ?? .never)) { User(id: $0) }
    for key in 0..<keys {
        mutex.update(key, User(id: key))
        await actor.update(key, User(id: key))
        await store[key].update(User(id: key))
    }
    return (mutex, actor, store)
}

/// Runs plain tasks, because no figure should include the cost of a group.
private func inEightTasks(_ body: @escaping @Sendable () async throws -> Void) async throws {
    let tasks = (0..<8).map { _ in Task { try await body() } }
    for task in tasks { try await task.value }
}

// MARK: The loops

/// The floor: an async throwing call that neither suspends nor throws.
@inline(never)
private func nothing(_ key: Int) async throws -> User { User(id: key) }

private func loop(_ count: Int) async throws {
    var sum = 0
    for _ in 0..<count { sum &+= try await nothing(0).id }
    blackHole(sum)
}

private func loop(_ count: Int, _ mutex: MutexRepository<Int, User>) async throws {
    var sum = 0
    for _ in 0..<count { sum &+= try await mutex.value(for: 0).id }
    blackHole(sum)
}

private func loop(_ count: Int, _ actor: ActorRepository<Int, User>) async throws {
    var sum = 0
    for _ in 0..<count { sum &+= try await actor.value(for: 0).id }
    blackHole(sum)
}

private func loop(_ count: Int, _ store: Store<Int, User>) async throws {
    let handle = store[0]
    var sum = 0
    for _ in 0..<count { sum &+= try await handle.requireData().id }
    blackHole(sum)
}

private func loop(_ times: Int, over keys: [Int]) async throws {
    var sum = 0
    for _ in 0..<times { for key in keys { sum &+= try await nothing(key).id } }
    blackHole(sum)
}

private func loop(_ times: Int, over keys: [Int], _ mutex: MutexRepository<Int, User>) async throws {
    var sum = 0
    for _ in 0..<times { for key in keys { sum &+= try await mutex.value(for: key).id } }
    blackHole(sum)
}

private func loop(_ times: Int, over keys: [Int], _ actor: ActorRepository<Int, User>) async throws {
    var sum = 0
    for _ in 0..<times { for key in keys { sum &+= try await actor.value(for: key).id } }
    blackHole(sum)
}

private func loop(_ times: Int, over keys: [Int], _ store: Store<Int, User>) async throws {
    var sum = 0
    for _ in 0..<times { for key in keys { sum &+= try await store[key].requireData().id } }
    blackHole(sum)
}
