internal import StoreCore
internal import Synchronization

/// Does something with many items, a few at a time: so many workers take one item after another.
///
/// Not one child task for each item: a group of ten thousand is quadratic in the runtime.
struct ItemWorkers: Sendable {
    let options: SyncOptions
    let time: any TimeSource
    let board: ProgressBoard

    /// How many workers there are.
    static func count(_ wanted: Int) -> Int {
        wanted > 0 ? wanted : min(16, max(4, 2 * availableProcessors))
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
        let cursor = Cursor(end: items.count)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<min(Self.count(options.concurrency), items.count) {
                group.addTask {
                    let meter = ItemMeter(board: board)
                    await ItemMeter.$current.withValue(meter) {
                        while let index = cursor.next(), !Task.isCancelled {
                            let item = items[index]
                            if let failure = await attempt({ try await action(item) }, meter: meter) {
                                board.advance(items: 0, bytes: -meter.take())
                                // What a cancelled pass did not do has not failed: it is pending.
                                if failure.kind == .cancelled, Task.isCancelled { return }
                                let stops = options.stopsOnError || failure.kind == .fatal
                                board.failed(
                                    SyncFailure(stage: stage, key: SyncKey(key(item)), error: failure.error, attempts: failure.attempts),
                                    stops: stops)
                                if stops { return cursor.stop() }
                            } else {
                                let counted = meter.take()
                                board.advance(items: 1, bytes: max(0, bytes(item)) - counted) { done(item, &$0) }
                            }
                        }
                    }
                }
            }
            // One worker may have met what stops the pass while the others are in the middle of long items.
            for await _ in group where cursor.isStopped { group.cancelAll() }
        }
    }

    private struct Failure {
        var error: any Error
        var kind: FailureKind
        var attempts: Int
    }

    /// Tries once, and again where the error is one that may pass.
    private func attempt(_ action: () async throws -> Void, meter: ItemMeter) async -> Failure? {
        var attempt = 1
        while true {
            do {
                try await action()
                return nil
            } catch {
                let failure = Failure(error: error, kind: FailureKind(judging: error), attempts: attempt)
                guard !Task.isCancelled, let delay = options.retry.delay(afterJudging: error, attempt: attempt) else { return failure }
                board.advance(items: 0, bytes: -meter.take())
                attempt += 1
                do {
                    try await time.sleep(until: time.now.advanced(by: delay))
                } catch {
                    return Failure(error: error, kind: .cancelled, attempts: attempt - 1)
                }
            }
        }
    }
}

/// Which item comes next, for several workers.
private final class Cursor: Sendable {
    private let position = Atomic<Int>(0)
    private let end: Int

    init(end: Int) {
        self.end = end
    }

    func next() -> Int? {
        let index = position.wrappingAdd(1, ordering: .relaxed).oldValue
        return index >= 0 && index < end ? index : nil
    }

    /// Nobody gets another item.
    func stop() {
        position.store(Self.stopped, ordering: .relaxed)
    }

    var isStopped: Bool { position.load(ordering: .relaxed) < 0 }

    /// So far below zero that no number of workers can count it up.
    private static let stopped = Int.min / 2
}

extension RetryPolicy {
    /// How long to wait before the next attempt, where the error is one that may pass.
    func delay(afterJudging error: any Error, attempt: Int) -> Duration? {
        let kind = FailureKind(judging: error)
        guard kind == .transient else { return nil }
        return delay(after: error, attempt: attempt, unit: Double.random(in: 0..<1))
    }
}
