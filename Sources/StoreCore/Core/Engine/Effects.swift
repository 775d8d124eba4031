/// The effects of a transition that wait until the lock is released, because each of them may run user code.
struct Effects {
    enum Parcel {
        case resume(SharedResult<CallerResult<BoxedContent>>, CallerResult<BoxedContent>)
        case cancellation(Task<Void, Never>)
        // Indirect, because only stores with an event hook send events.
        indirect case event(StoreEvent<BoxedKey>)
    }

    /// The suspensions of observers that have a state to take. Most transitions have only these and one discarded content.
    var observers = Few<Suspension>.none
    var parcels = Few<Parcel>.none
    /// Content that is no longer needed. Its release may run a `deinit` of user code.
    var discarded = Few<BoxedContent>.none
    /// Forgotten keys, which are user objects as well.
    var retired = Few<BoxedKey>.none
    /// Other user objects that are no longer needed: patches, errors, and records.
    var leftovers: [any Sendable] = []
    /// The changes of entities that other stores show.
    var marks: [LinkMark] = []
    /// The effects of transitions in the stores of entities.
    var linked: [LinkedEffects] = []

    mutating func deliver(_ onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?) {
        if !marks.isEmpty || !linked.isEmpty { return deliverLinked(onEvent) }
        // Releases first, because a resumed caller may request the next page of this list. The list grows in place only if memory holds the
        // only reference to it.
        if !retired.isEmpty { discarded = .none }
        guard !parcels.isEmpty else { return observers.forEach { $0.resume() } }
        parcels.forEach { parcel in
            switch parcel {
            case .resume(let shared, let result): shared.put(result)
            case .cancellation, .event: break
            }
        }
        observers.forEach { $0.resume() }
        parcels.forEach { if case .cancellation(let task) = $0 { task.cancel() } }
        if let onEvent { parcels.forEach { if case .event(let event) = $0 { onEvent(event) } } }
    }
}
