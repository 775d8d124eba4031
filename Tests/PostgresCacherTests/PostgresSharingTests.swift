import Foundation
import Testing
import Trials
import StoreCoreTesting
@testable import PostgresCacher
@testable import StoreCore

/// Tests D1 to D4, D6 and D7 with several cachers, each with connections of its own, as several machines would have them.
@Suite(.enabled(if: PostgresServer.obstacle == nil, needsPostgres))
struct PostgresSharingTests {
    private let place: PostgresPlace

    init() async throws { place = try await PostgresPlace() }

    /// A store of one machine.
    final class Machine: Sendable {
        let fetcher = ScriptedFetcher<Int, Int> { .success($0.number) }
        let cacher: PostgresCacher<Int, Int>
        let store: Store<Int, Int>

        init(_ place: PostgresPlace, version: Int = 1) throws {
            cacher = PostgresCacher(try place.database(), table: place.table, version: version)
            store = Store(cacher: TieredCacher(over: cacher), fetcher: fetcher)
        }

        func observer(_ key: Int) -> RecordingObserver<Int> { RecordingObserver(store[key].publish()) }
    }

    private func until(_ observer: RecordingObserver<Int>, shows content: Int) async throws {
        try await Trials.until("the observer sees \(content)") { observer.states.last?.content == content }
    }

    // MARK: Changes arrive

    @Test func `D1: an update on one machine reaches an observer and the memory of another one`() async throws {
        let (a, b) = (try Machine(place), try Machine(place))
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        await b.store[2].update(20)
        try await b.store.waitUntilSaved()
        for value in 10..<15 {
            await a.store[1].update(value)
            try await until(observer, shows: value)
        }
        await a.store[2].update(30)
        try await Trials.until("an idle key follows") { await b.store[2].getData(from: .cache) == 30 }
        #expect(b.fetcher.requests.count == 1)
    }

    @Test func `D1: a removal and an invalidation on one machine fetch an observed key again`() async throws {
        let (a, b) = (try Machine(place), try Machine(place))
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        try await b.store.waitUntilSaved()
        await a.store[1].clear()
        try await until(observer, shows: 2)
        // Before the save there is nothing to invalidate for the other machine.
        try await b.store.waitUntilSaved()
        await a.store[1].invalidate()
        try await until(observer, shows: 3)
    }

    @Test func `D1: changes arrive in the order of their revisions, each once loads return it`() async throws {
        let (a, b, reader) = (try place.cacher(), try place.cacher(), try PostgresUser(place))
        try await reader.attach()
        await withTaskGroup { group in
            for key in 0..<50 {
                group.addTask { try? await a.save(record(key), param: key) }
                group.addTask { try? await b.save(record(-key), param: 100 + key) }
            }
        }
        try await Trials.until("all changes arrive") { reader.changes.count == 100 }
        let revisions = reader.changes.compactMap { if case .changed(_, let revision) = $0 { revision } else { nil } }
        #expect(revisions == revisions.sorted() && Set(revisions).count == 100)
        #expect(Set(reader.keys) == Set(0..<50).union(100..<150))
    }

    @Test func `D2: a cacher is not notified of its own changes, and its position advances with them`() async throws {
        let (user, other) = (try PostgresUser(place), try place.cacher())
        try await user.attach()
        for key in 0..<20 { try await user.cacher.save(record(key), param: key) }
        try await user.cacher.remove(param: 3)
        try await user.cacher.removeAll()
        try await other.save(record(1), param: 77)
        try await Trials.until("the change of the other cacher arrives") { user.keys.contains(77) }
        #expect(user.changes.count == 1)
        let revision = try #require(try await user.cacher.save(record(1), param: 1, over: user.cacher.position).saved)
        try await Trials.until("the position follows") { user.cacher.position.number >= revision.number }
    }

