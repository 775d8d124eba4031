import Foundation
import StoreTrials
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

/// A cacher on a shared directory, as one process of several would have it, and the changes that it is told of.
final class SharedUser: Sendable {
    let cacher: FileCacher<Int, Int>
    private let recorded = Lock<[CacherChange<Int>]>([])
    private let observation = Lock<ChangeObservation?>(nil)

    init(_ directory: URL, limit: Int = 256_000_000, faults: FaultRecorder = FaultRecorder()) {
        cacher = FileCacher(directory: directory, limit: limit, sharing: .processes) { faults.record($0) }
        observe()
    }

    func observe() {
        let observation = cacher.observeChanges { [weak self] change in self?.recorded.withLock { $0.append(change) } }
        self.observation.withLock { $0 = observation }
    }

    var isWatching: Bool { cacher.shared?.log.isWatched == true }

    var changes: [CacherChange<Int>] { recorded.withLock { $0 } }

    /// The keys of the changes, in order.
    var keys: [Int] { changes.compactMap { if case .changed(let key, _) = $0 { key } else { nil } } }

    var gaps: Int { changes.count { $0 == .gap } }

    func stopObserving() { observation.withLock { $0 = nil } }

    /// Begins to follow the changes.
    func attach() async throws { _ = try await cacher.load(param: -1) }

    @discardableResult
    func save(_ value: Int, _ key: Int, over base: Revision) async throws -> SaveOutcome<Int> {
        try await cacher.save(record(value), param: key, over: base)
    }

    func content(_ key: Int) async throws -> Int? { try await cacher.load(param: key)?.content }
}

extension SaveOutcome {
    var isSaved: Bool { if case .saved = self { true } else { false } }
}

extension LeaseOutcome {
    var lease: Lease? { if case .granted(let lease) = self { lease } else { nil } }
    var failure: FetchFailedElsewhere? { if case .failed(let failure) = self { failure } else { nil } }
    var isNotNeeded: Bool { if case .notNeeded = self { true } else { false } }
}

/// Waits for a lease; `nil` if it was not granted.
///
/// - Throws: ``NeverHappened`` long before a lease of several minutes has passed.
func granted(
    fileID: String = #fileID, line: Int = #line, _ outcome: @escaping @Sendable () async throws -> LeaseOutcome
) async throws -> Lease? {
    try await Task { try await outcome() }.value(of: "the lease is granted", fileID: fileID, line: line).lease
}

/// Adds changes of one key to the log of a shared directory, or of a folder in it; the log is compacted when it has more than 2 048.
func addChanges(_ count: Int, in place: TemporaryDirectory, _ folder: String = "") async throws {
    let (directory, key) = (SharedDirectory(Directory(path: place.directory.path + folder)), try FileKey(-2))
    try await directory.perform {
        try directory.transact { transaction throws(StoreError) in
            for _ in 0..<count { _ = try transaction.appendChange(of: key, schema: 1) }
        }
    }
}

/// Returns the numbers of a shared directory's log as a new process reads them; `nil` if there are none.
func changeNumbers(in place: TemporaryDirectory) throws -> ChangeNumbers? {
    let path = place.directory.path + "/.sharing/changes"
    guard let file = try OpenFile(reading: path) else { return nil }
    var numbers: ChangeNumbers?
    let (damages, _) = try LogFile<StoreFiles.SharedChange>.read(file, .changes) { entry in
        if numbers == nil, case .began(let first) = entry { numbers = first } else { numbers?.take(entry) }
    }
    return damages.isEmpty ? numbers : nil
}
