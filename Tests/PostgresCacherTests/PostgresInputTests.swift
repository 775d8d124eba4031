import Foundation
import Testing
import Trials
import StoreCoreTesting
@testable import PostgresCacher
@testable import StoreCore

/// Tests inputs at the limits of the server, and servers that are half usable.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresInputTests {
    private let place: PostgresPlace

    init() async throws { place = try await PostgresPlace() }

    @Test func `D5: a failure with a message of 100 000 bytes fails the waiters`() async throws {
        let (holder, user) = (try place.cacher(), try place.cacher())
        let lease = try #require(granted(try await holder.lease(1, for: .seconds(600))))
        let waiter = Task { try await user.lease(1, for: .seconds(600)) }
        try await until("the task waits") { user.table.leases.waiterCount > 0 }
        let message = String(repeating: "\u{0}\"é😀", count: 12_000)
        lease.end(.failed(FetchFailedElsewhere(failureKind: .permanent, retryAfter: nil, allowsStale: true, message: message)))
        let failure = try #require(try await waiter.value.failure)
        #expect(failure.failureKind == .permanent && message.hasPrefix(failure.message) && failure.message.count > 10)
    }

    // MARK: Names and rows

    @Test(arguments: ["40001", "53100", "53200", "57014"])
    func `an error about the resources of the server is transient`(state: String) {
        #expect(PostgresError(state: state, "").failureKind == .transient)
    }

    @Test func `a timeout of any length is a time that poll accepts`() {
        let timeouts: [Duration] = [.seconds(Int64.min), .zero, .microseconds(1_500), .seconds(60), .seconds(Int64.max)]
        #expect(timeouts.map(\.milliseconds) == [1, 1, 2, 60_001, 86_400_001])
    }

    @Test func `tables with the longest names share the connections of a database`() async throws {
        let database = try place.database()
        for last in ["a", "b"] {
            let cacher = PostgresCacher<Int, Int>(database, table: String(repeating: "u", count: 55) + last)
            #expect(try await cacher.load(param: 1) == nil)
            let query = cacher.table.statements.headAfterNotices(channel: cacher.table.channel)
            #expect(try await database.core.run(query, on: .control).first?.count == 1)
            try await cacher.dropTable()
        }
    }

    @Test(arguments: ["it's a \"table\"; --", "it'\u{301}s a \"\u{301}table", "表 😀", String(repeating: "t", count: 56)])
    func `a table may have any name`(name: String) async throws {
        let (a, b) = (
            PostgresCacher<Int, Int>(try place.database(), table: name), PostgresCacher<Int, Int>(try place.database(), table: name)
        )
        let seen = Lock(0)
        let observation = b.observeChanges { _ in seen.withLock { $0 += 1 } }
        #expect(try await b.load(param: 1) == nil)
        try await a.save(record(1), param: 1)
        #expect(try await b.load(param: 1)?.content == 1)
        try await until("the change arrives") { seen.withLock { $0 } == 1 }
        try await a.dropTable()
        withExtendedLifetime(observation) {}
    }

    @Test func `a row that cannot be decoded has an error of its own, and a store fetches`() async throws {
        let cacher = try place.cacher()
        try await cacher.save(record(1), param: 1)
        try await place.query("UPDATE \"\(place.table)\" SET content = '{'")
        #expect(await thrown { _ = try await cacher.load(param: 1) }?.code == .unreadableRecord)
        let store = Store(cacher: TieredCacher(over: cacher)) { _ in 2 }
        #expect(try await store[1].requireData() == 2)
        try await store.waitUntilSaved()
        #expect(try await cacher.load(param: 1)?.content == 2)
    }

    // MARK: Servers

    @Test func `a server without a free connection has an error of its own, and a store goes on`() async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        try await place.query("CREATE ROLE few LOGIN CONNECTION LIMIT 0; GRANT ALL ON SCHEMA public TO few")
        let url = "postgresql://few@127.0.0.1:\(server.port)/postgres"
        let database = try PostgresDatabase(url: url, timeout: .seconds(600))
        let cacher = PostgresCacher<Int, Int>(database, table: place.table)
        #expect(await thrown { _ = try await cacher.load(param: 1) }?.code == .tooManyConnections)
        let store = Store(cacher: TieredCacher(over: PostgresCacher<Int, Int>(database, table: place.table))) { $0 }
        #expect(try await store[3].requireData() == 3)
        // The listening connection takes the only free one; the calls then wait for no second one.
        try await place.query("ALTER ROLE few CONNECTION LIMIT 1")
        try await until("the server accepts the connection") {
            await thrown { _ = try await cacher.load(param: 1) }?.code == .tooManyConnections && cacher.table.core.outage == nil
        }
        try await place.query("ALTER ROLE few CONNECTION LIMIT 9")
        try await until("the table is there") { (try? await cacher.save(record(1), param: 1)) != nil }
    }

    @Test func `D8: a server that accepts a connection and is silent counts as away`() async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let id = try #require(server.processID)
        kill(id, SIGSTOP)
        defer { kill(id, SIGCONT) }
        let cacher = try place.cacher(timeout: .seconds(1))
        #expect(await thrown { _ = try await cacher.load(param: 1) }?.code == .timedOut)
        let store = Store(cacher: TieredCacher(over: try place.cacher(timeout: .seconds(1)))) { $0 }
        #expect(try await store[3].requireData() == 3)
        kill(id, SIGCONT)
        try await until("the server responds") { (try? await cacher.save(record(1), param: 1)) != nil }
    }

    private static let openssl = "/usr/bin/openssl"

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: openssl), "openssl is not installed"))
    func `TLS works with the parameters of libpq, and a certificate that does not fit has an error of its own`() async throws {
        let server = try await PostgresServer.started(access: ["local all all trust", "hostssl all all 127.0.0.1/32 trust"])
        let (certificate, key) = ("\(server.directory)/server.crt", "\(server.directory)/server.key")
        let subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        let kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        let arguments = ["req", "-new", "-x509", "-days", "2", "-nodes", "-out", certificate, "-keyout", key]
        _ = try #require(try ChildProcess.output(of: Self.openssl, arguments + kind + subject, showsErrors: false))
        // The server reads the key as its own user.
        let owner = "chown $(stat -c %u \"$1/data\" 2>/dev/null || stat -f %u \"$1/data\") \"$1/server.key\"; chmod 600 \"$1/server.key\""
        _ = try ChildProcess.output(of: "/bin/sh", ["-c", owner, "sh", server.directory])
        try server.append(["ssl=on", "ssl_cert_file='\(certificate)'", "ssl_key_file='\(key)'"], to: "postgresql.conf")
        try await server.restart()
        func cacher(_ parameters: String) throws -> PostgresCacher<Int, Int> {
            let database = try PostgresDatabase(url: server.url + "?" + parameters, connections: 1, timeout: .seconds(600))
            return PostgresCacher(database, table: "t")
        }
        let trusted = try cacher("sslmode=verify-full&sslrootcert=\(certificate)")
        try await trusted.save(record(1), param: 1)
        #expect(try await trusted.load(param: 1)?.content == 1)
        #expect(try await cacher("sslmode=require").load(param: 1)?.content == 1)
        let untrusted = try cacher("sslmode=verify-full&sslrootcert=/etc/hostname")
        #expect(await thrown { _ = try await untrusted.load(param: 1) }?.code == .encryption)
        let plain = try cacher("sslmode=disable")
        #expect(await thrown { _ = try await plain.load(param: 1) }?.code == .encryption)
    }

    // MARK: Changes during an outage

    @Test(arguments: [false, true])
    func `D8: changes made while the server is away are saved once it is back`(atOnce: Bool) async throws {
        let server = try await PostgresServer.started()
        let place = try await PostgresPlace(server)
        let store = Store(cacher: TieredCacher(over: try place.cacher())) { _ in 0 }
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == 0 }
        try await store.waitUntilSaved()
        try await server.stop(atOnce: atOnce)
        for _ in 0..<3 { #expect(await store[1].update { $0 += 1 }) }
        await store[2].update(20)
        await store[3].clear()
        try await until("the observer sees the changes") { observer.states.last?.content == 3 }
        try await server.start()
        let other = try place.cacher()
        try await until("the changes are saved") {
            guard let records = try? await (other.load(param: 1), other.load(param: 2)) else { return false }
            return records.0?.content == 3 && records.1?.content == 20
        }
        try await until("the observer sees the changes") { observer.states.last?.content == 3 }
    }
}
