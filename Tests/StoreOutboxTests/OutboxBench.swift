import Foundation
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Creates a note under a temporary identifier.
struct CreateNote: Command, Hashable {
    static let name = "create"
    var id: String
    var text: String
}

/// Appends to a note.
struct AppendText: Command, Hashable {
    static let name = "append"
    var note: String
    var text: String

    func replacing(_ identifiers: IdentifierReplacement) -> AppendText { AppendText(note: identifiers[note], text: text) }
}

/// Adds a number: a change that would be visible if it were applied twice.
struct Add: Command, Hashable {
    static let name = "add"
    var key: Int
    var amount: Int
}

/// Sets a number; only the last one of a series matters.
struct Draft: Command, Hashable {
    static let name = "draft"
    var key: Int
    var value: Int

    func supersedes(_ earlier: Draft) -> Bool { true }
}

extension OutboxLane: ExpressibleByStringLiteral {
    /// A lane that the app has named.
    public init(stringLiteral name: String) { self.init(name: name) }

    /// The lane of a key of a store without a name.
    static func ofKey(_ key: Int) -> OutboxLane { OutboxLane(name: "", key: "\(key)") }
}

extension OutboxPolicy {
    /// The default policy with a change.
    init(_ change: (inout OutboxPolicy) -> Void) {
        self.init()
        change(&self)
    }
}

/// The date of the entries that tests write themselves.
let entryDate = Date(timeIntervalSince1970: 1_000_000_000)

extension OutboxEntry.Submission {
    /// A submission of which a test states only what it needs.
    init(
        _ name: String = "c", version: Int = 1, subject: OutboxLane = .none, references: [String] = [], creates: String? = nil,
        payload: Data = Data()
    ) {
        self.init(
            name: name, version: version, subject: subject, references: references, creates: creates, supersedes: nil, delivery: UUID(),
            date: entryDate, payload: payload)
    }

    /// A submission of an addition.
    init(_ command: Add) throws { self.init("add", subject: .ofKey(command.key), payload: try JSONEncoder().encode(command)) }
}

extension OutboxMachine {
    /// Applies an entry that a test writes itself.
    mutating func apply(_ id: UUID, _ fact: OutboxEntry.Fact, in lane: OutboxLane = "a") {
        apply(OutboxEntry(id: id, lane: lane, fact: fact), date: entryDate)
    }
}

/// A refusal of the origin.
struct Refusal: Error, FailureAdvising, Hashable {
    var failureKind = FailureKind.permanent
    var retryAfter: Duration?
    var attempts = 1
}

/// An outbox with a store of numbers in one directory, and an origin that the test controls. Several benches of one directory are several
/// launches of a program, or several processes.
final class OutboxBench: Sendable {
    let directory: TemporaryDirectory
    let time: ManualTime
    let origin: ScriptedDeliveries<Add, Void>
    let fetcher: ScriptedFetcher<Int, Int>
    let store: Store<Int, Int>
    let outbox: Outbox
    let events = OutboxEvents()

    init(
        in directory: TemporaryDirectory? = nil, time: ManualTime = ManualTime(), policy: OutboxPolicy = .default,
        origin: ScriptedDeliveries<Add, Void> = ScriptedDeliveries { _ in .success(()) },
        fetcher: ScriptedFetcher<Int, Int> = ScriptedFetcher { _ in .success(0) }, scope: CacheScope? = nil
    ) throws {
        let directory = try directory ?? TemporaryDirectory()
        self.directory = directory
        self.time = time
        self.origin = origin
        self.fetcher = fetcher
        store = Store(
            cacher: TieredCacher(over: FileCacher(directory: directory.file("numbers"))), fetcher: fetcher, time: time, scope: scope)
        outbox = try Outbox(directory: directory.file("outbox"), policy: policy, time: time, scope: scope, onEvent: events.append)
    }

    /// Registers the addition.
    func register() async {
        await outbox.register(
            Add.self, patching: store, at: \.key, patch: { command, number in number += command.amount },
            perform: { [origin] command, delivery in try await origin.perform(command, delivery) })
    }

