import Foundation
import Testing
import Trials

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StoreCoreTesting

private struct Row: Hashable, Codable, Identifiable, Sendable {
    var id: Int
    var likes = 0
}

private struct Like: Command, Hashable {
    static let name = "like"
    var row: Int
    var number: Int
}

private struct Setting: CustomTestStringConvertible, Sendable {
    /// Whether the rows of lists are entities of a store. Otherwise the command changes that store as well.
    var isLinked = false
    /// Whether the command changes lists only. Linked rows have no content then, except that of the lists.
    var listsOnly = false
    var responds = false
    /// Whether two lanes deliver the commands of one row.
    var hasLanes = false

    var testDescription: String {
        let places = isLinked ? "linked rows" + (listsOnly ? " without content" : "") : listsOnly ? "lists" : "lists and rows"
        return places + (responds ? ", with responses" : "") + (hasLanes ? ", two lanes" : "")
    }

    static let all = [false, true].flatMap { responds in
        [false, true].flatMap { hasLanes in
            [(true, false), (true, true), (false, true), (false, false)].map { isLinked, listsOnly in
                Setting(isLinked: isLinked, listsOnly: listsOnly, responds: responds, hasLanes: hasLanes)
            }
        }
    }
}

/// Random histories of commands that change the elements of lists, over real files.
///
/// The model is one sentence: each place of a row shows the likes that the origin has counted, and one for each pending command. Lists and
/// rows have keys of one type, and often the same ones.
private final class ElementHistory {
    let setting: Setting
    let directory: TemporaryDirectory
    let time = ManualTime()
    let likes = WatchedState<[Int: Int]>([:])
    let performed = WatchedState<Set<UUID>>([])
    var world: World
    var random: SplitMix
    var steps: [String] = []
    var pending: [(id: UUID, row: Int, number: Int)] = []
    var observers: [Task<Void, Never>] = []
    var lastNumber = 0

    /// One launch of the program.
    final class World: Sendable {
        let rows: Store<Int, Row>
        let lists: PaginationStore<Int, Row>
        let outbox: Outbox
        let origin: ScriptedDeliveries<Like, Row>

        init(
            _ setting: Setting, _ directory: TemporaryDirectory, _ time: ManualTime, _ likes: WatchedState<[Int: Int]>,
            _ performed: WatchedState<Set<UUID>>
        ) throws {
            @Sendable func row(_ id: Int) -> Row { Row(id: id, likes: likes.current[id] ?? 0) }
            origin = ScriptedDeliveries { delivery in
                let command = delivery.command
                if performed.update({ $0.insert(delivery.delivery.id).inserted }) { likes.update { $0[command.row, default: 0] += 1 } }
                return .success(row(command.row))
            }
            origin.hold()
            rows = Store(cacher: TieredCacher(over: FileCacher(directory: directory.file("rows"))), time: time) { row($0) }
            lists = PaginationStore(
                cacher: TieredCacher(over: FileCacher(directory: directory.file("lists"))),
                fetcher: PaginationClosureFetcher { key, nextKey in
                    let start = nextKey == nil ? key : key + 2
                    return Page([row(start % 6), row((start + 1) % 6)], nextKey: nextKey == nil ? "2" : nil)
                }, links: setting.isLinked ? [.elements(of: rows)] : [], time: time)
            outbox = try Outbox(directory: directory.file("outbox"), time: time)
        }

        func start(_ setting: Setting) async {
            let parity: @Sendable (Like) -> String = { "\($0.number % 2)" }
            let lane = setting.hasLanes ? parity : nil
            let patch: @Sendable (Like, inout Row) -> Void = { $1.likes += 1 }
            let inLists = [CommandPatch<Like>(lists, element: \.row, patch)]
            switch (setting.isLinked || setting.listsOnly, setting.responds) {
            case (true, true):
                await outbox.register(Like.self, patching: lists, element: \.row, lane: lane, patch: patch, perform: origin.perform)
            case (true, false):
                await outbox.register(Like.self, patching: lists, element: \.row, lane: lane, patch: patch) { [origin] in
                    _ = try await origin.perform($0, $1)
                }
            case (false, true):
                await outbox.register(
                    Like.self, patching: rows, at: \.row, lane: lane, and: inLists, patch: patch, perform: origin.perform)
            case (false, false):
                await outbox.register(Like.self, patching: rows, at: \.row, lane: lane, and: inLists, patch: patch) { [origin] in
                    _ = try await origin.perform($0, $1)
                }
            }
            outbox.start()
        }

        func end() async throws {
            await outbox.core.shutDown()
            try await until("the deliveries have ended") { await self.outbox.core.runningCount == 0 }
            try await lists.close()
            try await rows.close()
        }

        /// Waits until every possible delivery is held by the origin, and all content is saved.
        func quiet() async throws {
            try await until("the outbox is quiet") {
                let (core, held) = (self.outbox.core, self.origin.heldNumbers.count)
                let (isWaiting, running) = await (core.machine.needsLease, core.runningCount)
                return await core.isDeliverer || !isWaiting ? held == running : false
            }
            try await lists.waitUntilSaved()
            try await rows.waitUntilSaved()
        }
    }

    init(_ setting: Setting, seed: UInt64) throws {
        self.setting = setting
        directory = try TemporaryDirectory()
        random = SplitMix(seed: seed)
        world = try World(setting, directory, time, likes, performed)
    }

