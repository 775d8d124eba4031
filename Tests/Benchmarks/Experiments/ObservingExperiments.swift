internal import StoreCore

extension Experiment {
    static var observing: [Experiment] { [fanOut, roundTrip, liveValue] }

    // MARK: Fan-out

    private static let observers = 1_000

    private static let fanOut = Experiment(.observing, "fan-out", "1 000 updates × 1 000 observers, until all saw the last") { scale in
        let updates = scale.times(1_000, quick: 200)
        return [
            .actor {
                let actor = ActorRepository<Int, User> { User(id: $0) }
                await actor.update(0, User(id: 0))
                return try await timeFanOut(
                    to: { arrived in
                        for await user in await actor.observe(0) where arrived(user.id) == updates { return }
                    },
                    of: { for number in 1...updates { await actor.update(0, User(id: number)) } })
            },
            .mutex {
                let mutex = MutexRepository<Int, User> { User(id: $0) }
                mutex.update(0, User(id: 0))
                return try await timeFanOut(
                    to: { arrived in
                        for await user in mutex.observe(0) where arrived(user.id) == updates { return }
                    },
                    of: { for number in 1...updates { mutex.update(0, User(id: number)) } })
            },
            .storehouse {
                let store = Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }
                await store[0].update(User(id: 0))
                return try await timeFanOut(
                    to: { arrived in
                        for await state in store[0].publish() where arrived(state.content?.id ?? 0) == updates { return }
                    },
                    of: { for number in 1...updates { await store[0].update(User(id: number)) } })
            },
        ]
    }

    /// Measures the time from the first update until every observer has seen the last; all observers have the initial content.
    private static func timeFanOut(
        to observe: @escaping @Sendable (_ arrived: @Sendable (Int) -> Int) async -> Void, of update: () async -> Void
    ) async throws -> [Double] {
        let gate = Gate(expecting: observers)
        let tasks = (0..<observers).map { _ in
            Task {
                await observe { number in
                    if number == 0 { gate.arrive() }
                    return number
                }
            }
        }
        await gate.wait()
        let watch = Stopwatch()
        await update()
        for task in tasks { await task.value }
        return [watch.nanoseconds]
    }

    // MARK: Round trip

    private static let roundTrip = Experiment(
        .observing, "round-trip", "update → observed → echoed, 2 tasks (floor: 2 continuations)"
    ) { scale in
        let trips = scale.times(20_000, quick: 5_000)
        return [
            .actor { await perCall(trips) { await bounce(trips, ActorRepository<Int, User> { User(id: $0) }) } },
            .mutex { await perCall(trips) { await bounce(trips, MutexRepository<Int, User> { User(id: $0) }) } },
            .floor { await perCall(trips) { await bounce(trips) } },
            .storehouse { await perCall(trips) { await bounce(trips, Store(cacher: MemoryCacher<Int, User>()) { User(id: $0) }) } },
        ]
    }
}

// One task updates key 0 and waits for the echo; the other observes key 0 and echoes each update to key 1.

private func bounce(_ trips: Int) async {
    let (there, back) = (Handoff(), Handoff())
    let echo = Task { for _ in 1...trips { back.send(await there.receive()) } }
    for number in 1...trips {
        there.send(number)
        blackHole(await back.receive())
    }
    await echo.value
}

private func bounce(_ trips: Int, _ mutex: MutexRepository<Int, User>) async {
    let echo = Task {
        for await user in mutex.observe(0) where user.id > 0 {
            mutex.update(1, user)
            if user.id == trips { return }
        }
    }
    var echoes = mutex.observe(1).makeAsyncIterator()
    for number in 1...trips {
        mutex.update(0, User(id: number))
        while await echoes.next()?.id != number {}
    }
    await echo.value
}

private func bounce(_ trips: Int, _ actor: ActorRepository<Int, User>) async {
    let echo = Task {
        for await user in await actor.observe(0) where user.id > 0 {
            await actor.update(1, user)
            if user.id == trips { return }
        }
    }
    var echoes = await actor.observe(1).makeAsyncIterator()
    for number in 1...trips {
        await actor.update(0, User(id: number))
        while await echoes.next()?.id != number {}
    }
    await echo.value
}

private func bounce(_ trips: Int, _ store: Store<Int, User>) async {
    await store[0].update(User(id: 0))
    await store[1].update(User(id: 0))
    let echo = Task {
        for await state in store[0].publish() {
            guard let user = state.content, user.id > 0 else { continue }
            await store[1].update(user)
            if user.id == trips { return }
        }
    }
    var echoes = store[1].publish().makeAsyncIterator()
    for number in 1...trips {
        await store[0].update(User(id: number))
        while await echoes.next()?.content?.id != number {}
    }
    await echo.value
}