    /// Sets the first contents, which the origin does not know.
    func fill(_ content: Int = 0) async { for key in 1...4 { await store[key].update(content) } }

    /// Registers the addition.
    func registered() async -> OutboxBench {
        await register()
        return self
    }

    /// Registers the addition, and starts the outbox.
    func started() async -> OutboxBench {
        await register()
        outbox.start()
        return self
    }

    /// Sets the first contents, and registers the addition.
    func prepared(_ content: Int = 0) async -> OutboxBench {
        await fill(content)
        return await registered()
    }

    /// Sets the first contents, registers the addition, and starts the outbox.
    func launched(_ content: Int = 0) async -> OutboxBench {
        await fill(content)
        return await started()
    }

    /// Starts the outbox with an origin that holds its deliveries, and submits additions to key 1. Returns the first one when it is being
    /// delivered.
    @discardableResult
    func deliverHeld(_ amounts: Int...) async throws -> UUID {
        origin.hold()
        outbox.start()
        var ids: [UUID] = []
        for amount in amounts { ids.append(try await outbox.submit(Add(key: 1, amount: amount))) }
        try await origin.started(count: 1, timeout: .seconds(600))
        return ids[0]
    }

    /// Lets the deadline of a held delivery pass.
    func passDeadline() async throws {
        try await until { time.sleeperCount > 0 }
        time.advance(by: OutboxPolicy.default.attemptTimeout)
        try await events.first("attempt is overdue")
    }

    /// The content of a key, without a fetch of valid content.
    func value(_ key: Int = 1) async throws -> Int { try await store[key].requireData() }

    /// The current state of the outbox.
    var state: OutboxState { get async { await outbox.core.state(of: nil) } }

    /// Waits until no command is left, and every change is saved.
    func settled() async throws {
        try await until("the outbox is empty") { await self.outbox.core.isEmpty }
        try await store.waitUntilSaved()
    }

    /// The value in the file of a key.
    func saved(_ key: Int = 1) async throws -> CacheRecord<Int>? {
        try await FileCacher<Int, Int>(directory: directory.file("numbers")).load(param: key)
    }
}

/// Delivers an addition of five to a content of ten, and returns while the sum is being saved.
func deliverUnsaved() async throws -> (TemporaryDirectory, GatedCacher<Int, Int>, Store<Int, Int>, Outbox) {
    let cacher = GatedCacher<Int, Int>()
    let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int> { _ in .success(0) }, time: ManualTime())
    await store[1].update(10)
    try await store.waitUntilSaved()
    let (directory, events) = (try TemporaryDirectory(), OutboxEvents())
    let outbox = try Outbox(directory: directory.file("outbox"), time: ManualTime(), onEvent: events.append)
    await outbox.register(Add.self, patching: store, at: \.key, patch: { $1 += $0.amount }, perform: { _, _ in })
    cacher.hold(.save)
    outbox.start()
    try await outbox.submit(Add(key: 1, amount: 5))
    try await events.first("delivered")
    try await cacher.began(.save, count: 2)
    return (directory, cacher, store, outbox)
}

/// Records the events of an outbox.
final class OutboxEvents: Sendable {
    private let events = WatchedState<[OutboxEvent]>([])

    var all: [OutboxEvent] { events.current }
    var texts: [String] { events.current.map { "\($0.kind)" } }

    func append(_ event: OutboxEvent) { events.update { $0.append(event) } }

    func count(_ text: String) -> Int { texts.count { $0.hasPrefix(text) } }

    /// The error of an event that did not come.
    struct Missing: Error, CustomStringConvertible { var description: String }

    /// Waits for an event whose description begins with this text.
    func first(_ text: String, count: Int = 1) async throws {
        do {
            try await events.wait(timeout: isLongRun ? .seconds(3_600) : hangLimit) { events in
                events.count { "\($0.kind)".hasPrefix(text) } >= count ? () : nil
            }
        } catch is WaitTimedOut {
            throw Missing(description: "\(count) events \(text) did not come; there were \(texts)")
        }
    }
}
