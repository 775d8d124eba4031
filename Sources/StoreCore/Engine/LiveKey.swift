/// A key about which something goes on: its machine, and those whom the machine only counts. Lives under the engine's lock.
struct LiveKey {
    /// The number of the current state.
    var version: UInt64 = 1
    /// The observers, each with the number of the last state that it has received.
    var observers = WaiterList<UInt64>()
    var machine: KeyMachine<BoxedContent>

    let param: BoxedKey
    /// The position among the live keys.
    let place: Int

    /// Those who wait for an answer of the machine.
    var callers = FewByNumber<Reply<CallerAnswer<BoxedContent>>>.none
    /// The callers that wait for the content; the machine knows them as one caller.
    var crowd: (id: CallerID, reply: Reply<CallerAnswer<BoxedContent>>)?

    /// Fetches under way: of the content and of a page at each side, so never more than three, and the cancelled ones not among them.
    var fetches: [(ticket: Ticket, task: Task<Void, Never>)] = []
    /// When a fetch began last, or will begin, because a fetcher changed this key.
    var lastRestart: MonotonicInstant?
    /// The key's identity in the graph of waits; `nil` until its first fetch.
    private(set) var identity: FetchedKey?
    var timer: (deadline: MonotonicInstant, id: CallerID, task: Task<Void, Never>)?

    init(param: BoxedKey, place: Int, rules: KeyRules<BoxedContent>) {
        self.param = param
        self.place = place
        machine = KeyMachine(rules: rules)
    }

    /// The result of an observer's look at a key.
    enum Sight: Sendable {
        case state(LoadingState<BoxedContent>)
        case nothingNew
        /// The observer has left because its task was canceled.
        case gone
    }

    /// Gives an observer the current state, unless it has received it.
    mutating func look(_ id: CallerID) -> Sight {
        guard let observer = observers[id] else { return .gone }
        guard version > observer.tag, let state = machine.state else { return .nothingNew }
        observers.setTag(version, of: id)
        return .state(state)
    }

    /// Suspends an observer until there is a state that it has not received.
    ///
    /// - Returns: `false` if there is such a state, or if the observer has left.
    mutating func wait(_ id: CallerID, _ suspension: Suspension) -> Bool {
        guard let observer = observers[id] else { return false }
        if version > observer.tag, machine.isVisible { return false }
        // The first task would wait forever.
        if observer.suspension != nil { refuseSecondWaiter() }
        return observers.suspend(id, suspension)
    }

    /// Whether nothing would be lost but what the cacher does not know, if the engine forgot this key.
    // Mutating, so that the machine is looked at where it stands: read through a cell it would be copied as a whole.
    mutating func isAtRest() -> Bool { machine.isAtRest }

    /// Counts a new state, and takes the suspensions of all observers.
    mutating func publish(_ suspensions: inout Few<Suspension>) {
        version += 1
        guard machine.observers > 0, machine.isVisible else { return }
        observers.wake(&suspensions)
    }

    /// Removes the callers that the machine knows by this number.
    mutating func takeCallers(_ id: CallerID) -> Reply<CallerAnswer<BoxedContent>>? {
        guard let crowd, crowd.id == id else { return callers.remove(id) }
        self.crowd = nil
        return crowd.reply
    }

    /// Returns the key's identity in the graph of waits, and creates it if needed.
    mutating func identified() -> FetchedKey {
        if let identity { return identity }
        let identity = FetchedKey()
        self.identity = identity
        return identity
    }

    mutating func takeFetch(_ ticket: Ticket) -> Task<Void, Never>? {
        guard let position = fetches.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return fetches.remove(at: position).task
    }
}

/// What is to be done when the lock is open again: nothing of it may run user code under it.
struct Effects {
    enum Parcel {
        case answer(Reply<CallerAnswer<BoxedContent>>, CallerAnswer<BoxedContent>)
        case cancellation(Task<Void, Never>)
        // Out of line: only stores that are listened to send any.
        indirect case event(StoreEvent<BoxedKey>)
    }

    /// What observers wait on who have something to see. Most turns have nothing but these, and one content to let go of.
    var observers = Few<Suspension>.none
    var parcels = Few<Parcel>.none
    /// BoxedContent that is no longer needed: releasing it may run a `deinit` of the user's.
    var discarded = Few<BoxedContent>.none
    /// Keys that have been forgotten, which are the user's, too.
    var retired = Few<BoxedKey>.none
    /// Whatever else of the user's is no longer needed: patches, errors, records.
    var leftovers: [any Sendable] = []

    mutating func deliver(_ onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?) {
        // Before anybody is woken: he may ask for the next page of a list that is at rest now, and which grows in place only while nobody
        // but the memory in front holds it.
        if !retired.isEmpty { discarded = .none }
        guard !parcels.isEmpty else { return observers.forEach { $0.resume() } }
        parcels.forEach { parcel in
            switch parcel {
            case .answer(let reply, let answer): reply.put(answer)
            case .cancellation, .event: break
            }
        }
        observers.forEach { $0.resume() }
        parcels.forEach { if case .cancellation(let task) = $0 { task.cancel() } }
        if let onEvent { parcels.forEach { if case .event(let event) = $0 { onEvent(event) } } }
    }
}
