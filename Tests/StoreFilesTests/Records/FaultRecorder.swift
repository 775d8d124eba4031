import Foundation
internal import StoreFiles
@testable import StoreCore

/// Records the faults that a cacher reports.
final class FaultRecorder: Sendable {
    private let all = Lock<[FileCacherFault]>([])

    var faults: [FileCacherFault] { all.withLock { $0 } }
    var kinds: [FileCacherFault.Kind] { faults.map(\.kind) }

    func record(_ fault: FileCacherFault) { all.withLock { $0.append(fault) } }

    /// Returns the faults reported since the last call.
    func drain() -> [FileCacherFault.Kind] {
        all.withLock { faults in
            defer { faults = [] }
            return faults.map(\.kind)
        }
    }
}
