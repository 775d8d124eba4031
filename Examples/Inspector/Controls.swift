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

    /// A fetch or an exchange that the current task performs, and that these controls have let pass.
    private struct Passage: Sendable {
        var controls: ObjectIdentifier
        var span: Int
    }

    private struct State {
        var pages: [String: Page] = [:]
        /// Rises with each change, so that a page knows which news are older than its own action.
        var revision = 0
    }

    @TaskLocal private static var passages: [Passage] = []

    private let state = Lock(State())
    /// Whether any action is in force; read in each fetch, without the lock.
    private let isActive = Atomic(false)

    private func change(_ page: String, _ body: (inout Page) -> Void) {
        state.withLock { state in
            var changed = state.pages.removeValue(forKey: page) ?? Page()
            body(&changed)
            if !changed.isEmpty { state.pages[page] = changed }
            state.revision += 1
            isActive.store(!state.pages.isEmpty, ordering: .relaxed)
        }
    }

    func setOffline(_ isOffline: Bool, _ page: String) { change(page) { $0.isOffline = isOffline } }
    func setDelay(_ delay: Duration, _ page: String) { change(page) { $0.delay = min(max(.zero, delay), .seconds(60)) } }
    func fail(_ target: Target, _ page: String) { change(page) { if $0.failing.count < 1_000 { $0.failing.insert(target) } } }
    func undo(_ page: String) { change(page) { $0 = Page() } }

    func undoAll() {
        state.withLock { state in
            state.pages = [:]
            state.revision += 1
            isActive.store(false, ordering: .relaxed)
        }
    }

    /// The span of the fetch or exchange that the current task performs; `nil` if it performs none.
    var passed: Int? { Self.passages.last { $0.controls == ObjectIdentifier(self) }?.span }

    /// Performs a fetch or an exchange that has passed.
    func passing<Value>(_ span: Int, _ operation: () async throws -> Value) async rethrows -> Value {
        let passage = Passage(controls: ObjectIdentifier(self), span: span)
        return try await Self.$passages.withValue(Self.passages + [passage], operation: operation)
    }

    /// Delays or fails a fetch, as the pages want it now.
    ///
    /// - Parameters:
    ///   - subject: The subject of the fetch.
    ///   - row: The number of the key; computed only while an action is in force.
    ///   - passed: The fetch of an exchange. It has met delays and the loss of the network already.
    /// - Throws: ``InspectionFailure``; `CancellationError` if the task is canceled during a delay.
    func pass(_ subject: Int, row: @autoclosure () -> Int?, during passed: Int? = nil) async throws {
        guard isActive.load(ordering: .relaxed) else { return }
        let began = ContinuousClock.now
        // In small steps, because the page may close meanwhile.
        while passed == nil, began.duration(to: .now) < longestDelay { try await Task.sleep(for: .milliseconds(20)) }
        let row = row()
        let failure = state.withLock { state -> InspectionFailure? in
            for page in state.pages.keys {
                for target in [Target(subject: subject, row: row), Target(subject: subject)]
                where state.pages[page]?.failing.remove(target) != nil {
                    if state.pages[page]?.isEmpty == true { state.pages[page] = nil }
                    state.revision += 1
                    isActive.store(!state.pages.isEmpty, ordering: .relaxed)
                    return InspectionFailure(code: .failed)
                }
            }
            return passed == nil && state.pages.values.contains(where: \.isOffline) ? InspectionFailure(code: .offline) : nil
        }
        if let failure { throw failure }
    }

    private var longestDelay: Duration { state.withLock { $0.pages.values.map(\.delay).max() ?? .zero } }

    var revision: Int { state.withLock(\.revision) }

    func summary(for page: String) -> JSON {
        state.withLock { state -> JSON in
            let own = state.pages[page] ?? Page()
            return .object([
                ("revision", .int(state.revision)), ("offline", .bool(state.pages.values.contains(where: \.isOffline))),
                ("delay", .milliseconds(state.pages.values.map(\.delay).max())),
                ("failing", .int(state.pages.values.reduce(0) { $0 + $1.failing.count })),
                ("own", .object([("offline", .bool(own.isOffline)), ("delay", .milliseconds(own.delay))])),
            ])
        }
    }
}
