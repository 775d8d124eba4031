internal import StoreCore
internal import Synchronization

extension Experiment {
    static var memory: [Experiment] { [cachedKey, idleObserver, stalledObserver, leftByCall, leftByObserver, leftBySleep] }

    // MARK: Cached keys

    /// Several sizes, because tables grow in steps and a single size would be arbitrary.
    private static let sizes = [75_000, 98_000, 130_000]

    private static let cachedKey = Experiment(
        .memory, "memory-key", "bytes per cached key, mean of 75 k, 98 k, 130 k", unit: .bytes, rounds: 3
    ) { _ in
        [
            .mutex {
                await bytesPerKey { count in
                    let mutex = MutexRepository<Int, User> { User(id: $0) }
                    for key in 0..<count { mutex.update(key, User(id: key)) }
                    return mutex
                }
            },
            .actor {
                await bytesPerKey { count in
                    let actor = ActorRepository<Int, User> { User(id: $0) }
                    for key in 0..<count { await actor.update(key, User(id: key)) }
                    return actor
                }
            },
            .storehouse {
                await bytesPerKey { count in
                    let store = Store(cacher: MemoryCacher<Int, User>(limit: 1_000_000)) { User(id: $0) }
                    for key in 0..<count { await store[key].update(User(id: key)) }
                    return store
                }
            },
        ]
    }

    private static func bytesPerKey(_ fill: (_ count: Int) async -> any AnyObject & Sendable) async -> [Double] {
        var sum = 0.0
        for size in sizes {
            var kept: (any AnyObject & Sendable)?
            sum += await HeapUsage.growth { kept = await fill(size) } / Double(size)
            withExtendedLifetime(kept) {}
        }
        return [sum / Double(sizes.count)]
    }

    // MARK: Observers

    private static let idleObserver = Experiment(
        .memory, "memory-observer", "bytes per idle observer (floor: task on a continuation)", unit: .bytes, rounds: 3
    ) { _ in
        [
            .floor { await bytesOnContinuation() },
            .mutex {
                let mutex = MutexRepository<Int, User> { User(id: $0) }
                mutex.update(0, User(id: 0))
                return await bytesPerTask { gate in for await _ in mutex.observe(0) { gate.arrive() } }
            },
            .actor {
                let actor = ActorRepository<Int, User> { User(id: $0) }
                await actor.update(0, User(id: 0))
                return await bytesPerTask { gate in for await _ in await actor.observe(0) { gate.arrive() } }
            },
            .storehouse {
                let store = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
                await store[0].update(User(id: 0))
                return await bytesPerTask { gate in for await _ in store[0].publish() { gate.arrive() } }
            },
        ]
    }

    private static let tasks = 5_000

    private static func bytesPerTask(
        cancels: Bool = true, release: () -> Void = {}, _ wait: @escaping @Sendable (Gate) async -> Void
    ) async -> [Double] {
        let gate = Gate(expecting: tasks)
        var running: [Task<Void, Never>] = []
        running.reserveCapacity(tasks)
        let growth = await HeapUsage.growth {
            for _ in 0..<tasks { running.append(Task { await wait(gate) }) }
            await gate.wait()
            await settle()
        }
        if cancels { for task in running { task.cancel() } }
        release()
        for task in running { await task.value }
        await settle()
        return [growth / Double(tasks)]
    }

    private static func bytesOnContinuation() async -> [Double] {
        let parked = Parked(room: tasks)
        return await bytesPerTask(cancels: false, release: parked.release) { gate in
            await withUnsafeContinuation { continuation in
                parked.park(continuation)
                gate.arrive()
            }
        }
    }

    private static let stalledObserver = Experiment(
        .memory, "memory-stalled", "bytes kept for a stalled observer, 1 M updates", unit: .bytes, rounds: 3
    ) { scale in
        let updates = scale.times(1_000_000, quick: 100_000)
        return [
            .mutex {
                let mutex = MutexRepository<Int, User> { User(id: $0) }
                mutex.update(0, User(id: 0))
                var iterator = mutex.observe(0).makeAsyncIterator()
                blackHole(await iterator.next())
                return await growthOfUpdates(updates) { mutex.update(0, User(id: $0)) }
            },
            .actor {
                let actor = ActorRepository<Int, User> { User(id: $0) }
                await actor.update(0, User(id: 0))
                var iterator = await actor.observe(0).makeAsyncIterator()
                blackHole(await iterator.next())
                return await growthOfUpdates(updates) { await actor.update(0, User(id: $0)) }
            },
            .storehouse {
                let store = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
                await store[0].update(User(id: 0))
                var iterator = store[0].publish().makeAsyncIterator()
                blackHole(await iterator.next())
                let growth = await growthOfUpdates(updates) { await store[0].update(User(id: $0)) }
                // Verifies that the observer still exists after the last update.
                blackHole(await iterator.next())
                return growth
            },
        ]
    }

