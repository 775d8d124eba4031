/// A key about which something goes on: its machine, and those whom the machine only counts. Lives under the engine's lock.
struct LiveKey {
    /// How often the state has changed; an observer who has seen this number has seen the present state.
    var version: UInt64 = 1
    private(set) var observers: [ObserverSlot] = []
    var machine: KeyMachine<BoxedContent>

    let param: BoxedKey
    /// Where it stands among the live keys.
    let place: Int
    private var freeSlots: [Int] = []
    /// Where observers stand who were moved, and who go on asking at their old place.
    private var moved: [CallerID: Int] = [:]

    /// Those who wait for an answer of the machine.
    var callers = FewByNumber<Reply<CallerAnswer<BoxedContent>>>.none
    /// Those who wait for the content; the machine knows them as one.
    var crowd: Crowd<CallerAnswer<BoxedContent>>?

    /// Fetches under way: of the content and of a page at each side, so never more than three, and the cancelled ones not among them.
    var fetches: [(ticket: Ticket, task: Task<Void, Never>)] = []
    /// When a fetch began last, or will begin, because a fetcher changed this key.
    var lastRestart: MonotonicInstant?
    /// The key's identity in the graph of waits; `nil` until its first fetch.
    private(set) var identity: FetchedKey?
    /// The lease under which the content of this revision was fetched, until it is saved.
    var lease: (lease: Lease, revision: Ticket)?
    var timer: (deadline: MonotonicInstant, id: CallerID, task: Task<Void, Never>)?

    init(param: BoxedKey, place: Int, rules: KeyRules<BoxedContent>) {
        self.param = param
        self.place = place
        machine = KeyMachine(rules: rules)
    }

    /// Finds a place for an observer, by which he is found until he leaves.
    mutating func addObserver(_ id: CallerID) -> Int {
        let slot = ObserverSlot(id: id)
        guard let free = freeSlots.popLast() else {
            observers.append(slot)
            return observers.count - 1
        }
        observers[free] = slot
        return free
    }

    /// Where the observer stands now who was given this place; `nil` where he has left.
    func position(of id: CallerID, at place: Int) -> Int? {
        observers.indices.contains(place) && observers[place].id == id ? place : moved[id]
    }

    /// What an observer finds when he looks.
    enum Sight: Sendable {
        case state(LoadingState<BoxedContent>)
        case nothingNew
        /// He has left: cancelled, while he was on his way.
        case gone
    }

    /// Gives an observer the present state, unless he has seen it.
    mutating func look(_ id: CallerID, at place: Int) -> Sight {
        guard let position = position(of: id, at: place) else { return .gone }
        guard version > observers[position].seen, let state = machine.state else { return .nothingNew }
        observers[position].seen = version
        return .state(state)
    }

    /// Lets an observer wait until there is a state that he has not seen.
    ///
    /// - Returns: `false` where there is one, or where he has left.
    mutating func wait(_ id: CallerID, at place: Int, _ waiting: Suspension) -> Bool {
        guard let position = position(of: id, at: place) else { return false }
        if version > observers[position].seen, machine.isVisible { return false }
        // The first one would wait for ever.
        if observers[position].waiting != nil { refuseSecondWaiter() }
        observers[position].waiting = waiting
        return true
    }

    /// Whether nothing would be lost but what the cacher does not know, if the engine forgot this key.
    // Mutating, so that the machine is looked at where it stands: read through a cell it would be copied as a whole.
    mutating func isAtRest() -> Bool { machine.isAtRest }

    /// Has a new state, and takes out what all observers wait on.
    mutating func publish(_ waiting: inout Few<Suspension>) {
        version += 1
        guard machine.observers > 0, machine.isVisible else { return }
        for position in observers.indices {
            guard let suspension = observers[position].waiting else { continue }
            observers[position].waiting = nil
            waiting.append(suspension)
        }
    }

    /// Takes an observer's place back.
    ///
    /// - Returns: Whether he still was here, and what he waits on, if he does.
    mutating func removeObserver(_ id: CallerID, at place: Int) -> (wasHere: Bool, waiting: Suspension?) {
        guard let position = position(of: id, at: place) else { return (false, nil) }
        let waiting = observers[position].waiting
        observers[position] = ObserverSlot(id: ObserverSlot.nobody)
        freeSlots.append(position)
        if !moved.isEmpty { moved[id] = nil }
        if freeSlots.count > 64, freeSlots.count > observers.count / 4 * 3 { closeUp() }
        return (true, waiting)
    }

    /// Lets those who are left close up: the places of a crowd that has gone would cost as long as the key lives, and at each state.
    ///
    /// Rare enough to cost nothing: as many have left as are looked at, three times over those who are moved.
    private mutating func closeUp() {
        var left: [ObserverSlot] = []
        var places: [CallerID: Int] = [:]
        left.reserveCapacity(observers.count - freeSlots.count)
        for (position, slot) in observers.enumerated() where slot.id != ObserverSlot.nobody {
            if position != left.count || moved[slot.id] != nil { places[slot.id] = left.count }
            left.append(slot)
        }
        (observers, freeSlots, moved) = (left, [], places)
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

/// An observer's place: who he is, what he has seen, and what he waits on while he does.
struct ObserverSlot {
    /// Whose place is free; numbers of observers begin at 1.
    static let nobody: CallerID = 0

    var id: CallerID
    var waiting: Suspension?
    /// The number of the state that he has seen last.
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
