import Foundation
import Testing
import Trials
@testable import PostgresCacher
@testable import StoreCore

/// A table of its own on a server.
struct PostgresPlace {
    var url: String
    let table: String

    /// - Parameter server: The server; by default the one that tests share.
    init(_ server: PostgresServer? = nil) async throws {
        if let server { url = server.url } else { url = try await PostgresServer.shared.value.url }
        table = "records \(UInt32.random(in: 0...UInt32.max))"
    }

    func database(connections: Int = 4, timeout: Duration = .seconds(600)) throws -> PostgresDatabase {
        try PostgresDatabase(url: url, connections: connections, timeout: timeout)
    }

    /// A cacher with connections of its own, as another machine would have it.
    func cacher(timeout: Duration = .seconds(600)) throws -> PostgresCacher<Int, Int> {
        PostgresCacher(try database(timeout: timeout), table: table)
    }

    func textCacher() throws -> PostgresCacher<String, String> { PostgresCacher(try database(), table: table) }

    /// Runs a statement as the owner of the tables.
    @discardableResult
    func query(_ text: String) async throws -> [[String?]] {
        let database = try database(connections: 1)
        let rows = try await database.core.run(PostgresQuery(text: text))
        withExtendedLifetime(database) {}
        return (rows.last ?? []).map { $0.map { $0?.postgresText } }
    }
}

/// A cacher as one machine of several would have it, and the changes that it is told of.
final class PostgresUser: Sendable {
    let cacher: PostgresCacher<Int, Int>
    private let recorded = Lock<[CacherChange<Int>]>([])
    private let recordedFaults = WatchedState<[PostgresError]>([])
    private let observation = Lock<ChangeObservation?>(nil)

    init(_ place: PostgresPlace, timeout: Duration = .seconds(600)) throws {
        cacher = PostgresCacher(try place.database(timeout: timeout), table: place.table) { [recordedFaults] error in
            recordedFaults.update { $0.append(error) }
        }
        let observation = cacher.observeChanges { [weak self] change in self?.recorded.withLock { $0.append(change) } }
        self.observation.withLock { $0 = observation }
    }

    var faults: [PostgresError] { recordedFaults.current }

    var changes: [CacherChange<Int>] { recorded.withLock { $0 } }

    /// The keys of the changes, in order.
    var keys: [Int] { changes.compactMap { if case .changed(let key, _) = $0 { key } else { nil } } }

    var gaps: Int { changes.count { $0 == .gap } }

    /// Begins to follow the changes.
    func attach() async throws { _ = try await cacher.load(param: -1) }

    func content(_ key: Int) async throws -> Int? { try await cacher.load(param: key)?.content }
}

func record(_ value: Int) -> CacheRecord<Int> { CacheRecord(content: value, fetchedAt: Date(timeIntervalSinceReferenceDate: 1)) }

extension SaveOutcome {
    /// The revision of a change that was made.
    var saved: Revision? { if case .saved(let revision) = self { revision } else { nil } }
    var isSaved: Bool { saved != nil }
    /// The newest record, and its revision, of a refused save.
    var refusal: (newer: CacheRecord<Content>?, revision: Revision)? {
        if case .superseded(let newer, let revision) = self { (newer, revision) } else { nil }
    }
}

extension LeaseOutcome {
    var failure: FetchFailedElsewhere? { if case .failed(let failure) = self { failure } else { nil } }
    var isNotNeeded: Bool { if case .notNeeded = self { true } else { false } }
}

/// Returns the lease; `nil` if it was not granted.
func granted(_ outcome: LeaseOutcome) -> Lease? { if case .granted(let lease) = outcome { lease } else { nil } }

/// Returns the error that a call throws.
func thrown(_ body: () async throws -> Void) async -> PostgresError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? PostgresError
    }
}

/// The suites run if PostgreSQL is installed.
let needsPostgres: Comment = "PostgreSQL is not installed; run apt-get install postgresql"