    @Test func `D2: machines with different schema versions do not fetch against each other`() async throws {
        let machines = [try Machine(place), try Machine(place, version: 2)]
        let observers = machines.map { $0.observer(1) }
        for observer in observers { try await Trials.until("each shows content") { observer.states.last?.content != nil } }
        for machine in machines { try await machine.store.waitUntilSaved() }
        try await machines[0].cacher.save(record(100), param: 1)
        // Sent after the notices of key 1.
        try await machines[0].cacher.remove(param: 2)
        let position = machines[0].cacher.position
        try await Trials.until("the notices arrive") { machines[1].cacher.position >= position }
        for machine in machines { #expect(machine.fetcher.requests.count == 1) }
        // A removal concerns each of them.
        try await machines[0].cacher.remove(param: 1)
        try await Trials.until("the other has fetched again") { machines[1].fetcher.requests.count == 2 }
    }

    @Test func `D1: the memory and the observers of a dropped table follow once it is created again`() async throws {
        let (a, b) = (try Machine(place), try Machine(place))
        let observer = a.observer(1)
        try await until(observer, shows: 1)
        await a.store[2].update(20)
        try await a.store.waitUntilSaved()
        try await b.cacher.dropTable()
        _ = try await b.cacher.load(param: 1)
        try await until(observer, shows: 2)
        #expect(await a.store[2].getData(from: .cache) == nil)
    }

    @Test func `D3: every position reaches the head that another machine has raised`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        for cacher in [a, b] { _ = try await cacher.load(param: 1) }
        let (table, head) = (b.table, Int64(a.position.number) + 1_000)
        _ = try await table.core.run(table.statements.raiseHead(to: head, writer: table.writer, channel: table.channel))
        try await Trials.until("the position follows") { a.position.number >= UInt64(head) }
    }

