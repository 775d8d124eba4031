import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// The bounds of delays, of recursion, of what is forgotten, and of what a delivery that does not end can hold up.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxBoundsTests {
    // MARK: Delays

    /// The number of deliveries in an hour of failures.
    private func deliveries(retryAfter: Duration?) async throws -> Int {
        let refusal = Refusal(failureKind: .transient, retryAfter: retryAfter)
        let bench = try await OutboxBench(origin: ScriptedDeliveries { _ in .failure(refusal) }).started()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        let end = bench.time.now.advanced(by: .seconds(3_600))
        var attempt = 0
        while bench.time.now < end, attempt < 200 {
            attempt += 1
            try await bench.events.first("attempt \(attempt) failed")
            try await until("the next attempt") {
                if bench.origin.startedCount > attempt { return true }
                if await bench.outbox.core.isQuiet { _ = bench.time.advanceToNextDeadline() }
                return false
            }
        }
        return bench.origin.startedCount
    }

    @Test(arguments: [nil, Duration.zero, .seconds(-10)])
    func `C24: an origin that advises no delay gets no more requests than one without advice`(_ delay: Duration?) async throws {
        // The delays are random between half of their bound and the bound, and double until 300 s.
        #expect(try await deliveries(retryAfter: delay) < 40)
    }

    @Test func `C24: a delay that began while the clock was ahead ends at the limit, however short the launches are`() async throws {
        let refusal = Refusal(failureKind: .transient, retryAfter: .seconds(3_600))
        let former = try await OutboxBench(origin: ScriptedDeliveries(.failure(refusal))).started()
        try await former.outbox.submit(Add(key: 1, amount: 5))
        try await former.events.first("attempt 1 failed")
        await former.outbox.core.shutDown()
        // The clock was a year ahead, and is right from now on.
        let date = former.time.date.addingTimeInterval(-365 * 86_400)
        for minutes in [0, 40] {
            let time = ManualTime(date: date.addingTimeInterval(Double(minutes * 60)))
            let launch = try await OutboxBench(in: former.directory, time: time).started()
            try await time.sleepers(atLeast: 1, timeout: .seconds(600))
            #expect(launch.origin.startedCount == 0)
            await launch.outbox.core.shutDown()
        }
        let last = try await OutboxBench(in: former.directory, time: ManualTime(date: date.addingTimeInterval(3_601))).started()
        try await last.settled()
        #expect(last.origin.commands == [Add(key: 1, amount: 5)])
    }

    @Test func `O12: the log keeps the beginning of an error, even of one long character`() async throws {
        struct Accents: Error, CustomStringConvertible { let description = "e" + String(repeating: "\u{301}", count: 100_000) }
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Accents()))).started()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        let error = await bench.state.commands.first?.lastError
        #expect(error.map { $0.utf8.count < 2_000 } == true)
    }

    @Test func `C24: a delay that an origin asks for ends at the limit, even after a restart`() async throws {
        let refusal = Refusal(failureKind: .transient, retryAfter: .seconds(Int64(Int32.max)))
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(refusal), .failure(refusal))).started()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        try await bench.time.sleepers(atLeast: 1, timeout: .seconds(600))
        bench.time.advance(by: .seconds(3_600))
        try await bench.events.first("attempt 2 failed")
        await bench.outbox.core.shutDown()
        // The clock was set back by ten years before the next launch.
        let later = ManualTime(date: bench.time.date.addingTimeInterval(-3_650 * 86_400))
        let again = try await OutboxBench(in: bench.directory, time: later).started()
        try await later.sleepers(atLeast: 1, timeout: .seconds(600))
        #expect(again.origin.startedCount == 0)
        later.advance(by: .seconds(3_600))
        try await again.settled()
        #expect(again.origin.startedCount == 1)
    }

    @Test(arguments: [false, true])
    func `O5: a delay that the origin has asked for ends with the command's failure, and with its replacement`(_ replaces: Bool) {
        var machine = OutboxMachine()
        machine.register("c", version: 1)
        let id = UUID()
        let deferral = OutboxEntry.Deferral(attempts: 1, date: entryDate, delay: .seconds(3_600), requested: .seconds(3_600), error: "")
        let end: [OutboxEntry.Fact] =
            replaces
            ? [.replaced(OutboxEntry.Submission())] : [.failed(.init(attempts: 1, date: entryDate, error: "")), .retried]
        for fact in [.submitted(OutboxEntry.Submission()), .deferred(deferral)] + end { machine.apply(id, fact) }
        machine.start()
        machine.setDeliverer(true)
        #expect(machine.isActive(id))
        // The attempt could not be logged.
        machine.ended(id, retryAfter: .seconds(300))
        #expect(!machine.isActive(id))
        machine.triggered()
        #expect(machine.isActive(id))
    }

    @Test(arguments: [false, true])
    func `O5, O6: a compaction by another process revives no delay that has ended, and no undecodable command`(_ isUndecodable: Bool) {
        var machine = OutboxMachine()
        machine.register("c", version: 1)
        let id = UUID()
        let deferral = OutboxEntry.Deferral(attempts: 1, date: entryDate, delay: .nanoseconds(1_000_000_007), requested: .zero, error: "")
        for fact in [OutboxEntry.Fact.submitted(OutboxEntry.Submission()), .deferred(deferral)] { machine.apply(id, fact) }
        machine.start()
        if isUndecodable { machine.markUnreadable(id) }
        machine.replaceAll(machine.entries().compactMap { OutboxEntry($0.record) }, date: entryDate)
        machine.setDeliverer(true)
        #expect(machine.isActive(id) == !isUndecodable)
        machine.apply(id, .delivered(replacement: nil))
        machine.replaceAll(machine.entries(), date: entryDate)
        #expect(machine.items[id]?.isUnreadable == isUndecodable)
    }

    @Test(arguments: [false, true])
    func `O17: a lane continues behind a delivery that does not end if its command leaves the lane`(_ leavesBeforeDeadline: Bool) {
        var machine = OutboxMachine()
        machine.register("c", version: 1)
        let ids = [UUID(), UUID()]
        for id in ids { machine.apply(id, .submitted(OutboxEntry.Submission())) }
        machine.start()
        machine.setDeliverer(true)
        if !leavesBeforeDeadline { machine.passedDeadline(ids[0]) }
        machine.apply(ids[0], .failed(OutboxEntry.Failure(attempts: 1, date: entryDate, error: "")))
        #expect(machine.isActive(ids[1]) == !leavesBeforeDeadline)
        machine.passedDeadline(ids[0])
        #expect(machine.isActive(ids[1]))
    }

    @Test func `C24: a delay in the log never outlives the limit`() throws {
        var machine = OutboxMachine()
        machine.register("c", version: 1)
        let id = UUID()
        machine.apply(id, .submitted(OutboxEntry.Submission()))
        let deferral = OutboxEntry.Deferral(
            attempts: .max, date: .distantFuture, delay: .seconds(Int64.max / 2), requested: .seconds(Int64.max / 2), error: "")
        let entry = OutboxEntry(id: id, lane: "a", fact: .deferred(deferral))
        machine.apply(try #require(OutboxEntry(entry.record)), date: entryDate)
        machine.start()
        #expect(machine.nextWake == machine.now.advanced(by: .seconds(3_600)))
        // A number of attempts from a damaged log overflows nothing.
        #expect(OutboxPolicy.default.delay(after: machine.items[id]?.attempts ?? 0, unit: 1) == .seconds(300))
        #expect(OutboxPolicy.default.delay(after: .max, unit: 1) == .seconds(300))
    }

    @Test func `O5: a new launch ends the growing delays of the last one, and keeps a delay that the origin asked for`() async throws {
        let bench = try await OutboxBench(
            origin: ScriptedDeliveries { delivery in
                .failure(Refusal(failureKind: .transient, retryAfter: delivery.command.key == 1 ? nil : .seconds(100)))
            }
        ).started()
        for key in 1...2 { try await bench.outbox.submit(Add(key: key, amount: 5)) }
        try await bench.events.first("attempt 1 failed", count: 2)
        await bench.outbox.core.shutDown()
        let again = try await OutboxBench(in: bench.directory, time: bench.time).started()
        try await again.events.first("delivered")
        #expect(again.origin.commands.map(\.key) == [1])
        #expect(await again.state.commands.map(\.attempts) == [1])
        again.time.advance(by: .seconds(100))
        try await again.settled()
    }

    // MARK: Chains

    /// A log with commands of which each creates an entity and refers to that of the one before it.
    private func chain(_ count: Int) -> (entries: [OutboxEntry], ids: [UUID]) {
        let ids = (0..<count).map { _ in UUID() }
        return (
            ids.indices.map { index in
                let submission = OutboxEntry.Submission(references: index == 0 ? [] : ["t\(index - 1)"], creates: "t\(index)")
                return OutboxEntry(id: ids[index], lane: OutboxLane(name: "\(index)"), fact: .submitted(submission))
            }, ids
        )
    }

    @Test(arguments: [OutboxEntry.Fact.failed(.init(attempts: 1, date: .distantPast, error: "refused")), .canceled])
    func `O8: a long chain of creations fails with its first one, and is retried with it`(_ end: OutboxEntry.Fact) {
        let (entries, ids) = chain(rounds(50_000, quick: 5_000))
        var machine = OutboxMachine()
        machine.register("c", version: 1)
        for entry in entries { machine.apply(entry, date: entryDate) }
        machine.apply(ids[0], end, in: "0")
        #expect(machine.pendingCount == 0)
        #expect(machine.failedCount == (end == .canceled ? ids.count - 1 : ids.count))
        guard end != .canceled else { return }
        machine.apply(ids[0], .retried, in: "0")
        #expect(machine.failedCount == 0)
        #expect(machine.commands().map(\.id) == ids)
    }

    // MARK: Replaced keys

    @Test func `O8: a temporary key is replaced however many others were replaced since, even after a restart`() async throws {
        let directory = try TemporaryDirectory()
        let count = 1_200
        let performed = WatchedState<[String]>([])
        func launch(registersAppends: Bool = true) async throws -> Outbox {
            let store = Store(cacher: MemoryCacher<String, String>()) { (key: String) in key }
            let outbox = try Outbox(directory: directory.file("outbox"), time: ManualTime())
            await outbox.register(
                CreateNote.self, creating: store, at: \.id, content: { $0.text },
                perform: { command, _ in Created("real-\(command.id)", content: command.text) })
            if registersAppends { await registerAppends(outbox, store) }
            return outbox
        }
        func registerAppends(_ outbox: Outbox, _ store: Store<String, String>) async {
            await outbox.register(
                AppendText.self, patching: store, at: \.note, patch: { $1 += $0.text },
                perform: { command, _ in performed.update { $0.append("\(command.note) \(command.text)") } })
        }
        do {
            let outbox = try await launch()
            try await outbox.submit(CreateNote(id: "t0", text: ""))
            try await outbox.submit(AppendText(note: "t0", text: "late"))
            await outbox.core.shutDown()
        }
        do {
            // The type of the change is registered only after many other keys were replaced.
            let outbox = try await launch(registersAppends: false)
            outbox.start()
            for number in 1...count { try await outbox.submit(CreateNote(id: "t\(number)", text: "")) }
            try await until { await outbox.core.machine.items.count == 1 }
            try await outbox.core.compact()
            await registerAppends(outbox, Store(cacher: MemoryCacher<String, String>()) { (key: String) in key })
            try await until { await outbox.core.isEmpty }
            #expect(performed.current == ["real-t0 late"])
            try await outbox.submit(AppendText(note: "t0", text: "shown"))
            try await until { await outbox.core.isEmpty }
            await outbox.core.shutDown()
        }
        let outbox = try await launch()
        outbox.start()
        try await outbox.submit(AppendText(note: "t0", text: "restored"))
        try await until { await outbox.core.isEmpty }
        #expect(performed.current == ["real-t0 late", "real-t0 shown", "real-t0 restored"])
        // Replaced keys alone are no reason to write the log again at every step.
        #expect(await outbox.core.recordCount > count)
    }

    @Test func `O14: a log of few large commands is compacted by its size`() async throws {
        let directory = try TemporaryDirectory()
        let text = String(repeating: "a", count: 300_000)
        let store = Store(cacher: MemoryCacher<String, String>()) { (key: String) in key }
        var outbox = try Outbox(directory: directory.url, policy: .default)
        await outbox.register(AppendText.self, patching: store, at: \.note, patch: { $1 += $0.text }, perform: { _, _ in })
        for _ in 0..<20 { _ = try await outbox.cancel(outbox.submit(AppendText(note: "a", text: text))) }
        #expect(await outbox.core.log.byteCount < OutboxCore.compactedSize + 2 * text.utf8.count)
        // Commands that still count are not written again and again.
        for _ in 0..<10 { try await outbox.submit(AppendText(note: "a", text: text)) }
        #expect(await outbox.core.log.byteCount > 10 * text.utf8.count)
        await outbox.core.shutDown()
        outbox = try Outbox(directory: directory.url, policy: .default)
        #expect(await outbox.core.machine.pendingCount == 10)
        await outbox.core.shutDown()
    }

    @Test func `O14: a log of long lanes is not written again at every step`() async throws {
        let directory = try TemporaryDirectory()
        let outbox = try Outbox(directory: directory.url, policy: .default)
        let lane = String(repeating: "a", count: 20_000)
        await outbox.register(CreateNote.self, lane: { _ in lane }) { _, _ in }
        for number in 0..<90 { try await outbox.submit(CreateNote(id: "\(number)", text: "")) }
        #expect(await outbox.core.log.byteCount > OutboxCore.compactedSize + 10 * lane.utf8.count)
        let count = await outbox.core.recordCount
        // A compaction would remove both records of the command.
        #expect(try await outbox.cancel(outbox.submit(CreateNote(id: "canceled", text: ""))) == .canceled)
        #expect(await outbox.core.recordCount == count + 2)
        await outbox.core.shutDown()
    }

    @Test func `O8: a new process forgets the oldest replaced keys, except those that commands name`() {
        var machine = OutboxMachine()
        for number in 0..<5 {
            machine.apply(OutboxEntry.noCommand, .mapped(temporary: "t\(number)", replacement: "r\(number)"), in: .none)
        }
        machine.apply(UUID(), .submitted(OutboxEntry.Submission(references: ["t1"])))
        machine.forgetOldReplacements(keeping: 2)
        #expect(machine.replacements == ["t1": "r1", "t3": "r3", "t4": "r4"])
        #expect(machine.replacementOrder == ["t1", "t3", "t4"])
    }

    @Test(arguments: [false, true])
    func `O3, O6: a lane that a fact of a newer version holds stays held under the real key of its entity`(_ hasCommand: Bool) {
        let (temporary, real) = (OutboxLane(name: "notes", key: "t"), OutboxLane(name: "notes", key: "r"))
        var machine = OutboxMachine()
        if hasCommand { machine.apply(UUID(), .submitted(OutboxEntry.Submission(subject: temporary)), in: temporary) }
        machine.apply(UUID(), .unknown, in: temporary)
        machine.apply(OutboxEntry.noCommand, .mapped(temporary: "t", replacement: "r"), in: .none)
        #expect(machine.heldLanes == [real])
    }

    @Test func `O3, O8: a lane keeps its commands if the origin keeps the temporary key of their entity`() {
        let lane = OutboxLane(name: "notes", key: "t")
        let (creation, change) = (UUID(), UUID())
        var machine = OutboxMachine()
        machine.apply(creation, .submitted(OutboxEntry.Submission(subject: lane, creates: "t")), in: lane)
        machine.apply(change, .submitted(OutboxEntry.Submission(subject: lane, references: ["t"])), in: lane)
        machine.apply(creation, .delivered(replacement: "t"), in: lane)
        #expect(machine.lanes[lane].map { Array($0.ids) } == [change])
        #expect(machine.commands(changing: lane).map(\.id) == [creation, change])
    }

    // MARK: Deliveries that do not end

    @Test func `O17: a delivery that does not end holds only its own lane in the next outbox of the process`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }).registered()
        try await bench.deliverHeld(5, 6)
        await bench.outbox.core.shutDown()
        let next = try await OutboxBench(in: bench.directory).started()
        try await next.outbox.submit(Add(key: 2, amount: 7))
        try await next.events.first("delivered")
        #expect(next.origin.commands == [Add(key: 2, amount: 7)])
        bench.origin.release()
        try await until { await next.outbox.core.isEmpty }
        #expect(bench.origin.commands == [Add(key: 1, amount: 5)])
        #expect(next.origin.commands == [Add(key: 2, amount: 7), Add(key: 1, amount: 6)])
    }

    @Test func `O10, O17: after clearing, a delivery that does not end holds no lane`() async throws {
        let bench = try await OutboxBench(
            policy: OutboxPolicy { ($0.concurrentLanes, $0.clearTimeout) = (1, .zero) },
            origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }
        ).registered()
        try await bench.deliverHeld(5)
        #expect(await bench.state.deliveringCount == 1)
        #expect(try await bench.outbox.clear() == 1)
        #expect(await bench.state.deliveringCount == 0)
        try await bench.outbox.submit(Add(key: 1, amount: 6))
        try await bench.origin.started(count: 2, timeout: .seconds(600))
        #expect(try await bench.outbox.clear() == 1)
        await bench.outbox.core.shutDown()
        let next = try await OutboxBench(in: bench.directory).started()
        try await next.outbox.submit(Add(key: 1, amount: 7))
        try await next.events.first("delivered")
        bench.origin.release()
        try await until { await bench.outbox.core.runningCount == 0 }
    }
}
