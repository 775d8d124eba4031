/// A live key: its machine, and the observers and callers that the machine only counts. Guarded by the engine's lock.
struct LiveKey {
    /// The number of published states. An observer that has seen this number has seen the current state.
    var version: UInt64 = 1
    /// The observers, each with the number of the last state that it has seen.
    var observers = WaiterList<UInt64>()
    var machine: KeyMachine<BoxedContent>

    let param: BoxedKey
    let place: Int

    /// The callers that wait for a result of the machine.
    var callers: [CallerID: SharedResult<CallerResult<BoxedContent>>] = [:]
    /// The callers that wait for the content; the machine counts them as one.
    var callerGroup: (id: CallerID, result: SharedResult<CallerResult<BoxedContent>>)?

    /// The edits with a refused save. Their callers apply them again, to the newer content of another user.
    private var refusedEdits: [CallerID] = []
    /// The fetch that follows a refused save of a change that the origin has made.
    var repairs: Ticket?

    /// The running fetches: of the content and of a page at each side, so at most three. Canceled fetches are removed.
    var fetches: [(ticket: Ticket, task: Task<Void, Never>, began: MonotonicInstant)] = []
    /// The start of the last fetch that a fetcher caused by changing this key, or its future start.
    var lastRestart: MonotonicInstant?
    /// The key's identity in the graph of waits; `nil` until its first fetch.
    private(set) var identity: FetchedKey?
    /// The lease under which the content of this revision was fetched, until it is saved.
    var lease: (lease: Lease, revision: Ticket)?
    /// Whether an entity has changed since an observer looked, so that the content is reconciled at the next look (E1).
    var isMarked = false
    var timer: (deadline: MonotonicInstant, id: CallerID, task: Task<Void, Never>)?

    init(param: BoxedKey, place: Int, rules: KeyRules<BoxedContent>) {
        self.param = param
        self.place = place
        machine = KeyMachine(rules: rules)
    }

    /// The result of looking for a state that an observer has not seen.
    enum LookResult: Sendable {
        case state(LoadingState<BoxedContent>)
        case nothingNew
        case gone
    }

    /// Returns the current state to an observer, unless the observer has seen it.
    mutating func look(_ id: CallerID) -> LookResult {
        guard let observer = observers[id] else { return .gone }
        guard version > observer.tag, let state = machine.state else { return .nothingNew }
        observers.setTag(version, of: id)
        return .state(state)
    }

    /// Suspends an observer until there is a state that it has not seen. Returns `false` if there is one, or if the observer has left.
    mutating func wait(_ id: CallerID, _ suspension: Suspension) -> Bool {
        guard let observer = observers[id] else { return false }
        if isMarked || (version > observer.tag && machine.isVisible) { return false }
        // Otherwise the first waiter would wait forever.
        if observer.suspension != nil { refuseSecondWaiter() }
        return observers.suspend(id, suspension)
    }

    /// Removes all observers; those that wait will look for a state and find that they have left.
    mutating func removeObservers(_ suspensions: inout Few<Suspension>) {
        for observer in observers.removeAll() { if let suspension = observer.suspension { suspensions.append(suspension) } }
    }

    /// Whether the engine may forget this key without a loss, apart from a failed save.
    // Mutating, so that the machine is read in place: a read through the cell would copy the whole machine.
    mutating func isIdle() -> Bool { machine.isIdle }

    /// Counts a new state, and takes out the suspensions of all waiting observers.
    ///
    /// After a refused save, the newer content of another user lacks a change that observers have seen. It is not published before the
    /// change is applied again, or before the origin's content has arrived: the change would disappear for a moment.
    mutating func publish(_ suspensions: inout Few<Suspension>) {
        guard refusedEdits.isEmpty, repairs == nil || repairs != machine.origin.flight?.ticket else { return }
        version += 1
        guard machine.desk.observers > 0, machine.isVisible else { return }
        observers.wake(&suspensions)
    }

    /// The save of an edit was refused, and its caller will apply it again.
    mutating func editRefused(_ id: CallerID) { refusedEdits.append(id) }

    /// Edits were applied again, or never will be. Returns whether one of them was the last to wait for.
    mutating func editsEnded(_ ids: [CallerID]) -> Bool {
        guard !refusedEdits.isEmpty else { return false }
        refusedEdits.removeAll { ids.contains($0) }
        return refusedEdits.isEmpty
    }

    /// Removes the callers that the machine knows by this number.
    mutating func takeCallers(_ id: CallerID) -> SharedResult<CallerResult<BoxedContent>>? {
        guard let callerGroup, callerGroup.id == id else {
            defer { if callers.isEmpty { callers = [:] } }
            return callers.removeValue(forKey: id)
        }
        self.callerGroup = nil
        return callerGroup.result
    }

    /// A caller arrives. Returns its result, or the shared result that it waits for.
    mutating func callerArrived(
        _ id: CallerID, needing need: CallerNeed, _ transition: inout KeyMachine<BoxedContent>.Transition
    ) -> Admission {
        if let result = machine.callerArrived(id, needing: need, &transition) { return .immediate(result) }
        let result = SharedResult<CallerResult<BoxedContent>>()
        callers[id] = result
        return .waiting(result)
    }

    /// A caller of a temporary key; `result` is `nil` if the caller has its result and only keeps the key live.
    typealias MovedCaller = (id: CallerID, need: CallerNeed, result: SharedResult<CallerResult<BoxedContent>>?)

    /// Ends the work for this key, because another one has replaced it, and removes the callers that the other key can serve.
    mutating func callersMoved(_ transition: inout KeyMachine<BoxedContent>.Transition) -> [MovedCaller] {
        machine.replaced(&transition).map { id, need in (id, need, takeCallers(id)) }
    }

    /// A caller of a temporary key arrives at this key, which has replaced it. No further caller joins a group of that key.
    mutating func callerMoved(_ caller: MovedCaller, _ transition: inout KeyMachine<BoxedContent>.Transition) {
        callers[caller.id] = caller.result
        guard let result = machine.callerArrived(caller.id, needing: caller.need, &transition) else { return }
        transition.actions.append(.resume(caller.id, result))
    }

    /// Returns the key's identity in the graph of waits, and creates it if needed.
    mutating func identified() -> FetchedKey {
        if let identity { return identity }
        let identity = FetchedKey(0)
        self.identity = identity
        return identity
    }

    mutating func takeFetch(_ ticket: Ticket) -> Task<Void, Never>? {
        guard let position = fetches.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return fetches.remove(at: position).task
    }
}
