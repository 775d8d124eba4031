internal import StoreCore
internal import Testing

struct ChangingDataTests {
    private let fetcher = ScriptedFetcher<Int, User> { .success(User(id: $0.param, name: "fetched \($0.number)")) }
    private let time = ManualTime()

    private func store(_ cacher: some Cacher<Int, User> = MemoryCacher(expiry: .after(.seconds(60)))) -> Store<Int, User> {
        Store(cacher: cacher, fetcher: fetcher, time: time)
    }

    // MARK: Setting

    @Test func `setting the data`() async throws {
        let users = store()
        let api = UserAPI()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }

        let saved = try await api.user(1)
        await users[1].update(saved)

        try await recorder.next { $0 == .completed(saved) }
        // Dated now.
        time.advance(by: .seconds(59))
        #expect(try await users[1].requireData() == saved)
    }

    @Test func `a running fetch goes nowhere, an explicit refresh begins again`() async throws {
        let users = store()
        fetcher.hold()
        async let user = users[1].requireData()
        try await fetcher.started(count: 1)
        await users[1].update(User(id: 1, name: "set"))
        #expect(try await user.name == "set")
        try await fetcher.cancelled(count: 1)
        #expect(fetcher.startedCount == 1)

        async let refresh: Void = users[1].refresh()
        try await fetcher.started(count: 2)
        async let update: Void = users[1].update(User(id: 1, name: "set again"))
        try await fetcher.started(count: 3)
        fetcher.release()
        _ = await (refresh, update)
        #expect(try await users[1].requireData().name == "fetched 3")
    }

    @Test func `nothing is the same as clear`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        await users[1].update(nil)
        await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
    }

    // MARK: In place

    @Test func `changing in place`() async throws {
        let users = store()
        _ = try await users[1].requireData()

        let wasThere = await users[1].update { $0.name = "Ada Lovelace" }

        #expect(wasThere)
        #expect(await users[2].update { $0.name = "nobody" } == false)
        #expect(fetcher.startedCount == 1)

        await #expect(throws: Offline.self) { try await users[1].update { _ in throw Offline() } }
        #expect(try await users[1].requireData().name == "Ada Lovelace")
    }

    @Test func `nothing is lost between two who change in place`() async throws {
        let users = store()
        await users[1].update(User(id: 1, name: ""))
        await withTaskGroup { group in
            for _ in 1...20 { group.addTask { await users[1].update { $0.name += "x" } } }
        }
        #expect(try await users[1].requireData().name.count == 20)
    }

    @Test func `in a cancelled task setting counts, changing in place does not`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            let wasThere = await users[1].update { $0.name = "changed" }
            await users[2].update(User(id: 2, name: "set"))
            return wasThere
        }
        #expect(await task.value == false)
        #expect(try await users[1].requireData().name == "fetched 1")
        #expect(try await users[2].requireData().name == "set")
    }

    // MARK: Optimistic

    private let isDown = Offline()

    @Test func `an optimistic change that succeeds`() async throws {
        let users = store()
        let api = UserAPI()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }

        try await users[1].mutate { user in
            user.name = "Ada Lovelace"
        } perform: {
            try await api.rename(1, to: "Ada Lovelace")
        }

        try await recorder.next { $0.content?.name == "Ada Lovelace" }
        // It is observed: fetched once.
        try await recorder.next { $0 == .completed(User(id: 1, name: "fetched 2")) }
        #expect(fetcher.startedCount == 2)
    }

    @Test func `an optimistic change that fails`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        await #expect(throws: Offline.self) {
            try await users[1].mutate {
                $0.name = "shown"
            } perform: {
                #expect(try await users[1].requireData().name == "shown")
                await users[1].update { $0.name = "beneath" }
                throw Offline()
            }
        }
        #expect(try await users[1].requireData().name == "beneath")
        // Nobody observes it, and nothing is fetched.
        #expect(fetcher.startedCount == 1)
    }

    @Test func `patches are never saved, what they come to is`() async throws {
        let database = Database()
        let cacher = DatabaseCacher<User>(database: database)
        let users = store(cacher)
        await users[1].update(User(id: 1, name: "saved"))
        let meanwhile = try await users[1].mutate {
            $0.name += ", patched"
        } perform: {
            await users[1].update { $0.name = "saved again" }
            return try await cacher.load(param: 1)
        }
        #expect(meanwhile?.content.name == "saved again")
        #expect(try await cacher.load(param: 1)?.content.name == "saved again, patched")
    }

    // MARK: Forgetting

    @Test func `doubting keeps the content, forgetting does not`() async throws {
        let users = store()
        _ = try await users[1].requireData()

        await users[1].invalidate()

        let doubted = await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        #expect(doubted?.staleContent as? User == User(id: 1, name: "fetched 1"))

        await users[1].clear()

        let forgotten = await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        #expect(forgotten?.staleContent == nil)
        #expect(fetcher.startedCount == 1)
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        await users[1].clear()
        try await recorder.next { $0 == .completed(User(id: 1, name: "fetched 3")) }
    }
}
