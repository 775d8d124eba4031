/// A task with the task-local values of its creator, which waits for the fetch that it will run (C22).
///
/// Task-local values can only be inherited at the creation of a task. A fetch that begins after a read of the cache therefore gets the task
/// that was created when its first caller arrived. A starter that is released unused ends its task.
final class FetchStarter: Sendable {
    typealias Work = @concurrent @Sendable () async -> Void

    /// Passes the work from the starter to its task.
    private final class Desk: Sendable {
        enum State: Sendable {
            case open
            case awaited(Suspension)
            case decided(Work?)
        }

        private let state = Lock(State.open)

        /// Sets the work, unless it was set before; `nil` for none.
        func decide(_ work: Work?) {
            let waiter = state.withLock { state -> Suspension? in
                switch state {
                case .decided: return nil
                case .open:
                    state = .decided(work)
                    return nil
                case .awaited(let suspension):
                    state = .decided(work)
                    return suspension
                }
            }
            waiter?.resume()
        }

        /// Waits for the work and takes it. Ignores cancellation, because the work reports the end of its fetch even if it is canceled.
        func take() async -> Work? {
            await suspend { suspension in
                let isDecided = state.withLock { state in
                    if case .decided = state { return true }
                    state = .awaited(suspension)
                    return false
                }
                if isDecided { suspension.resume() }
            }
            return state.withLock { state in
                defer { state = .decided(nil) }
                if case .decided(let work) = state { return work }
                return nil
            }
        }
    }

    private let desk = Desk()
    private let task: Task<Void, Never>

    /// Creates a waiting task, with the priority and the task-local values of the current one.
    init() {
        task = Task { [desk] in await desk.take()?() }
    }

    deinit { desk.decide(nil) }

    /// Runs a fetch in the task.
    func run(_ work: @escaping Work) -> Task<Void, Never> {
        desk.decide(work)
        return task
    }
}

extension StoreEngine {
    /// Keeps the context of the caller or observer that requested a read of the cache, for a fetch that may follow.
    func keepContext(of param: BoxedKey, _ state: inout EngineState) {
        guard rules.inheritsContext, state.starters[param] == nil else { return }
        state.starters[param] = FetchStarter()
    }

    /// Returns the context of a fetch that begins in this transition; `nil` for a detached one.
    ///
    /// - Parameter isOwn: Whether the store begins the fetch itself.
    func takeContext(of param: BoxedKey, isOwn: Bool, _ state: inout EngineState) -> FetchStarter? {
        guard rules.inheritsContext else { return nil }
        return state.starters.removeValue(forKey: param) ?? (isOwn ? nil : FetchStarter())
    }
}
