internal import Foundation
internal import StoreCore
import StoreFiles
import StoreCoreTesting
internal import Testing
internal import Trials

/// A stand-in for your database: rows of bytes in tables, by key.
actor Database {
    private var tables: [String: [String: Data]] = [:]
    var isBroken = false

    func row(_ key: String, of table: String) throws -> Data? {
        if isBroken { throw Offline() }
        return tables[table]?[key]
    }

    func put(_ row: Data?, _ key: String, into table: String) throws {
        if isBroken { throw Offline() }
        tables[table, default: [:]][key] = row
    }

    func drop(_ table: String) throws {
        if isBroken { throw Offline() }
        tables[table] = nil
    }

    func keys(of table: String) -> [String] { tables[table].map { Array($0.keys) } ?? [] }

    func setBroken(_ isBroken: Bool) { self.isBroken = isBroken }
}

//: Persisting.md: struct DatabaseCacher

struct PersistingTests {
    @Test func `a record above the cost limit is not kept`() async {
        //: Persisting.md: let images = MemoryCacher

        await images.save(CacheRecord(content: [1, 2, 3], fetchedAt: Date()), param: 1)
        await images.save(CacheRecord(content: [UInt8](repeating: 0, count: 50_000_001), fetchedAt: Date()), param: 2)
        #expect(await images.keys() == [1] && images.totalCost == 3)
    }

    private let database = Database()
    private let fetcher = ScriptedFetcher<Int, User> { .success(User(id: $0.param, name: "fetched \($0.number)")) }
    private let time = ManualTime()

    @Test func `a database keeps content behind memory`() async throws {
        let api = UserAPI()

        //: Persisting.md: let cacher = TieredCacher

        _ = try await users[1].requireData()
        // A new process.
        let usersAgain = Store(cacher: TieredCacher(over: DatabaseCacher<User>(database: database)), fetcher: UserFetcher(api: api))
        #expect(try await usersAgain[1].requireData().name == "Ada")
        #expect(api.script.startedCount == 1)
        try await usersAgain.invalidate { $0 == 1 }
        #expect(await usersAgain[1].getData(from: .cache) == nil)
    }

    @Test func `files keep content behind memory`() async throws {
        let api = UserAPI()
        let directory = temporaryURL()

        //: Persisting.md: let files = FileCacher

        await users[1].update(User(id: 1, name: "Ada"))
        // A new process.
        let filesAgain = FileCacher<User.ID, User>(directory: directory, expiry: .after(.seconds(24 * 60 * 60)))
        let usersAgain = Store(cacher: TieredCacher(over: filesAgain), fetcher: UserFetcher(api: api))
        #expect(try await usersAgain[1].requireData(from: .cache).name == "Ada")
        let attributes = try FileManager.default.attributesOfItem(atPath: directory.path())
        #expect(attributes[.posixPermissions] as? Int == 0o700)
    }

    @Test func `waitUntilSaved returns when all content is saved`() async throws {
        let api = UserAPI()
        let directory = temporaryURL()
        let files = FileCacher<User.ID, User>(directory: directory)

        //: Persisting.md: let users = Store

        let usersAgain = Store(cacher: FileCacher<User.ID, User>(directory: directory), fetcher: UserFetcher(api: api))
        #expect(await usersAgain[1].getData(from: .cache) != nil)
    }

    @Test func `a record ages between two runs of a program`() async throws {
        let cacher = DatabaseCacher<User>(database: database)
        let users = Store(cacher: cacher, fetcher: fetcher, time: time)
        _ = try await users[1].requireData()
        let later = ManualTime(date: time.date.addingTimeInterval(59 * 60))
        #expect(try await Store(cacher: cacher, fetcher: fetcher, time: later)[1].requireData().name == "fetched 1")
        let muchLater = ManualTime(date: time.date.addingTimeInterval(61 * 60))
        #expect(try await Store(cacher: cacher, fetcher: fetcher, time: muchLater)[1].requireData().name == "fetched 2")
        // The clock was set back, so the age of the record is unknown.
        let earlier = ManualTime(date: time.date.addingTimeInterval(-1))
        #expect(try await Store(cacher: cacher, fetcher: fetcher, time: earlier)[1].requireData().name == "fetched 3")
    }

    @Test func `a cacher that fails costs a fetch and an event`() async throws {
        let events = Printed()
        let users = Store(cacher: DatabaseCacher<User>(database: database), fetcher: fetcher, time: time) { event in
            if case .cacherFault(let operation, _) = event.kind { events.add("\(operation)") }
        }
        await database.setBroken(true)
        await users[1].update(User(id: 1, name: "kept"))
        #expect(try await users[1].requireData().name == "kept")
        #expect(try await events.next(1) == ["save"])
        _ = try await users[2].requireData()
        #expect(try await events.next(1) == ["load"])
        await #expect(throws: Offline.self) { try await users[3].requireData(from: .cache) }
        let error = await #expect(throws: StoreError.self) { try await users.clear() }
        #expect(error?.code == .cacherFailed)
    }

    @Test func `a cacher decides which records are out of date`() async throws {
        let cacher = NightlyCacher()
        let users = Store(cacher: cacher, fetcher: fetcher, time: time)
        await cacher.save(
            CacheRecord(content: User(id: 1, name: "from yesterday"), fetchedAt: time.date.addingTimeInterval(-86_400)), param: 1)
        #expect(try await users[1].requireData().name == "fetched 1")
    }

    // MARK: Scopes

    @Test func `signing out clears all stores of a scope`() async throws {
        let api = UserAPI()
        let session = Session(api: api)
        _ = try await session.users[1].requireData()
        let repos = try await session.repos["apple"].requireData()
        #expect(repos.isEmpty)
        try await session.scope.waitUntilSaved()
        try await session.signOut()
        let error = await #expect(throws: StoreError.self) { try await session.users[1].requireData() }
        #expect(error?.code == .closed)
    }
}

//: Persisting.md: final class Session

/// Treats records from before the last midnight as out of date.
//: Persisting.md: actor NightlyCacher
