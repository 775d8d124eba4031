#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import Synchronization

/// A fixed number of workers that process many items, each taking one item after another.
///
/// A child task per item would be slower: the runtime needs quadratic time for a group of ten thousand tasks.
struct ItemWorkers: Sendable {
    let options: SyncOptions
    let time: any TimeSource
    let board: ProgressBoard

    /// The largest number of concurrent items: more would not be faster, and each may hold an open file.
    static let mostAtATime = 1_024

    /// The number of items that may wait for the disk in addition to those being transferred; each holds an open file.
    ///
    /// A worker gives up its slot while its item only waits for the disk, and a standby worker transfers another item.
    static let standbyCount = 64

    static func count(_ wanted: Int) -> Int {
        wanted > 0 ? min(wanted, mostAtATime) : min(16, max(4, 2 * ProcessInfo.processInfo.activeProcessorCount))
    }

    /// Processes every item, with retries after transient failures; failures go to the board.
    ///
    /// Returns after all workers have ended: at the end of the items, after a failure that stops the pass, or when the task is canceled. A
    /// finished item counts as `bytes`, or as the bytes received if its size is unknown, and `done` records it.
    func run<Element: Sendable>(
        _ items: [Element], stage: SyncStage, key: @escaping @Sendable (Element) -> some Hashable & Sendable,
        bytes: @escaping @Sendable (Element) -> Int64? = { _ in nil },
        action: @escaping @Sendable (Element) async throws -> Void,
        done: @escaping @Sendable (Element, inout SyncReport) -> Void
    ) async {
        let cursor = Cursor(items), retries = Retries(policy: options.retry, time: time)
        let count = Self.count(options.concurrency)
        let slots = Permits(count)
        // Processes one item after another until there are no more; an item begins only with one of the slots.
        @Sendable func work() async {
            let meter = ItemMeter(board: board, slots: slots)
            // If one worker finds no more items, the standby workers have nothing to do either.
            defer { slots.end() }
            await ItemMeter.$current.withValue(meter) {
                while await meter.takeSlot(), let item = cursor.next(), !Task.isCancelled {
                    do throws(Retries.Failure) {
                        try await retries {
                            // A retry needs a slot again. After the other workers have ended, none is available, and none is needed.
                            _ = await meter.takeSlot()
                            try await action(item)
                        } beforeRetry: {
                            meter.takeBack()
                        }
                        let counted = meter.take()
                        board.advance(items: 1, bytes: bytes(item).map { max(0, $0) - counted } ?? 0) { done(item, &$0) }
                    } catch {
                        meter.takeBack()
                        // Items that a canceled pass did not finish are pending, not failed.
                        if Task.isCancelled, error.kind == .cancelled || error.kind == .transient { return }
                        let failure = SyncFailure(stage: stage, key: SyncKey(key(item)), error: error.error, attempts: error.attempts)
                        if board.failed(failure, options) { return cursor.stop() }
                    }
                }
            }
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<min(count + Self.standbyCount, items.count) { group.addTask { await work() } }
            // A failure that stops the pass cancels the other workers, which may be in the middle of long items.
            for await _ in group where cursor.isStopped { group.cancelAll() }
        }
    }
}

/// The position of the next item of an array, shared by several workers.
private final class Cursor<Element: Sendable>: Sendable {
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

    /// Whether a failure that ends the pass has stopped the supply.
    var isStopped: Bool { position.load(ordering: .relaxed) < 0 }

    /// So far below zero that workers cannot increment it to zero.
    private static var stopped: Int { Int.min / 2 }
}
