import Foundation
import Testing
import Trials

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StoreCoreTesting

/// Appends a number to a list.
private struct Append: Command, Hashable {
    static let name = "append"
    var key: String
    var number: Int

    func replacing(_ identifiers: IdentifierReplacement) -> Append { Append(key: identifiers[key], number: number) }
}

/// Creates a list with one number.
private struct CreateList: Command, Hashable {
    static let name = "create"
    var key: String
    var number: Int
}

/// Random histories of a real outbox over real files.
///
/// The model is one sentence: a list shows what the origin has performed, followed by the pending numbers in the order of submission. A lost
/// change, a change that is applied twice, a changed order, and a change that outlives its refusal all contradict it.
private final class OutboxHistory {
    let directory: TemporaryDirectory
    let time = ManualTime()
    let lists = WatchedState<[String: [Int]]>([:])
    let performed = WatchedState<Set<UUID>>([])
    var world: World
    var random: SplitMix
    var steps: [String] = []
    /// The numbers that are neither performed nor given up, with their keys, in their order.
    var pending: [(id: UUID, key: String, number: Int)] = []
    var failed: [(id: UUID, key: String, number: Int)] = []
    /// The keys that were created, under their temporary name, and their replacements.
    var created: [String: String?] = [:]
    /// The numbers of commands that create a list.
    var creations: Set<Int> = []
    var lastNumber = 0

    /// One launch of the program.
    final class World: Sendable {
        let store: Store<String, [Int]>
        let outbox: Outbox
        let appending: ScriptedDeliveries<Append, Void>
        let creating: ScriptedDeliveries<CreateList, Created<String, [Int]>>
        let events = OutboxEvents()

