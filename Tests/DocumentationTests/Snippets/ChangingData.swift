internal import StoreCore
import StoreCoreTesting
internal import Testing

struct ChangingDataTests {
    private let fetcher = ScriptedFetcher<Int, User> { .success(User(id: $0.param, name: "fetched \($0.number)")) }
    private let time = ManualTime()

    private func store(_ cacher: some Cacher<Int, User> = MemoryCacher(expiry: .after(.seconds(60)))) -> Store<Int, User> {
        Store(cacher: cacher, fetcher: fetcher, time: time)
    }

    // MARK: Set

    @Test func `update sets the data`() async throws {
        let users = store()
        let api = UserAPI()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }

        //: ChangingData.md: let saved = try

        try await recorder.next { $0 == .completed(saved) }
        // The content is dated now.
        time.advance(by: .seconds(59))
        #expect(try await users[1].requireData() == saved)
    }

    @Test func `an update drops a running fetch and restarts an explicit refresh`() async throws {
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

    @Test func `an update with nil clears the key`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        await users[1].update(nil)
        await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
    }

    // MARK: Change in place

    @Test func `an update closure changes the data in place`() async throws {
        let users = store()
        _ = try await users[1].requireData()

        //: ChangingData.md: let wasThere

        #expect(wasThere)
        #expect(await users[2].update { $0.name = "nothing" } == false)
        #expect(fetcher.startedCount == 1)

        await #expect(throws: Offline.self) { try await users[1].update { _ in throw Offline() } }
        #expect(try await users[1].requireData().name == "Ada Lovelace")
    }

    @Test func `concurrent changes in place lose no update`() async throws {
        let users = store()
        await users[1].update(User(id: 1, name: ""))
        await withTaskGroup { group in
            for _ in 1...20 { group.addTask { await users[1].update { $0.name += "x" } } }
        }
        #expect(try await users[1].requireData().name.count == 20)
    }

    @Test func `a canceled task can set data but not change it in place`() async throws {
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

    // MARK: Mutate

    private let isDown = Offline()

    @Test func `a successful optimistic change is fetched once`() async throws {
        let users = store()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        // An observer may skip a state that is replaced at once.
        let api = UserAPI(whileRenaming: { try await recorder.next { $0.content?.name == "Ada Lovelace" } })

        //: ChangingData.md: try await users[1]

        // An observed key is fetched once.
        try await recorder.next { $0 == .completed(User(id: 1, name: "fetched 2")) }
        #expect(fetcher.startedCount == 2)
    }

    @Test func `a failed optimistic change is taken back alone`() async throws {
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
        // Without an observer there is no fetch.
        #expect(fetcher.startedCount == 1)
    }

    @Test func `a patch is saved only after it has settled`() async throws {
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

    // MARK: Invalidate and clear

    @Test func `invalidate keeps the content, clear removes it`() async throws {
        let users = store()
        _ = try await users[1].requireData()

        //: ChangingData.md: await users[1].invalidate

        let invalidated = await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        #expect(invalidated?.staleContent as? User == User(id: 1, name: "fetched 1"))

        //: ChangingData.md: await users[1].clear

        let cleared = await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        #expect(cleared?.staleContent == nil)
        #expect(fetcher.startedCount == 1)
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        await users[1].clear()
        try await recorder.next { $0 == .completed(User(id: 1, name: "fetched 3")) }
    }
}
