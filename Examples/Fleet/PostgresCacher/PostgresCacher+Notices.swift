package import StoreCore

// A store reports an outage as an event. The protocol belongs to this package: leave this file out of a copy, and use `onFault`. A copy also
// needs `typealias Lock = Mutex`, because `Lock` belongs to this package too.

extension PostgresCacher: NoticingCacher {
    package func observeNotices(_ observer: @escaping @Sendable (CacherNotice<Param>) -> Void) {
        observers.state.withLock { $0.faults.append { observer(.fault(.follow, nil, $0)) } }
    }
}
