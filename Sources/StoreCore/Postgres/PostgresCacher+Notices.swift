package import StoreCore

// Lets a store report an outage as an event. The protocol is internal to this package: leave this file out of a copy, and use `onFault`. A
// copy also needs `typealias Lock = Mutex`, because `Lock` belongs to this package.

extension PostgresCacher: NoticingCacher {
    package func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void) {
        observers.state.withLock { $0.faults.append { observer(.fault(.follow, nil, $0)) } }
    }
}
