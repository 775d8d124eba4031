/// A task with the task-local values of its creator, which waits for the fetch that it will run (C22).
///
/// Task-local values can only be inherited at the creation of a task. A fetch that begins after a read of the cache therefore gets the task
/// that was created when its first caller arrived. A starter that is released unused ends its task.
final class FetchStarter: Sendable {
    typealias Work = @concurrent @Sendable () async -> Void

    /// The fetch to run; `nil` if the starter was released unused.
    private let work = SharedResult<Work?>()
    private let task: Task<Void, Never>

    /// Creates a waiting task, with the priority and the task-local values of the current one.
    init() {
        // Ignores cancellation while it waits, because the work reports the end of its fetch even if it is canceled.
        task = Task { [work] in await work.value(onCancel: {})?() }
    }

    deinit { work.put(nil) }

    /// Runs a fetch in the task.
    func run(_ work: @escaping Work) -> Task<Void, Never> {
        self.work.put(work)
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