        init(
            _ directory: TemporaryDirectory, _ time: ManualTime, _ lists: WatchedState<[String: [Int]]>,
            _ performed: WatchedState<Set<UUID>>
        ) throws {
            appending = ScriptedDeliveries { delivery in
                // An origin that honors the key.
                if performed.update({ $0.insert(delivery.delivery.id).inserted }) {
                    lists.update { $0[delivery.command.key, default: []].append(delivery.command.number) }
                }
                return .success(())
            }
            creating = ScriptedDeliveries { delivery in
                let key = "real \(delivery.command.key)"
                if performed.update({ $0.insert(delivery.delivery.id).inserted }) { lists.update { $0[key] = [delivery.command.number] } }
                return .success(Created(key))
            }
            appending.hold()
            creating.hold()
            store = Store(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("lists"))),
                fetcher: ScriptedFetcher { request in .success(lists.current[request.param] ?? []) }, time: time)
            outbox = try Outbox(directory: directory.file("outbox"), time: time, onEvent: events.append)
        }

        func register() async {
            await outbox.register(
                Append.self, patching: store, at: \.key, patch: { $1.append($0.number) },
                perform: { [appending] in try await appending.perform($0, $1) })
            await outbox.register(
                CreateList.self, creating: store, at: \.key, content: { [$0.number] },
                perform: { [creating] in try await creating.perform($0, $1) })
            outbox.start()
        }

        /// Waits until every possible delivery is held by the origin, and everything else has ended.
        func quiet() async throws {
            try await until("the outbox is quiet") {
                guard await self.outbox.core.isQuiet else { return false }
                let held = self.appending.heldCount + self.creating.heldCount
                return await held == self.outbox.core.runningCount
            }
        }
    }

    init(seed: UInt64) throws {
        directory = try TemporaryDirectory()
        random = SplitMix(seed: seed)
        world = try World(directory, time, lists, performed)
    }

    func run() async throws {
        await world.register()
        for _ in 0..<25 {
            try await step()
            try await world.quiet()
            try await check()
        }
        steps.append("let everything succeed")
        try await settle()
        try await check()
        guard pending.isEmpty else { throw Contradiction(text: "\(pending) are still pending") }
        await world.outbox.core.shutDown()
    }

    struct Contradiction: Error, CustomStringConvertible {
        var text: String
        var description: String { text }
    }

    private func keys() -> [String] { ["a", "b"] + created.keys.sorted() }

    /// The key of the content now.
    private func real(_ key: String) -> String { created[key].flatMap { $0 } ?? key }

    private func step() async throws {
        switch random.below(18) {
        case 0..<5:
            guard let key = keys().randomElement(using: &random) else { return }
            try await submit(to: key)
        case 5:
            guard created.count < 3 else { return }
            lastNumber += 1
            let key = "t\(lastNumber)"
            steps.append("create \(key)")
            created[key] = .some(nil)
            creations.insert(lastNumber)
            pending.append((try await world.outbox.submit(CreateList(key: key, number: lastNumber)), key, lastNumber))
        case 6..<11: try await answer()
        case 11:
            steps.append("restart")
            // What the origin holds is canceled with the process.
            await world.outbox.core.shutDown()
            try await until { await self.world.outbox.core.runningCount == 0 }
            // A save ends with its process, too; one of the former launch must not overwrite the records of the next one.
            try await world.store.waitUntilSaved()
            world = try World(directory, time, lists, performed)
            await world.register()
        case 12:
            guard let key = keys().randomElement(using: &random), created[key] != .some(nil) else { return }
            steps.append("fetch \(key)")
            await world.store[key].refresh()
        case 13:
            guard let item = (pending + failed).randomElement(using: &random), !isCreation(item.number) else { return }
            if failed.contains(where: { $0.id == item.id }) {
                steps.append("discard \(item.number)")
                _ = try await world.outbox.discard(item.id)
                failed.removeAll { $0.id == item.id }
            } else {
                let outcome = try await world.outbox.cancel(item.id)
                steps.append("cancel \(item.number): \(outcome)")
                if outcome == .canceled { pending.removeAll { $0.id == item.id } }
                if outcome == .alreadyDelivering {
                    // Here no attempt without a response has reached the origin.
                    let outcome = try await world.outbox.discard(item.id)
                    steps.append("discard \(item.number): \(outcome)")
                    if outcome == .perhapsPerformed { pending.removeAll { $0.id == item.id } }
                }
            }
        case 14:
            guard let key = keys().randomElement(using: &random) else { return }
            steps.append("clear \(key)")
            await world.store[key].clear()
        case 15:
            guard let item = failed.randomElement(using: &random) else { return }
            steps.append("retry \(item.number)")
            _ = try await world.outbox.retry(item.id)
            retried(item.id, item.number)
        case 16:
            if let item = (pending + failed).randomElement(using: &random) { try await replace(item.id, item.key, item.number) }
        default: try await wait()
        }
    }

    private func submit(to key: String) async throws {
        lastNumber += 1
        steps.append("submit \(lastNumber) to \(key)")
        let id = try await world.outbox.submit(Append(key: key, number: lastNumber))
        if created[key] == .some(nil), failed.contains(where: { $0.key == key && isCreation($0.number) }) {
            failed.append((id, key, lastNumber))
        } else {
            pending.append((id, key, lastNumber))
        }
    }

    private func replace(_ id: UUID, _ key: String, _ number: Int) async throws {
        lastNumber += 1
        let outcome =
            isCreation(number)
            ? try await world.outbox.replace(id, with: CreateList(key: key, number: lastNumber))
            : try await world.outbox.replace(id, with: Append(key: key, number: lastNumber))
        steps.append("replace \(number) by \(lastNumber): \(outcome)")
        guard outcome.isDone else { return }
        if isCreation(number) { creations.insert(lastNumber) }
        retried(id, lastNumber)
        if let position = pending.firstIndex(where: { $0.id == id }) { pending[position].number = lastNumber }
    }

    /// A failed command is pending again, with the commands that failed because of it; or it fails again, because its list was not created.
    private func retried(_ id: UUID, _ number: Int) {
        guard let position = failed.firstIndex(where: { $0.id == id }) else { return }
        var item = failed.remove(at: position)
        item.number = number
        if !isCreation(number), failed.contains(where: { $0.key == item.key && isCreation($0.number) }) { return failed.append(item) }
        pending.append(item)
        guard isCreation(number) else { return }
        pending += failed.filter { $0.key == item.key }
        failed.removeAll { $0.key == item.key }
    }

    /// Lets every delay end, and every held delivery pass its deadline.
    private func wait() async throws {
        steps.append("wait")
        let (appends, creations) = (Set(world.appending.heldNumbers), Set(world.creating.heldNumbers))
        time.advance(by: .seconds(300))
        try await until("the deadlines have passed") {
            appends.isDisjoint(with: self.world.appending.heldNumbers) && creations.isDisjoint(with: self.world.creating.heldNumbers)
        }
    }

    private func isCreation(_ number: Int) -> Bool { creations.contains(number) }

    /// Ends one delivery that the origin holds.
    private func answer(_ wanted: Int? = nil) async throws {
        let appends = world.appending.heldCount
        guard appends + world.creating.heldCount > 0 else { return }
        let outcome = wanted ?? random.below(4)
        let isAppend = random.below(appends + world.creating.heldCount) < appends
        let ended = world.events.all.count
        var createdKey: String?
        if isAppend {
            let request = world.appending.heldNumbers[random.below(appends)]
            let command = world.appending.requests[request - 1].param.command
            steps.append("\(command.number) ends: \(outcome)")
            guard world.appending.releaseOne(request, with: failure(outcome)) else { return }
            switch outcome {
            case 0: break
            case 1: fail(command.number)
            default: pending.removeAll { $0.number == command.number }
            }
        } else {
            let request = world.creating.heldNumbers[random.below(world.creating.heldCount)]
            let command = world.creating.requests[request - 1].param.command
            steps.append("creation of \(command.key) ends: \(outcome)")
            guard world.creating.releaseOne(request, with: failure(outcome)) else { return }
            switch outcome {
            case 0: break
            case 1:
                fail(command.number)
                for other in pending where other.key == command.key { fail(other.number) }
            default:
                created[command.key] = "real \(command.key)"
                pending.removeAll { $0.number == command.number }
                createdKey = command.key
            }
        }
        try await until("the end is known") { self.world.events.all.count > ended }
        // The entity moves now, and its earlier changes are rewritten.
        if wanted == nil, let createdKey { try await submit(to: random.below(2) == 0 ? createdKey : real(createdKey)) }
    }

    private func failure<Content>(_ outcome: Int) -> ScriptedAnswer<Content>? {
        outcome == 0 ? .failure(Offline()) : outcome == 1 ? .failure(Refusal()) : nil
    }

    private func fail(_ number: Int) {
        guard let position = pending.firstIndex(where: { $0.number == number }) else { return }
        failed.append(pending.remove(at: position))
    }

    private func settle() async throws {
        for _ in 0..<200 where !pending.isEmpty {
            if world.appending.heldCount + world.creating.heldCount > 0 { try await answer(2) } else { try await wait() }
            try await world.quiet()
        }
    }

    private func check() async throws {
        for key in keys() {
            let isCreating = created[key] == .some(nil)
            // A list that could not be created does not exist.
            if isCreating, !pending.contains(where: { $0.key == key && isCreation($0.number) }) { continue }
            let expected = (lists.current[real(key)] ?? []) + pending.filter { $0.key == key || $0.key == real(key) }.map(\.number)
            for name in Set([key, real(key)]) {
                let shown = try await world.store[name].requireData()
                if shown != expected { throw Contradiction(text: "\(name) shows \(shown), expected is \(expected)") }
            }
        }
        let state = await world.outbox.core.state(of: nil)
        if state.pendingCount != pending.count || state.failedCount != failed.count {
            throw Contradiction(text: "\(state.pendingCount) are pending and \(state.failedCount) failed, expected \(pending), \(failed)")
        }
    }
}

extension ScriptedOrigin {
    var heldNumbers: [Int] { script.state.read { $0.held } }

    /// Ends a held delivery; `nil` lets it succeed.
    ///
    /// - Returns: Whether it was still held: a deadline that passes late cancels it.
    func releaseOne(_ number: Int, with answer: ScriptedAnswer<Content>?) -> Bool {
        guard let resume = script.state.update({ $0.release(number, with: answer) }) else { return false }
        resume()
        return true
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxHistoryTests {
    /// The number of histories; `STOREHOUSE_SEEDS=100000` for a long run, `STOREHOUSE_SEED=7` for a single one.
    @Test func `O1-O11: a store shows what the origin has performed, followed by the pending changes, through random histories`()
        async throws
    {
        for seed in seeds(40 as UInt64, quick: 6) {
            let history = try OutboxHistory(seed: seed)
            do {
                try await history.run()
            } catch {
                Issue.record("seed \(seed): \(error)\n\(history.steps.joined(separator: "\n"))")
                break
            }
        }
    }
}