    func run() async throws {
        await world.start(setting)
        for row in 0..<6 where !setting.listsOnly { _ = try await world.rows[row].requireData() }
        for _ in 0..<30 {
            try await step()
            try await world.quiet()
            try await check()
        }
        steps.append("let everything succeed")
        let origin = world.origin
        while !pending.isEmpty {
            try await until("a delivery has begun") {
                if !origin.heldNumbers.isEmpty { return true }
                time.advance(by: .seconds(300))
                return false
            }
            if let request = origin.heldNumbers.first { try await end(request, nil) }
            try await world.quiet()
        }
        try await check()
        for observer in observers { observer.cancel() }
        try await world.end()
    }

    struct Contradiction: Error, CustomStringConvertible {
        var text: String
        var description: String { text }
    }

    private func step() async throws {
        let key = random.below(6)
        switch random.below(16) {
        case 0..<5:
            lastNumber += 1
            steps.append("submit \(lastNumber) for \(key)")
            pending.append((try await world.outbox.submit(Like(row: key, number: lastNumber)), key, lastNumber))
        case 5..<9:
            guard let request = world.origin.heldNumbers.randomElement(using: &random) else { return }
            let failures: [ScriptedAnswer<Row>?] = [nil, nil, nil, .failure(Offline()), .failure(Refusal())]
            try await end(request, failures[random.below(5)])
        case 9:
            steps.append("load \(key)")
            _ = try await world.lists[key].requireData()
        case 10:
            steps.append("next page of \(key)")
            _ = await world.lists[key].requestNextData()
        case 11:
            steps.append("refresh \(key)")
            if random.below(2) == 0 { await world.lists[key].refresh() } else { await world.rows[key].refresh() }
        case 12:
            steps.append("clear \(key)")
            await world.lists[key].clear()
        case 13:
            steps.append("restart")
            for observer in observers { observer.cancel() }
            try await world.end()
            world = try World(setting, directory, time, likes, performed)
            await world.start(setting)
        case 14:
            steps.append("observe \(key)")
            observers.append(Task { [world] in for await _ in world.lists[key].publish() {} })
            await otherTasksRun(turns: 200)
        default:
            guard random.below(2) == 0, let item = pending.randomElement(using: &random) else { return try await wait() }
            let outcome = try await world.outbox.cancel(item.id)
            steps.append("cancel \(item.number): \(outcome)")
            if outcome == .canceled { pending.removeAll { $0.id == item.id } }
        }
    }

    /// Ends a delivery that the origin holds; `nil` lets it succeed.
    private func end(_ request: Int, _ failure: ScriptedAnswer<Row>?) async throws {
        let (number, origin) = (world.origin.requests[request - 1].param.command.number, world.origin)
        steps.append("\(number) ends: \(failure.map { "\($0)" } ?? "success")")
        guard origin.releaseOne(request, with: failure) else { return }
        if case .failure(is Offline)? = failure?.result {} else { pending.removeAll { $0.number == number } }
        try await until("the delivery has ended") { !origin.heldNumbers.contains(request) }
        await otherTasksRun(turns: 200)
    }

    /// Lets every delay end, and every held delivery pass its deadline.
    private func wait() async throws {
        steps.append("wait")
        let (held, origin) = (Set(world.origin.heldNumbers), world.origin)
        time.advance(by: .seconds(300))
        try await until("the deadlines have passed") { held.isDisjoint(with: origin.heldNumbers) }
    }

    private func check() async throws {
        var wrong: [String] = []
        do {
            try await until("each place shows what the origin and the pending commands say") {
                wrong = await self.wrongPlaces()
                return wrong.isEmpty
            }
        } catch {
            throw Contradiction(text: wrong.joined(separator: "; "))
        }
    }

    private func wrongPlaces() async -> [String] {
        var places: [(place: String, row: Row)] = []
        for key in 0..<6 {
            for row in await world.lists[key].getData(from: .cache) ?? [] { places.append(("list \(key)", row)) }
            if !setting.listsOnly, let row = await world.rows[key].getData(from: .cache) { places.append(("the row", row)) }
        }
        return places.compactMap { place, row in
            let expected = (likes.current[row.id] ?? 0) + pending.filter { $0.row == row.id }.count
            return row.likes == expected ? nil : "\(place) shows \(row), expected are \(expected)"
        }
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxElementHistoryTests {
    /// The number of histories of each setting; `STOREHOUSE_SEEDS=10000` for a long run, `STOREHOUSE_SEED=7` for a single one.
    @Test(arguments: Setting.all)
    fileprivate func `O7, O18: each place shows what the origin has performed and what is pending, through random histories`(
        _ setting: Setting
    ) async throws {
        for seed in seeds(20 as UInt64, quick: 2, sanitized: 1) { guard try await holds(setting, seed) else { break } }
    }

    /// The histories that have shown a change twice, or not at all: a row brings a change that waits for another one of the same row, before
    /// and after a restart; a list lacks such a change while another one has it.
    @Test(
        arguments: zip(
            [
                Setting(isLinked: true, listsOnly: true, hasLanes: true), Setting(isLinked: true, hasLanes: true),
                Setting(listsOnly: true, responds: true, hasLanes: true),
            ], [19 as UInt64, 118, 51]))
    fileprivate func `O7, O18: each place shows what the origin has performed and what is pending, through histories that once failed`(
        _ setting: Setting, seed: UInt64
    ) async throws {
        _ = try await holds(setting, seed)
    }

    private func holds(_ setting: Setting, _ seed: UInt64) async throws -> Bool {
        let history = try ElementHistory(setting, seed: seed)
        do {
            try await history.run()
            return true
        } catch {
            Issue.record("seed \(seed): \(error)\n\(history.steps.joined(separator: "\n"))")
            return false
        }
    }
}