    private static func growthOfUpdates(_ updates: Int, _ update: (Int) async -> Void) async -> [Double] {
        for number in 0..<1_000 { await update(number) }
        return [await HeapUsage.growth { for number in 0..<updates { await update(number) } }]
    }

    // MARK: Leaks

    /// Uses content that expires at once, so that each call fetches.
    private static let leftByCall = Experiment(
        .memory, "left-by-call", "bytes left behind per requireData", unit: .bytes, rounds: 3
    ) { scale in
        let count = scale.times(20_000, quick: 10_000)
        let mutex = MutexRepository<Int, User>(lifetime: .zero) { User(id: $0) }
        let actor = ActorRepository<Int, User>(lifetime: .zero) { User(id: $0) }
        let store = Store(cacher: MemoryCacher<Int, User>(expiry: .after(.zero))) { User(id: $0) }
        return [
            .mutex { try await leftBehind(by: count) { blackHole(try await mutex.value(for: $0 % 100)) } },
            .actor { try await leftBehind(by: count) { blackHole(try await actor.value(for: $0 % 100)) } },
            .storehouse { try await leftBehind(by: count) { blackHole(try await store[$0 % 100].requireData()) } },
        ]
    }

    /// Releases the iterator of every second observer, and cancels the others while they wait.
    private static let leftByObserver = Experiment(
        .memory, "left-by-observer", "bytes left behind per abandoned observer", unit: .bytes, rounds: 3
    ) { scale in
        let count = scale.times(20_000, quick: 10_000)
        let mutex = MutexRepository<Int, User> { User(id: $0) }
        mutex.update(0, User(id: 0))
        let actor = ActorRepository<Int, User> { User(id: $0) }
        await actor.update(0, User(id: 0))
        let store = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
        await store[0].update(User(id: 0))
        return [
            .mutex { await leftBehindByObservers(count) { stays in for await _ in mutex.observe(0) where !stays() { return } } },
            .actor { await leftBehindByObservers(count) { stays in for await _ in await actor.observe(0) where !stays() { return } } },
            .storehouse { await leftBehindByObservers(count) { stays in for await _ in store[0].publish() where !stays() { return } } },
        ]
    }

    /// Cancels its sleeps, as most deadlines of requests are.
    private static let leftBySleep = Experiment(
        .memory, "left-by-sleep", "bytes left behind per canceled sleep of 120 s", unit: .bytes, rounds: 3
    ) { scale in
        let count = scale.times(20_000, quick: 10_000)
        return [
            .floor { await leftBehindBySleeps(count) { try? await Task.sleep(for: .seconds(120), clock: .continuous) } },
            .storehouse {
                let time = SystemTime()
                return await leftBehindBySleeps(count) { try? await time.sleep(until: time.now.advanced(by: .seconds(120))) }
            },
        ]
    }

    private static func leftBehindBySleeps(_ count: Int, _ sleep: @escaping @Sendable () async -> Void) async -> [Double] {
        await leftBehind(by: count) { _ in
            let task = Task { await sleep() }
            // Most tasks sleep by now. A task that does not is canceled earlier, and leaves nothing either.
            await Task.yield()
            task.cancel()
            await task.value
        }
    }

    private static func leftBehindByObservers(
        _ count: Int, _ observe: @escaping @Sendable (_ stays: @Sendable () -> Bool) async -> Void
    ) async -> [Double] {
        await leftBehind(by: count) { number in
            guard number.isMultiple(of: 2) else { return await observe { false } }
            let gate = Gate(expecting: 1)
            let task = Task {
                await observe {
                    gate.arrive()
                    return true
                }
            }
            await gate.wait()
            task.cancel()
            await task.value
        }
    }

    /// Measures the heap's growth per cycle, after as many cycles that allocate reusable memory.
    private static func leftBehind(by count: Int, _ cycle: (Int) async throws -> Void) async rethrows -> [Double] {
        for number in 0..<count { try await cycle(number) }
        await settle()
        let growth = try await HeapUsage.growth {
            for number in 0..<count { try await cycle(number) }
            await settle()
        }
        return [growth / Double(count)]
    }

    /// Gives finished tasks time to be freed.
    ///
    /// Waits in real time, because the runtime frees a task after it has passed on its value, without a notification.
    private static func settle() async {
        // Benchmarks are never canceled.
        try? await Task.sleep(for: .milliseconds(50))
    }
}

/// Parks tasks that wait only for their continuation.
private final class Parked: Sendable {
    private let waiting: Mutex<[UnsafeContinuation<Void, Never>]>

    init(room: Int) {
        waiting = Mutex([])
        waiting.withLock { $0.reserveCapacity(room) }
    }

    func park(_ continuation: UnsafeContinuation<Void, Never>) { waiting.withLock { $0.append(continuation) } }

    func release() {
        let all = waiting.withLock { $0 }
        for continuation in all { continuation.resume() }
    }
}
