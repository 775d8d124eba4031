import Foundation
import Testing
import Trials
import StoreCoreTesting
@testable import PostgresCacher
@testable import StoreCore

/// Tests D8 and the errors of servers that refuse, each with a server of its own.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres), .serialized)
struct PostgresOutageTests {
    // MARK: Without a server

    @Test func `without libpq the error names the library and how to install it`() throws {
        let error = try #require(throws: PostgresError.self) {
            try PostgresDatabase(url: "postgresql://a", connections: 1, timeout: .seconds(1), library: "/nonexistent/libpq.so.5")
        }
        #expect(error.code == .libraryMissing)
        #expect(error.description.contains("libpq") && error.description.contains("install"))
    }

    @Test(arguments: ["postgresql://[", "postgresql://host/db?nonsense=1", "host"])
    func `a malformed URL is refused, and the error keeps its password secret`(url: String) throws {
        let error = #expect(throws: PostgresError.self) { try PostgresDatabase(url: url) }
        #expect(error?.code == .invalidURL)
    }

    @Test func `D8: a store works without a server at its start, reports this once, and shares when it is available`() async throws {
        let server = try await PostgresServer.started()
        try await server.stop()
        let place = try await PostgresPlace(server)
        let cacher = PostgresCacher<Int, Int>(try place.database(), table: place.table)
        #expect(await thrown { _ = try await cacher.load(param: 1) }?.code == .unreachable)
        let faults = Lock(0)
        let fetches = Lock(0)
        let observed = PostgresCacher<Int, Int>(try place.database(), table: place.table) { _ in faults.withLock { $0 += 1 } }
        let store = Store(cacher: TieredCacher(over: observed)) { key in
            fetches.withLock { $0 += 1 }
            return key
        }
        for key in 1...20 { #expect(try await store[key].requireData() == key) }
        for key in 1...20 { #expect(try await store[key].requireData() == key) }
        #expect(faults.withLock { $0 } == 1)
        #expect(fetches.withLock { $0 } == 20)
        try await server.start()
        let other = try place.cacher()
        try await until("the store follows again") {
            try await other.save(record(77), param: 1)
            return await store[1].getData(from: .cache) == 77
        }
        #expect(faults.withLock { $0 } == 1)
    }

    @Test(arguments: [false, true])
    func `D8, D4: a restart of the server loses no addition, and every store reads again`(atOnce: Bool) async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let events = Lock<[String]>([])
        let cachers = try (0..<2).map { _ in try place.cacher() }
        let stores = cachers.map { cacher in
            Store(cacher: TieredCacher(over: cacher), fetcher: ScriptedFetcher<Int, Int> { _ in .success(0) }) { event in
                if case .cacherFault(.follow, _) = event.kind { events.withLock { $0.append("follow") } }
            }
        }
        let observers = stores.map { RecordingObserver($0[1].publish()) }
        for store in stores { #expect(try await store[1].requireData() == 0) }
        var additions = 0
        for round in 0..<3 {
            // An addition that cannot be saved at once may be dropped in favor of another store's.
            for cacher in cachers { try await until("connected") { await thrown { _ = try await cacher.load(param: 9) } == nil } }
            for store in stores where await store[1].update({ $0 += 1 }) { additions += 1 }
            for store in stores { try await until("saved") { (try? await store.waitUntilSaved()) != nil } }
            try await server.restart(atOnce: atOnce)
            // Content is there while the server may still be away.
            for store in stores { #expect(try await store[1].requireData() > 0) }
            let expected = additions
            var seen: Int?
            try await until("round \(round): all stores have the sum") {
                for store in stores { seen = await store[1].getData(from: .cache); if seen != expected { return false } }
                return true
            }
        }
        for cacher in cachers { try await until("connected") { await thrown { _ = try await cacher.load(param: 9) } == nil } }
        await stores[0][1].update { $0 += 1 }
        try await until("the other store follows") { observers[1].states.last?.content == additions + 1 }
        #expect(events.withLock { $0.count } >= 2)
    }

    @Test func `an operation that waits for the only connection continues over a new one when it is lost`() async throws {
        let place = try await PostgresPlace()
        let database = try place.database(connections: 1)
        let rows = try await database.core.run(PostgresQuery(text: "SELECT pg_backend_pid()::text"))
        let process = try #require(rows.first?.first?.first ?? nil).postgresText
        let outcomes = Lock<[Bool]>([])
        for text in ["SELECT pg_sleep(600)::text", "SELECT 'done'"] {
            database.core.submit(PostgresQuery(text: text), on: .pool) { outcome in
                outcomes.withLock { $0.append((try? outcome.get()) != nil) }
            }
        }
        try await place.query("SELECT pg_terminate_backend(\(process))")
        try await until("both have ended") { outcomes.withLock { $0 } == [false, true] }
    }

    @Test func `D1, D8: changes are followed after connections were lost at any moment of opening the table`() async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let other = try place.cacher()
        for key in 1...rounds(20, quick: 6) {
            let user = try PostgresUser(place)
            let opening = Task { try? await user.attach() }
            try await place.query(
                """
                DO $$ BEGIN
                    FOR round IN 1..20 LOOP
                        PERFORM pg_sleep(0.004 * random()), pg_stat_clear_snapshot();
                        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
                        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();
                    END LOOP;
                END $$
                """)
            await opening.value
            try await until("the user is told of a change") {
                guard (try? await user.attach()) != nil, (try? await other.save(record(key), param: key)) != nil else { return false }
                return user.keys.contains(key)
            }
        }
    }

    @Test func `D8: a table that cannot be opened again is followed once it can, without a call`() async throws {
        let place = try await PostgresPlace()
        let user = try PostgresUser(place)
        try await user.attach()
        let state = "\"\(place.table)_state\""
        try await place.query("UPDATE \(state) SET version = 2")
        let id = try await user.cacher.table.core.run(PostgresQuery(text: "SELECT pg_backend_pid()"), on: .control)[0][0][0]
        try await place.query("SELECT pg_terminate_backend(\(id?.postgresText ?? ""))")
        try await until("the table is refused") { await thrown { try await user.attach() }?.code == .newerTable }
        try await place.query("UPDATE \(state) SET version = 1")
        try await until("the gap is announced") { user.gaps > 0 }
    }

    @Test func `D8: a server that comes back empty is filled again`() async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let fetches = Lock(0)
        let store = Store(cacher: TieredCacher(over: try place.cacher())) { key in
            fetches.withLock { $0 += 1 }
            return key
        }
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == 1 }
        try await store.waitUntilSaved()
        for suffix in ["", "_state", "_leases"] { try await place.query("DROP TABLE \"\(place.table)\(suffix)\"") }
        try await server.restart()
        try await until("the key is fetched again") { fetches.withLock { $0 } >= 2 }
        let other = try place.cacher()
        try await until("and saved") { try await other.load(param: 1) == nil ? false : true }
    }

    @Test func `D8: a connection that stays silent counts as lost, and the store continues`() async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let user = try PostgresUser(place, timeout: .seconds(1))
        // On a busy machine, the server may need more than the second.
        try await until("the record is saved") { await thrown { try await user.cacher.save(record(1), param: 1) } == nil }
        try await until("the user follows") { await thrown { try await user.attach() } == nil }
        try await server.signalBackends(SIGSTOP)
        let plain = try place.cacher(timeout: .seconds(1))
        let start = ContinuousClock.now
        #expect(await thrown { _ = try await user.cacher.load(param: 1) }?.code == .timedOut)
        _ = await thrown { _ = try await plain.load(param: 1) }
        #expect(ContinuousClock.now - start < hangLimit)
        #expect(user.faults.contains { $0.code == .timedOut })
        try await server.signalBackends(SIGCONT)
        try await until("it is there again") { (try? await user.content(1)) == 1 }
        try await until("the gap is announced") { user.gaps > 0 }
    }

    @Test func `D8: a transaction that is left open fails saves before they time out, and no loads`() async throws {
        let place = try await PostgresPlace()
        let (user, other) = (try PostgresUser(place), try place.database(connections: 1))
        try await user.cacher.save(record(1), param: 1)
        let core = user.cacher.database.core
        #expect(try await core.run(PostgresQuery(text: "SHOW lock_timeout")).first?.first?.first??.postgresText == "300001ms")
        // The only connection so far, which the next calls use too.
        _ = try await core.run(PostgresQuery(text: "SET lock_timeout = 100"))
        _ = try await other.core.run(PostgresQuery(text: "BEGIN; UPDATE \"\(place.table)_state\" SET head = head"))
        let error = await thrown { try await user.cacher.save(record(2), param: 1) }
        #expect(error?.state == "55P03" && error?.failureKind == .transient)
        #expect(try await user.content(1) == 1)
        #expect(user.faults.isEmpty)
        _ = try await other.core.run(PostgresQuery(text: "COMMIT"))
        try await user.cacher.save(record(3), param: 1)
        #expect(try await user.content(1) == 3)
    }

    // MARK: Servers that refuse

    @Test func `a wrong password, missing TLS, and too many connections each have their own error`() async throws {
        let server = try await PostgresServer.started(
            access: [
                "local all all trust", "hostssl all tls 127.0.0.1/32 trust", "host all secret 127.0.0.1/32 scram-sha-256",
                "host all cache 127.0.0.1/32 trust",
            ])
        let place = try await PostgresPlace(server)
        try await place.query("CREATE ROLE secret LOGIN PASSWORD 'right'; CREATE ROLE tls LOGIN; CREATE ROLE few LOGIN")
        func failure(_ url: String) async throws -> PostgresError? {
            let cacher = PostgresCacher<Int, Int>(try PostgresDatabase(url: url, connections: 1, timeout: .seconds(600)), table: "t")
            return await thrown { _ = try await cacher.load(param: 1) }
        }
        let base = "127.0.0.1:\(server.port)/postgres"
        let wrong = try await failure("postgresql://secret:wrong@\(base)")
        #expect(wrong?.code == .refused && wrong?.description.contains("wrong") == false)
        #expect(try await failure("postgresql://secret@\(base)")?.code == .refused)
        #expect(try await failure("postgresql://tls@\(base)?sslmode=disable")?.code == .encryption)
        #expect(try await failure("postgresql://cache@\(base)?sslmode=require")?.code == .encryption)
        #expect(try await failure("postgresql://cache@127.0.0.1:\(server.port)/missing")?.code == .refused)
        #expect(try await failure("postgresql://secret:right@\(base)")?.code == .forbidden)

        try await place.query("ALTER ROLE few CONNECTION LIMIT 3; GRANT ALL ON SCHEMA public TO few")
        let crowded = "postgresql:///postgres?host=\(server.directory)&port=\(server.port)&user=few"
        // More callers than connections: the pool is bounded by the server's limit, and every load ends.
        let many = PostgresCacher<Int, Int>(try PostgresDatabase(url: crowded, connections: 8, timeout: .seconds(600)), table: "few")
        let ended = await withTaskGroup { group in
            for key in 0..<100 { group.addTask { (try? await many.save(record(key), param: key)) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(ended == 100)
        let another = try await failure(crowded)
        #expect(another?.code == .tooManyConnections || another == nil)
    }

    @Test func `a read-only database loads, and refuses to save`() async throws {
        let place = try await PostgresPlace()
        try await place.cacher().save(record(1), param: 1)
        let url = place.url + "?options=-c%20default_transaction_read_only%3Don"
        let database = try PostgresDatabase(url: url, timeout: .seconds(600))
        let cacher = PostgresCacher<Int, Int>(database, table: place.table)
        #expect(try await cacher.load(param: 1)?.content == 1)
        #expect(await thrown { try await cacher.save(record(2), param: 1) }?.code == .readOnly)
        let missing = PostgresCacher<Int, Int>(database, table: "missing \(place.table)")
        #expect(await thrown { _ = try await missing.load(param: 1) }?.code == .readOnly)
    }

    @Test func `D8: after a lost connection to a read-only database, a gap is announced, and loads go on`() async throws {
        let place = try await PostgresPlace()
        try await place.cacher().save(record(1), param: 1)
        let url = place.url + "?options=-c%20default_transaction_read_only%3Don"
        let cacher = PostgresCacher<Int, Int>(try PostgresDatabase(url: url, timeout: .seconds(600)), table: place.table)
        let gaps = Lock(0)
        let observation = cacher.observeChanges { change in if change == .gap { gaps.withLock { $0 += 1 } } }
        #expect(try await cacher.load(param: 1)?.content == 1)
        let id = try await cacher.table.core.run(PostgresQuery(text: "SELECT pg_backend_pid()"), on: .control)[0][0][0]
        try await place.query("SELECT pg_terminate_backend(\(id?.postgresText ?? ""))")
        try await until("the gap is announced") { gaps.withLock { $0 } == 1 }
        #expect(try await cacher.load(param: 1)?.content == 1)
        withExtendedLifetime(observation) {}
    }

    @Test func `a table with other columns or of a newer version is left alone`() async throws {
        let place = try await PostgresPlace()
        try await place.query("CREATE TABLE \"\(place.table)\" (id int, name text)")
        let cacher = try place.cacher()
        let foreign = await thrown { _ = try await cacher.load(param: 1) }
        #expect(foreign?.code == .foreignTable && foreign?.description.contains("id integer") == true)
        #expect(try await place.query("SELECT count(*) FROM \"\(place.table)\"") == [["0"]])
        let newer = try await PostgresPlace()
        try await newer.cacher().save(record(1), param: 1)
        try await newer.query("UPDATE \"\(newer.table)_state\" SET version = 2")
        let old = try newer.cacher()
        #expect(await thrown { _ = try await old.load(param: 1) }?.code == .newerTable)
    }
}
