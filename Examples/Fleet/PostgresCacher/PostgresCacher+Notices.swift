package import StoreCore
internal import Synchronization

// Lets a store report an outage as an event. The protocol is internal to this package: leave this file out of a copy, and use `onFault`.

extension PostgresCacher: NoticingCacher {
    package func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void) {
        observers.state.withLock { $0.faults.append { observer(.fault(.follow, nil, $0)) } }
    }
}
