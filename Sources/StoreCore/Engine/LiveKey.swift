/// A key about which something goes on: its machine, and those whom the machine only counts. Lives under the engine's lock.
struct LiveKey {
    /// How often the state has changed; an observer who has seen this number has seen the present state.
    var version: UInt64 = 1
    private(set) var observers: [CallerID: ObserverSlot] = [:]
    var machine: KeyMachine<BoxedContent>

    let param: BoxedKey

    /// Those who wait for an answer of the machine.
    var callers: [CallerID: Reply<CallerAnswer<BoxedContent>>] = [:]
    /// Those who wait for the content; the machine knows them as one.
    var crowd: Crowd<CallerAnswer<BoxedContent>>?

    /// Fetches under way: of the content and of a page at each side, so never more than three, and the cancelled ones not among them.
    var fetches: [(ticket: Ticket, task: Task<Void, Never>)] = []
    /// When a fetch began last, or will begin, because a fetcher changed this key.
    var lastRestart: MonotonicInstant?
    /// The key's identity in the graph of waits; `nil` until its first fetch.
    private(set) var identity: FetchedKey?
    var timer: (deadline: MonotonicInstant, id: CallerID, task: Task<Void, Never>)?

    init(param: BoxedKey, rules: KeyRules<BoxedContent>) {
        self.param = param
        machine = KeyMachine(rules: rules)
    }

    mutating func addObserver(_ id: CallerID) { observers[id] = ObserverSlot() }

    /// The result of a look at a key.
    enum Sight: Sendable {
        case state(LoadingState<BoxedContent>)
        case nothingNew
        /// The observer has left.
        case gone
    }

    /// Returns the present state to an observer, unless the observer has seen it.
    mutating func look(_ id: CallerID) -> Sight {
        guard let slot = observers[id] else { return .gone }
        guard version > slot.seen, let state = machine.state else { return .nothingNew }
        observers[id]?.seen = version
        return .state(state)
    }

    /// Lets an observer wait for a state that it has not seen.
    ///
    /// - Returns: `false` if there is one, or if the observer has left.
    mutating func wait(_ id: CallerID, _ waiting: Suspension) -> Bool {
        guard let slot = observers[id] else { return false }
        if version > slot.seen, machine.isVisible { return false }
        // The first waiter would wait forever.
        if slot.waiting != nil { refuseSecondWaiter() }
        observers[id]?.waiting = waiting
        return true
    }

    /// Whether nothing would be lost but what the cacher does not know, if the engine forgot this key.
    // Mutating, so that the machine is looked at where it stands: read through a cell it would be copied as a whole.
    mutating func isAtRest() -> Bool { machine.isAtRest }

    /// Counts a new state, and takes out the suspensions of all waiting observers.
    mutating func publish(_ waiting: inout Few<Suspension>) {
        version += 1
        guard machine.observers > 0, machine.isVisible else { return }
        // Not over `indices`, which would hold a copy of the dictionary.
        var index = observers.startIndex
        while index != observers.endIndex {
            if let suspension = observers.values[index].waiting {
                observers.values[index].waiting = nil
                waiting.append(suspension)
            }
            observers.formIndex(after: &index)
        }
    }

    /// Removes an observer.
    ///
    /// - Returns: The observer's last state; `nil` if it has left already.
    mutating func removeObserver(_ id: CallerID) -> ObserverSlot? {
        let removed = observers.removeValue(forKey: id)
        // A dictionary keeps its capacity, and each state costs a pass over it.
        if observers.capacity > 64, observers.count < observers.capacity / 4 {
            observers = Dictionary(uniqueKeysWithValues: observers.map { ($0.key, $0.value) })
        }
        return removed
    }

    mutating func takeCaller(_ id: CallerID) -> Reply<CallerAnswer<BoxedContent>>? {
        defer { if callers.isEmpty { callers = [:] } }
        return callers.removeValue(forKey: id)
    }

    /// Takes out the crowd that the machine knows by this number.
    mutating func takeCrowd(_ id: CallerID) -> Crowd<CallerAnswer<BoxedContent>>? {
        guard let crowd, crowd.id == id else { return nil }
        self.crowd = nil
        return crowd
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

/// What an observer has seen, and what it waits on.
struct ObserverSlot {
    var waiting: Suspension?
    /// The number of the last state that the observer has seen.
    var seen: UInt64 = 0
}

/// What is to be done when the lock is open again: nothing of it may run user code under it.
struct Effects {
    enum Parcel {
        case answer(Reply<CallerAnswer<BoxedContent>>, CallerAnswer<BoxedContent>)
        case answerToAll(Crowd<CallerAnswer<BoxedContent>>, CallerAnswer<BoxedContent>)
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
            case .answer(let caller, let answer): caller.put(answer)
            case .answerToAll(let crowd, let answer): crowd.put(answer)
            case .cancellation, .event: break
            }
        }
        observers.forEach { $0.resume() }
        parcels.forEach { if case .cancellation(let task) = $0 { task.cancel() } }
        if let onEvent { parcels.forEach { if case .event(let event) = $0 { onEvent(event) } } }
    }
}
