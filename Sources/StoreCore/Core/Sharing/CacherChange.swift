/// A change that another user of a shared cacher has made to the records.
public enum CacherChange<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The record of a key was saved or removed.
    case changed(Param, Revision)
    /// All records were removed; each removed record has a lower revision.
    case removedAll(Revision)
    /// Changes may have been lost, so any record may have changed.
    case gap
}

/// The registration of an observer; releasing it ends the observation.
public final class ChangeObservation: Sendable {
    private let cancel: @Sendable () -> Void

    /// Creates a registration, for authors of shared cachers.
    ///
    /// - Parameter cancel: Removes the observer; called once, when the registration is released.
    public init(cancel: @escaping @Sendable () -> Void) {
        self.cancel = cancel
    }

    deinit { cancel() }
}
