// Closing (C23): the key keeps only what its cacher still lacks.

extension KeyMachine {
    /// The store is closed: fails the callers, except those that wait for a save, and drops everything but the pending save.
    mutating func closed(_ transition: inout Transition) {
        answerCallers(&transition) { need in
            switch need {
            case .saved, .savedEdit, .allSaved: nil
            default: .failure(StoreError.closedStore)
            }
        }
        desk.observers = 0
        (desk.forceRefreshPending, wakes.triggerPending, wakes.refetchesAtDeadline, wakes.owesFetch) = (false, false, false, false)
        dropFlight(&transition)
        supersedePages(&transition)
        // Not folded: an outbox still has the commands of these patches, and the next store gets them again.
        for patch in book.patches { transition.leftovers.append(patch) }
        book.patches = []
        rebuildOverlay(&transition)
        retrySave(&transition)
        endTransition(&transition)
    }
}