    @Test func `D3: every position reaches the head of a table that another machine has made again`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        _ = try await a.load(param: 1)
        try await a.dropTable()
        _ = try await b.load(param: 1)
        try await Trials.until("the position follows") { a.position >= b.position }
    }

    @Test func `D1, D3: several cachers of one table share a database`() async throws {
        let (database, other) = (try place.database(), try place.cacher())
        let cachers = (0..<2).map { _ in PostgresCacher<Int, Int>(database, table: place.table) }
        for cacher in cachers { _ = try await cacher.load(param: 1) }
        let position = cachers[0].position
        try await other.save(record(1), param: 1)
        try await Trials.until("all positions follow") { cachers.allSatisfy { $0.position > position } }
    }

    // MARK: No lost update

    @Test func `D3, D4: a change after a gap does not raise the position before the gap is announced`() async throws {
        let user = try PostgresUser(place)
        try await user.attach()
        let position = user.cacher.position
        user.cacher.table.lost(PostgresError(.connectionLost, "the connection was lost"))
        user.cacher.table.noticed("c \(position.number + 2) 1 37")
        #expect(user.keys == [7])
        #expect(user.cacher.position == position)
        try await user.cacher.table.reopen()
        #expect(user.gaps == 1)
        #expect(user.cacher.position.number == position.number + 2)
    }

    @Test func `D3: a decision made before another machine's change is not saved`() async throws {
        let (a, b) = (try place.cacher(), try PostgresUser(place))
        try await b.attach()
        try await b.cacher.save(record(1), param: 1)
        let base = b.cacher.position
        try await a.save(record(2), param: 1)
        let refusal = try #require(try await b.cacher.save(record(3), param: 1, over: base).refusal)
        #expect(refusal.newer == record(2) && refusal.revision > base)
        #expect(try await b.content(1) == 2)
        #expect(try await b.cacher.save(record(4), param: 1, over: refusal.revision).isSaved)
        // A plain save is above every change.
        try await b.cacher.save(record(5), param: 1)
        #expect(try await a.load(param: 1)?.content == 5)
    }

    @Test func `D3: a removal leaves a mark over which an older decision is not saved`() async throws {
        let (a, b) = (try place.cacher(), try PostgresUser(place))
        try await b.attach()
        let base = b.cacher.position
        try await a.save(record(1), param: 1)
        try await a.remove(param: 1)
        let save = try #require(try await b.cacher.save(record(3), param: 1, over: base).refusal)
        #expect(try await b.content(1) == nil)
        let removal = try #require(try await b.cacher.remove(param: 1, over: base).refusal)
        #expect(save.newer == nil && removal.newer == nil)
    }

    @Test func `D3: a table that was dropped continues above its former revisions`() async throws {
        let user = try PostgresUser(place)
        try await user.attach()
        guard case .saved(let before) = try await user.cacher.save(record(1), param: 1, over: user.cacher.position) else { return }
        for suffix in ["", "_state", "_leases"] { try await place.query("DROP TABLE \"\(place.table)\(suffix)\"") }
        guard case .saved(let after) = try await user.cacher.save(record(2), param: 1, over: before) else {
            // A new table counts as emptied.
            let other = try place.cacher()
            try await other.save(record(3), param: 1)
            #expect(other.position > before)
            return
        }
        #expect(after > before)
    }

    @Test(arguments: ["", "?options=-c%20default_transaction_isolation%3Dserializable"])
    func `D3: additions of several machines are never lost, even with a stricter default isolation`(options: String) async throws {
        var place = place
        place.url += options
        let machines = try (0..<3).map { _ in try Machine(place) }
        await machines[0].store[1].update(0)
        try await machines[0].store.waitUntilSaved()
        await withTaskGroup { group in
            for machine in machines { for _ in 0..<30 { group.addTask { await machine.store[1].update { $0 += 1 } } } }
        }
        for machine in machines { try await machine.store.waitUntilSaved() }
        #expect(try await machines[0].cacher.load(param: 1)?.content == 90)
        for machine in machines { try await Trials.until("every store has the sum") { await machine.store[1].getData(from: .cache) == 90 } }
    }

    // MARK: Gaps

    @Test func `D4: after the connection that listens was lost, a gap is announced and every live key is read again`() async throws {
        let (a, b) = (try Machine(place), try Machine(place))
        let observer = b.observer(1)
        try await until(observer, shows: 1)
        await b.store[2].update(20)
        try await b.store.waitUntilSaved()
        let gaps = Lock(0)
        let observation = b.cacher.observeChanges { change in if change == .gap { gaps.withLock { $0 += 1 } } }
        for value in 10..<13 {
            // Between the end of the connection and the next one, a change would be lost.
            let id = try await b.cacher.table.core.run(PostgresQuery(text: "SELECT pg_backend_pid()"), on: .control)[0][0][0]
            try await place.query("SELECT pg_terminate_backend(\(id?.postgresText ?? ""))")
            await a.store[1].update(value)
            await a.store[2].update(value)
            try await a.store.waitUntilSaved()
            try await until(observer, shows: value)
            try await Trials.until("an idle key follows") { await b.store[2].getData(from: .cache) == value }
        }
        #expect(gaps.withLock { $0 } > 0)
        withExtendedLifetime(observation) {}
    }

    @Test func `D4: of 10 000 notices at once, none is lost`() async throws {
        let user = try PostgresUser(place)
        try await user.attach()
        let other = try place.cacher()
        _ = try await other.load(param: 1)
        let channel = other.table.channel
        let position = user.cacher.position.number
        try await place.query(
            "SELECT count(pg_notify('\(channel)', 'c ' || \(position) + n || ' 1 ' || encode(convert_to(n::text, 'UTF8'), 'hex'))) "
                + "FROM generate_series(1, 10000) AS n")
        try await Trials.until("all arrive") { user.keys.count == 10_000 }
        #expect(user.keys == Array(1...10_000))
    }

    @Test func `D4: a foreign notice on the channel is ignored`() async throws {
        let user = try PostgresUser(place)
        try await user.attach()
        let channel = user.cacher.table.channel
        for payload in ["", "x", "c", "c a b", "c 99999999999999999999 1 00", "l x y", "c 1 1 zz", "d 1 2 3 4 5"]
            + ["c 9 -3 00", "c -9 3 00", "c 18446744073709551615 1 00", "a 9223372036854775808 1", "a 9 9223372036854775808"]
        {
            try await place.query("SELECT pg_notify('\(channel)', '\(payload)')")
        }
        try await place.cacher().save(record(1), param: 5)
        try await Trials.until("the change arrives") { user.keys == [5] }
    }

    @Test func `D4: a head that the server sets back, even below zero, harms no call`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        try await a.save(record(1), param: 1)
        try await place.query("UPDATE \"\(place.table)_state\" SET head = -5, floor = -7")
        try await place.query("UPDATE \"\(place.table)\" SET revision = -3, writer = -2")
        #expect(try await b.load(param: 1)?.content == 1)
        _ = granted(try await b.lease(1, for: .seconds(600)))
        for base in [Revision.none, b.position] { _ = try await b.save(record(2), param: 1, over: base) }
        try await b.save(record(3), param: 1)
        #expect(try await a.load(param: 1)?.content == 3)
    }

    // MARK: Idle

    @Test func `D6: an idle store causes no query, wakes no thread and holds no lock`() async throws {
        let machine = try Machine(place)
        let observer = machine.observer(1)
        try await until(observer, shows: 1)
        try await machine.store.waitUntilSaved()
        let sessions = "pid IN (SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%\(place.table)%')"
        let activity = "SELECT max(state_change)::text, count(*)::text FROM pg_stat_activity WHERE \(sessions)"
        // The thread checks the deadlines of the last calls once. On a busy machine, this and the end of other connections take a while.
        try await Trials.until("the store does nothing for some seconds") {
            try await leaveIdle(seconds: 3)
            let (before, turns) = (try await place.query(activity), machine.cacher.table.core.turns)
            #expect(Int(before[0][1] ?? "") ?? 0 > 0)
            try await leaveIdle(seconds: 4)
            return try await place.query(activity) == before && machine.cacher.table.core.turns == turns
        }
        #expect(try await place.query("SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND \(sessions)") == [["0"]])
        let other = try Machine(place)
        await other.store[1].update(5)
        try await until(observer, shows: 5)
    }

    // MARK: Emptying

    @Test func `D7: clearing a store empties all machines, and nothing fetched before is saved after it`() async throws {
        let (a, b) = (try Machine(place), try Machine(place))
        for round in 0..<3 {
            await a.store[1].update(round * 100)
            try await Trials.until("the change arrives") { await b.store[1].getData(from: .cache) == round * 100 }
            let base = b.cacher.position
            try await a.store.clear()
            try await Trials.until("the other store is empty") { await b.store[1].getData(from: .cache) == nil }
            // A record that was fetched before does not come back.
            let refusal = try #require(try await b.cacher.save(record(1), param: 2, over: base).refusal)
            #expect(refusal.newer == nil)
        }
    }

    @Test func `D7: a record that is fetched after the own clearing is saved`() async throws {
        let cacher = try place.cacher()
        for round in 1...20 {
            try await cacher.removeAll()
            #expect(try await cacher.save(record(round), param: 1, over: cacher.position).isSaved)
        }
    }

    @Test func `D7: while removed records are deleted, they are missing, and another machine saves`() async throws {
        let (a, b, gate) = (try place.cacher(), try place.cacher(), try place.database(connections: 1))
        try await a.save(record(1), param: 1)
        let number = Int32.random(in: 1...Int32.max)
        try await place.query(
            """
            CREATE FUNCTION "held \(number)"() RETURNS trigger LANGUAGE plpgsql
                AS 'BEGIN PERFORM pg_advisory_xact_lock_shared(\(number)); RETURN OLD; END';
            CREATE TRIGGER held BEFORE DELETE ON "\(place.table)" FOR EACH ROW EXECUTE FUNCTION "held \(number)"()
            """)
        _ = try await gate.core.run(PostgresQuery(text: "SELECT pg_advisory_lock(\(number))"))
        let clearing = Task { try await a.removeAll() }
        try await Trials.until("the deletion waits") {
            try await place.query("SELECT count(*) FROM pg_locks WHERE objid = \(number) AND NOT granted") == [["1"]]
        }
        try await b.save(record(2), param: 2)
        #expect(try await b.load(param: 1) == nil)
        #expect(try await b.keys() == [2])
        _ = try await gate.core.run(PostgresQuery(text: "SELECT pg_advisory_unlock(\(number))"))
        try await clearing.value
        #expect(try await b.keys() == [2])
        withExtendedLifetime(gate) {}
    }

    @Test func `D7: all records can be removed after the row of the table's state was deleted`() async throws {
        let (a, b) = (try place.cacher(), try place.cacher())
        try await a.save(record(1), param: 1)
        try await place.query("DELETE FROM \"\(place.table)_state\"")
        try await a.removeAll()
        #expect(try await b.keys() == [])
    }

    @Test func `D7: no save with an older base survives a concurrent clearing`() async throws {
        let (a, b) = (try place.cacher(), try PostgresUser(place))
        try await b.attach()
        _ = try await a.load(param: 1)
        for round in 0..<20 {
            let base = b.cacher.position
            async let cleared: Void = a.removeAll()
            let results = await withTaskGroup { group in
                for key in 0..<10 { group.addTask { (key, (try? await b.cacher.save(record(round), param: key, over: base))) } }
                return await group.reduce(into: [Int: SaveOutcome<Int>]()) { $0[$1.0] = $1.1 }
            }
            try await cleared
            try await Trials.until("the clearing arrives") {
                b.changes.count { if case .removedAll = $0 { true } else { false } } == round + 1
            }
            // The revision of the clearing decides.
            let floor = try await place.query("SELECT floor FROM \"\(place.table)_state\"")
            let limit = try #require(UInt64(floor[0][0] ?? ""))
            for (key, outcome) in results {
                if case .saved(let revision) = outcome { #expect(try await (b.content(key) == nil) == (revision.number < limit)) }
            }
        }
    }
}
