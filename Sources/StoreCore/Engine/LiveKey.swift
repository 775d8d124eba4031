/// A key about which something goes on: its machine, and those whom the machine only counts. Lives under the engine's lock.
final class LiveKey<Param: Hashable & Sendable, Content: Sendable> {
    let param: Param
    var machine: KeyMachine<Content>

    /// How often the state has changed; an observer who has seen this number has seen the present state.
    var version: UInt64 = 1
    private(set) var observers: [ObserverSlot] = []
    private var freeSlots: [Int] = []
    /// Where observers stand who were moved, and who go on asking at their old place.
    private var moved: [CallerID: Int] = [:]

    /// Those who wait for an answer of the machine.
    var callers: [CallerID: Reply<CallerAnswer<Content>>] = [:]
    /// Those who wait for the content; the machine knows them as one.
    var crowd: Crowd<CallerAnswer<Content>>?

    /// Fetches under way: of the content and of a page at each side, so never more than three, and the cancelled ones not among them.
    var fetches: [(ticket: Ticket, task: Task<Void, Never>)] = []
    var timer: (deadline: MonotonicInstant, id: CallerID, task: Task<Void, Never>)?

    init(param: Param, rules: KeyRules<Content>) {
        self.param = param
        machine = KeyMachine(rules: rules)
    }

    /// Finds a place for an observer, by which he is found until he leaves.
    func addObserver(_ id: CallerID) -> Int {
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

    /// Whether an observer has yet to see the present state.
    func hasNews(at position: Int) -> Bool { version > observers[position].seen }

    /// Notes that an observer has seen the present state.
    func see(at position: Int) { observers[position].seen = version }

    /// Lets an observer wait.
    func wait(at position: Int, _ waiting: ObserverSlot.Waiting) {
        // The first one would wait for ever.
        if observers[position].waiting != nil { refuseSecondWaiter() }
        observers[position].waiting = waiting
    }

    /// Takes out what all observers wait on.
    func takeWaiting(into waiting: inout [ObserverSlot.Waiting]) {
        for position in observers.indices {
            guard let continuation = observers[position].waiting else { continue }
            observers[position].waiting = nil
            waiting.append(continuation)
        }
    }

    /// Takes an observer's place back.
    ///
    /// - Returns: Whether he still was here, and what he waits on, if he does.
    func removeObserver(_ id: CallerID, at place: Int) -> (wasHere: Bool, waiting: ObserverSlot.Waiting?) {
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
    private func closeUp() {
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
    func takeCrowd(_ id: CallerID) -> Crowd<CallerAnswer<Content>>? {
        guard let crowd, crowd.id == id else { return nil }
        self.crowd = nil
        return crowd
    }

    /// Takes out whoever waits for an answer.
    func takeCaller(_ id: CallerID) -> Reply<CallerAnswer<Content>>? {
        let caller = callers.removeValue(forKey: id)
        // A dictionary keeps its size when it empties; thousands of callers at once would cost as long as the key is observed.
        if callers.isEmpty, callers.capacity > 64 { callers = [:] }
        return caller
    }

    func takeFetch(_ ticket: Ticket) -> Task<Void, Never>? {
        guard let position = fetches.firstIndex(where: { $0.ticket == ticket }) else { return nil }
        return fetches.remove(at: position).task
    }
}

/// An observer's place: who he is, what he has seen, and what he waits on while he does.
struct ObserverSlot {
    // Unsafe, because a checked continuation is an allocation for each state; the slot takes it out before resuming, so once it is.
    typealias Waiting = UnsafeContinuation<Void, Never>

    /// Whose place is free; numbers of observers begin at 1.
    static let nobody: CallerID = 0

    var id: CallerID
    var waiting: Waiting?
    /// The number of the state that he has seen last.
    var seen: UInt64 = 0
}

/// What is to be done when the lock is open again: nothing of it may run user code under it.
struct Outbox<Param: Hashable & Sendable, Content: Sendable> {
    var observers: [ObserverSlot.Waiting] = []
    var callers: [(caller: Reply<CallerAnswer<Content>>, answer: CallerAnswer<Content>)] = []
    var crowds: [(crowd: Crowd<CallerAnswer<Content>>, answer: CallerAnswer<Content>)] = []
    var cancelled: [Task<Void, Never>] = []
    var events: [StoreEvent<Param>] = []
    /// Records and contents that are no longer needed: releasing one may run a `deinit` of the user's.
    var dropped: [FrontMemoryDrop] = []
    var discarded: [Content] = []
    var discardedPatches: [KeyMachine<Content>.Patch] = []
    var discardedErrors: [any Error] = []

    func deliver(_ onEvent: (@Sendable (StoreEvent<Param>) -> Void)?) {
        for (caller, answer) in callers { caller.put(answer) }
        for (crowd, answer) in crowds { crowd.put(answer) }
        for waiting in observers { waiting.resume() }
        for task in cancelled { task.cancel() }
        if let onEvent { for event in events { onEvent(event) } }
    }
}
