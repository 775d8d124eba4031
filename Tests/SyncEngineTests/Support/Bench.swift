import StoreCore
@testable import SyncEngine

/// An item of the tests: a number, a version, a size.
struct Thing: SyncItem, Hashable {
    var key: Int
    var version: Int
    var byteCount: Int64?

    init(_ key: Int, _ version: Int = 1, bytes: Int64? = nil) {
        self.key = key
        self.version = version
        byteCount = bytes
    }
}

/// An error of the tests with a given kind.
struct Trouble: Error, FailureAdvising, Hashable {
    var failureKind: FailureKind
    var retryAfter: Duration?
    var attempts = 1

    static let passing = Trouble(failureKind: .transient)
    static let lasting = Trouble(failureKind: .permanent)
    static let deadly = Trouble(failureKind: .fatal)
}

/// A source, a target in memory, and a record of every call; each call can be held or made to fail.
final class Bench: SyncProcessor {
    enum Call: Hashable, Sendable {
        case begin, list, inventory, prepare, preview(Int), content(Int), remove(Set<Int>), end
    }

    struct State: Sendable {
        var source: [Thing] = []
        var local: [Int: Int] = [:]
        var edited: Set<Int> = []
        /// Keys with failing removals; a call removes its smaller keys first.
        var stuck: Set<Int> = []
        /// Items that the inventory skips.
        var skipped: [SyncRefusal<Int>] = []
        /// Downloads that are held back and not installed, unless shared content is allowed.
        var heldBack: [SyncRefusal<Int>] = []
        var calls: [Call] = []
        var running = 0
        var mostRunning = 0
        var begun = 0
        var ended = 0
        /// The number of ends that ran in a canceled task.
        var endsCancelled = 0
        /// Calls that are suspended until they are removed from this set.
        var held: Set<Call> = []
        var waiting: Set<Call> = []
        var reports: [SyncReport] = []
    }

    let state = WatchedState(State())
    let order: SourceOrder
    /// Makes the pages of the list; by default one complete page.
    let list: @Sendable (State) -> [SourcePage<Thing>]
    /// Called in each call; may throw.
    let act: @Sendable (Call) async throws -> Void
    let checks: @Sendable (Int, LocalEntry<Thing>?) throws -> Bool
    /// Called with the number of each page before it is returned, and before the end of the pages.
    let onPage: @Sendable (Int) async throws -> Void
    let refuses: Set<Int>
    /// Whether an item of the list must be downloaded if its version differs; may throw.
    let needs: @Sendable (Int) throws -> Bool
    /// Chooses the downloads of a plan.
    let prepares: @Sendable (SyncPlan<Thing>) -> [SyncPlan<Thing>.Download]

    init(
        source: [Thing] = [], local: [Int: Int] = [:], order: SourceOrder = .unsorted, refuses: Set<Int> = [],
        needs: @escaping @Sendable (Int) throws -> Bool = { _ in true },
        list: @escaping @Sendable (State) -> [SourcePage<Thing>] = { [SourcePage($0.source, end: .complete())] },
        checks: @escaping @Sendable (Int, LocalEntry<Thing>?) throws -> Bool = { _, _ in true },
        onPage: @escaping @Sendable (Int) async throws -> Void = { _ in },
        prepares: @escaping @Sendable (SyncPlan<Thing>) -> [SyncPlan<Thing>.Download] = { $0.downloads },
        act: @escaping @Sendable (Call) async throws -> Void = { _ in }
    ) {
        self.order = order
        self.refuses = refuses
        self.needs = needs
        self.list = list
        self.checks = checks
        self.onPage = onPage
        self.prepares = prepares
        self.act = act
        state.update { state in
            state.source = source
            state.local = local
        }
    }

    var calls: [Call] { state.read { $0.calls } }
    var local: [Int: Int] { state.read { $0.local } }

    private func note(_ call: Call) async throws {
        state.update { state in
            state.calls.append(call)
            state.running += 1
            state.mostRunning = max(state.mostRunning, state.running)
            if state.held.contains(call) { state.waiting.insert(call) }
        }
        defer {
            state.update { state in
                state.running -= 1
                state.waiting.remove(call)
            }
        }
        try await state.wait { $0.held.contains(call) ? nil : () }
        try await act(call)
    }

    func hold(_ call: Call) { state.update { _ = $0.held.insert(call) } }
    func release(_ call: Call) { state.update { _ = $0.held.remove(call) } }
    func waiting(_ call: Call) async throws { try await state.wait { $0.waiting.contains(call) ? () : nil } }

    func syncWillBegin() async throws {
        state.update { $0.begun += 1 }
        try await note(.begin)
    }

    func syncDidEnd(_ report: SyncReport) async {
        let isCancelled = Task.isCancelled
        state.update { state in
            state.ended += 1
            state.reports.append(report)
            if isCancelled { state.endsCancelled += 1 }
        }
        // An end cannot throw, so the error is discarded.
        try? await note(.end)
    }

    func sourceList() async throws -> Pages {
        try await note(.list)
        return Pages(pages: state.read { list($0) }, order: order, onPage: onPage)
    }

    func localInventory() async throws -> LocalInventory<Thing> {
        try await note(.inventory)
        let state = state.current
        let entries = state.local.map { LocalEntry<Thing>($0.key, version: $0.value, isEdited: state.edited.contains($0.key)) }
        var inventory = LocalInventory(order == .unsorted ? entries : entries.sorted { $0.key < $1.key }, order: order)
        inventory.skipped = state.skipped
        return inventory
    }

    func shouldUpdate(_ item: Thing, over local: LocalEntry<Thing>) async throws -> Bool { try needs(item.key) }

    func refusals(among items: [Thing]) async throws -> [SyncRefusal<Int>] {
        items.filter { refuses.contains($0.key) }.map { SyncRefusal($0.key, because: Trouble.lasting) }
    }

