internal import StoreCore
internal import Synchronization

/// The actions of the pages on fetches and exchanges: delays, failures, and the loss of the network. Each ends with its page.
final class Controls: Sendable {
    /// A key, or a whole subject, to fail once.
    struct Target: Hashable, Sendable {
        var subject: Int
        var row: Int?
    }

    private struct Page {
        var isOffline = false
        var delay = Duration.zero
        var failing: Set<Target> = []

        var isEmpty: Bool { !isOffline && delay == .zero && failing.isEmpty }
    }

    /// Whether the current task belongs to a fetch that has passed the controls, so that its exchanges are not delayed again.
    @TaskLocal static var hasPassed = false

    private let state = Lock<[String: Page]>([:])
    /// Whether any action is in force; read in each fetch, without the lock.
    private let isActive = Atomic(false)

    private func change(_ page: String, _ body: (inout Page) -> Void) {
        state.withLock { state in
            var changed = state.removeValue(forKey: page) ?? Page()
            body(&changed)
            if !changed.isEmpty { state[page] = changed }
            isActive.store(!state.isEmpty, ordering: .relaxed)
        }
    }

    func setOffline(_ isOffline: Bool, _ page: String) { change(page) { $0.isOffline = isOffline } }
    func setDelay(_ delay: Duration, _ page: String) { change(page) { $0.delay = min(max(.zero, delay), .seconds(60)) } }
    func fail(_ target: Target, _ page: String) { change(page) { if $0.failing.count < 1_000 { $0.failing.insert(target) } } }
    func undo(_ page: String) { change(page) { $0 = Page() } }

    func undoAll() {
        state.withLock { state in
            state = [:]
            isActive.store(false, ordering: .relaxed)
        }
    }

    /// Delays or fails a fetch, as the pages want it now.
    ///
    /// - Parameters:
    ///   - subject: The subject of the fetch.
    ///   - row: The number of the key; computed only while an action is in force.
    /// - Throws: ``InspectionFailure``; `CancellationError` if the task is canceled during a delay.
    func pass(_ subject: Int, row: @autoclosure () -> Int?) async throws {
        guard isActive.load(ordering: .relaxed) else { return }
        let began = ContinuousClock.now
        // In small steps, because the page may close meanwhile.
        while began.duration(to: .now) < longestDelay { try await Task.sleep(for: .milliseconds(20)) }
        let row = row()
        let failure = state.withLock { state -> InspectionFailure? in
            for page in state.keys {
                for target in [Target(subject: subject, row: row), Target(subject: subject)]
                where state[page]?.failing.remove(target) != nil {
                    if state[page]?.isEmpty == true { state[page] = nil }
                    isActive.store(!state.isEmpty, ordering: .relaxed)
                    return InspectionFailure(code: .failed)
                }
            }
            return state.values.contains(where: \.isOffline) ? InspectionFailure(code: .offline) : nil
        }
        if let failure { throw failure }
    }

    private var longestDelay: Duration { state.withLock { $0.values.map(\.delay).max() ?? .zero } }

    /// The actions in force.
    var summary: JSON {
        state.withLock { state in
            .object([
                ("offline", .bool(state.values.contains(where: \.isOffline))),
                ("delay", .milliseconds(state.values.map(\.delay).max())),
                ("failing", .int(state.values.reduce(0) { $0 + $1.failing.count })),
            ])
        }
    }
}
