import Foundation
@testable import StoreCore

/// Keeps what a cacher reports.
final class FaultRecorder: Sendable {
    private let all = Lock<[FileCacherFault]>([])

    var faults: [FileCacherFault] { all.withLock { $0 } }
    var kinds: [FileCacherFault.Kind] { faults.map(\.kind) }

    func record(_ fault: FileCacherFault) { all.withLock { $0.append(fault) } }

    /// What was reported since the last time.
    func drain() -> [FileCacherFault.Kind] {
        all.withLock { faults in
            defer { faults = [] }
            return faults.map(\.kind)
        }
    }
}