    func prepareDownload(_ plan: SyncPlan<Thing>) async throws -> [SyncPlan<Thing>.Download] {
        if !plan.isDryRun { try await note(.prepare) }
        return prepares(plan)
    }

    func isUnchanged(_ key: Int, since entry: LocalEntry<Thing>?) async throws -> Bool { try checks(key, entry) }

    func downloadPreview(of thing: Thing) async throws { try await note(.preview(thing.key)) }

    func downloadContent(of thing: Thing) async throws {
        try await note(.content(thing.key))
        state.update { state in
            state.local[thing.key] = thing.version
            state.edited.remove(thing.key)
        }
    }

    func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Int>] {
        overrides.contains(.sharedContent) ? [] : state.read { $0.heldBack }
    }

    func remove(_ keys: Set<Int>) async throws {
        try await note(.remove(keys))
        let isStuck = state.update { state in
            for key in keys.sorted() {
                if state.stuck.contains(key) { return true }
                state.local[key] = nil
                state.edited.remove(key)
            }
            return false
        }
        if isStuck { throw Trouble.lasting }
    }

    struct Pages: SourceList {
        var pages: [SourcePage<Thing>]
        var order: SourceOrder
        var onPage: @Sendable (Int) async throws -> Void = { _ in }
        func makeReader() -> Reader { Reader(pages: pages, onPage: onPage) }
        struct Reader: SourceReader {
            var pages: [SourcePage<Thing>]
            var onPage: @Sendable (Int) async throws -> Void = { _ in }
            var number = 0
            mutating func next() async throws -> SourcePage<Thing>? {
                try await onPage(number)
                number += 1
                return pages.isEmpty ? nil : pages.removeFirst()
            }
        }
    }
}

/// A processor that passes the calls of a pass on to another one, two of them after a closure.
struct Interposed<Base: SyncProcessor>: SyncProcessor {
    typealias Item = Base.Item

    let base: Base
    var beforePreparation: @Sendable () throws -> Void = {}
    var beforeRemoval: @Sendable (Set<Item.Key>) throws -> Void = { _ in }
    /// The downloads that are not left out; `nil` for all.
    var chosen: Set<Item.Key>?

    func syncWillBegin() async throws { try await base.syncWillBegin() }
    func syncWillEnd() async throws { try await base.syncWillEnd() }
    func syncDidEnd(_ report: SyncReport) async { await base.syncDidEnd(report) }
    func sourceList() async throws -> Base.Source { try await base.sourceList() }
    func localInventory() async throws -> LocalInventory<Item> { try await base.localInventory() }
    func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool { try await base.shouldUpdate(item, over: local) }
    func refusals(among items: [Item]) async throws -> [SyncRefusal<Item.Key>] { try await base.refusals(among: items) }
    func moves(in plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Move] { try await base.moves(in: plan) }
    func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] {
        try beforePreparation()
        return try await base.prepareDownload(plan).filter { chosen?.contains($0.item.key) ?? true }
    }
    func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool { try await base.isUnchanged(key, since: entry) }
    func holdContent(of move: SyncPlan<Item>.Move) async throws -> Bool { try await base.holdContent(of: move) }
    func move(_ move: SyncPlan<Item>.Move) async throws { try await base.move(move) }
    func downloadContent(of item: Item) async throws { try await base.downloadContent(of: item) }
    func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Item.Key>] {
        try await base.installDownloads(overriding: overrides)
    }
    func remove(_ keys: Set<Item.Key>) async throws {
        try beforeRemoval(keys)
        try await base.remove(keys)
    }
}

extension OneWaySynchronizer<Bench> {
    /// Begins a pass, and returns its caller when the pass is suspended in a call.
    func begin(heldIn call: Bench.Call) async throws -> Task<SyncReport, any Error> {
        processor.hold(call)
        let caller = Task { try await sync() }
        try await processor.waiting(call)
        return caller
    }
}

/// Items in memory, as the local side of any list.
struct LocalItems<Source: SourceList>: SyncProcessor {
    typealias Item = Source.Item

    let list: Source
    let versions: WatchedState<[Item.Key: Item.Version]>

    init(_ list: Source, versions: [Item.Key: Item.Version] = [:]) {
        self.list = list
        self.versions = WatchedState(versions)
    }

    func sourceList() async throws -> Source { list }
    func localInventory() async throws -> LocalInventory<Item> {
        LocalInventory(versions.current.map { LocalEntry($0.key, version: $0.value) }.sorted { $0.key < $1.key }, order: list.order)
    }
    func downloadContent(of item: Item) async throws { versions.update { $0[item.key] = item.version } }
    func remove(_ keys: Set<Item.Key>) async throws { versions.update { versions in for key in keys { versions[key] = nil } } }
}

/// A gate that ignores cancellation, like a call that does not check for it.
final class DeafGate: Sendable {
    private let isOpen = WatchedState(false)
    private let arrived = WatchedState(0)

    func pass() async {
        arrived.update { $0 += 1 }
        // The waiting task is never canceled, so this never throws.
        await Task { [isOpen] in try? await isOpen.wait { $0 ? () : nil } }.value
    }

    func arrivals(_ count: Int) async throws { try await arrived.wait { $0 >= count ? () : nil } }
    func open() { isOpen.update { $0 = true } }
}

/// Returns the `SyncError` that a call throws.
func syncError(_ body: () async throws -> some Any) async -> SyncError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? SyncError
    }
}

/// Returns the codes of the failures in the report of an error; `nil` for each failure of another type.
func codes(_ error: SyncError?) -> [SyncError.Code?] { error?.report?.failures.map { ($0.error as? SyncError)?.code } ?? [] }
