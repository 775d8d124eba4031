internal import StoreCore
internal import Synchronization

/// Gives items to several workers, each item to one.
protocol ItemSource<Element>: Sendable {
    associatedtype Element: Sendable

    /// The next item; `nil` when there are no more.
    func next() async -> Element?

    /// Nobody gets another item.
    func stop()

    /// Whether nobody gets another item because something has failed that ends the pass.
    var isStopped: Bool { get }
}

/// Does something with many items, a few at a time: so many workers take one item after another.
///
/// Not one child task for each item: a group of ten thousand is quadratic in the runtime.
struct ItemWorkers: Sendable {
    let options: SyncOptions
    let time: any TimeSource
    let board: ProgressBoard

    /// A larger group would cost more than it brings, and each item under way may hold an open file.
    static let mostAtATime = 1_024

    /// How many items are done at a time.
    static func count(_ wanted: Int) -> Int {
        wanted > 0 ? min(wanted, mostAtATime) : min(16, max(4, 2 * availableProcessors))
    }

    /// Does something with every item; failures are written on the board.
    ///
    /// Returns when all workers have: at the end of the items, after a failure that stops the pass, or when the task is cancelled.
    ///
    /// - Parameters:
    ///   - items: The items, in the order in which they are begun.
    ///   - stage: The stage that failures are written down with.
    ///   - key: What names an item.
    ///   - bytes: How many bytes an item counts as when it is done.
    ///   - action: What is done; tried again where that may help.
    ///   - done: Writes down that it is done.
    func run<Element: Sendable>(
        _ items: [Element], stage: SyncStage, key: @escaping @Sendable (Element) -> some Hashable & Sendable,
        bytes: @escaping @Sendable (Element) -> Int64 = { _ in 0 },
        action: @escaping @Sendable (Element) async throws -> Void,
        done: @escaping @Sendable (Element, inout SyncReport) -> Void
    ) async {
        let cursor = Cursor(items)
        let count = Self.count(options.concurrency)
        let slots = WorkerSlots(count)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<min(count + WorkerSlots.standbyCount, items.count) {
                group.addTask { await work(cursor, slots, stage: stage, key: key, bytes: bytes, action: action, done: done) }
            }
            // One worker may have met what stops the pass while the others are in the middle of long items.
            for await _ in group where cursor.isStopped { group.cancelAll() }
        }
    }

    /// One worker: takes one item after another until there are none.
    ///
    /// - Parameters:
    ///   - items: Gives the items.
    ///   - slots: Without one of them no item is begun.
    ///   - stage: The stage that failures are written down with.
    ///   - key: What names an item.
    ///   - bytes: How many bytes an item counts as when it is done.
    ///   - isAhead: Whether the stage has not begun yet, so that its progress is not to be moved.
    ///   - action: What is done; tried again where that may help.
    ///   - done: Writes down that it is done.
    func work<Element>(
        _ items: some ItemSource<Element>, _ slots: WorkerSlots, stage: SyncStage, key: (Element) -> some Hashable & Sendable,
        bytes: (Element) -> Int64 = { _ in 0 }, isAhead: Bool = false, action: (Element) async throws -> Void,
        done: (Element, inout SyncReport) -> Void
    ) async {
        let retries = Retries(policy: options.retry, time: time)
        let meter = ItemMeter(board: isAhead ? nil : board, slots: slots)
        // Where one worker finds nothing more to do, there is nothing more for those either who stand by.
        defer { slots.end() }
        await ItemMeter.$current.withValue(meter) {
            while await meter.takeSlot(), let item = await items.next(), !Task.isCancelled {
                do throws(Retries.Failure) {
                    try await retries {
                        // For another attempt; where all the others have ended there is none to take, and none is needed.
                        _ = await meter.takeSlot()
                        try await action(item)
                    } beforeRetry: {
                        meter.takeBack()
                    }
                    let counted = meter.take()
                    board.advance(items: isAhead ? 0 : 1, bytes: isAhead ? 0 : max(0, bytes(item)) - counted) { done(item, &$0) }
                } catch {
                    meter.takeBack()
                    // What a cancelled pass did not do has not failed: it is pending.
                    if Task.isCancelled, error.kind == .cancelled || error.kind == .transient { return }
                    let stops = options.stopsOnError || error.kind == .fatal
                    board.failed(
                        SyncFailure(stage: stage, key: SyncKey(key(item)), error: error.error, attempts: error.attempts), stops: stops)
                    if stops { return items.stop() }
                }
            }
        }
    }
}

/// Which item of an array comes next, for several workers.
private final class Cursor<Element: Sendable>: ItemSource {
    private let position = Atomic<Int>(0)
    private let items: [Element]

    init(_ items: [Element]) {
        self.items = items
    }

    func next() -> Element? {
        let index = position.wrappingAdd(1, ordering: .relaxed).oldValue
        return index >= 0 && index < items.count ? items[index] : nil
    }

    func stop() {
        position.store(Self.stopped, ordering: .relaxed)
    }

    var isStopped: Bool { position.load(ordering: .relaxed) < 0 }

    /// So far below zero that no number of workers can count it up.
    private static var stopped: Int { Int.min / 2 }
}
