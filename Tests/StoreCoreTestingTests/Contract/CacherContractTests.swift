import Foundation
import StoreCore
import StoreCoreTesting
import StoreFiles
import Testing
import Trials

/// The contract suite for cachers: it accepts every cacher of the package, and finds each planted defect.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CacherContractTests {
    private static let keys = ["a", "A", "a ", "", "é", "e\u{301}\u{301}", "a/b", "..", String(repeating: "k", count: 300)]
    private static let contents = ["", "content", "\u{0}\"\\\n", String(repeating: "c", count: 20_000)]

    private func check<Checked: Cacher<String, String>>(_ open: () async throws -> Checked) async throws {
        try await CacherContract.check(keys: Self.keys, contents: Self.contents, open: open)
    }

    @Test func `a cacher in memory keeps the contract`() async throws {
        let cacher = MemoryCacher<String, String>()
        try await check { cacher }
    }

    @Test(arguments: [FileSharing.none, .processes])
    func `a cacher in files keeps the contract`(_ sharing: FileSharing) async throws {
        let place = try TemporaryDirectory()
        try await check { FileCacher(directory: place.url, sharing: sharing) }
    }

    @Test func `a tiered cacher keeps the contract`() async throws {
        let place = try TemporaryDirectory()
        try await check { TieredCacher(over: FileCacher<String, String>(directory: place.url)) }
    }

    @Test func `shared files keep the contract of shared cachers`() async throws {
        let place = try TemporaryDirectory()
        try await CacherContract.checkSharing(keys: [1, 2, 3], contents: ["a", "b"], timeout: hangLimit) {
            FileCacher<Int, String>(directory: place.url, sharing: .processes)
        }
    }

    @Test(.enabled(if: SQLite.library != nil, "libsqlite3 is not installed"))
    func `a cacher over SQLite keeps the contract`() async throws {
        let place = try TemporaryDirectory()
        try await check { try SQLiteCacher<String, String>(path: place.file("records.sqlite").path(percentEncoded: false)) }
    }

    @Test(arguments: Defect.allCases)
    func `a defect of a cacher is found, and the error names the broken rule`(_ defect: Defect) async throws {
        let table = DefectiveCacher.Table()
        let error = await #expect(throws: StoreError.self) {
            try await CacherContract.check(keys: ["a", "A", "b"], contents: ["x", "y"]) { DefectiveCacher(defect, table) }
        }
        #expect(error?.code == .contractBroken)
        #expect(error?.message.contains(defect.rawValue) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: SharingDefect.allCases)
    func `a defect of a shared cacher is found, and the error names the broken rule`(_ defect: SharingDefect) async throws {
        let place = try TemporaryDirectory()
        let error = await #expect(throws: StoreError.self) {
            // On a slow machine, so short a wait adds other rules to the message, and removes none.
            try await CacherContract.checkSharing(keys: [1, 2], contents: ["x", "y"], timeout: .milliseconds(200)) {
                DefectiveSharedCacher(defect, FileCacher(directory: place.url, sharing: .processes))
            }
        }
        #expect(error?.code == .contractBroken)
        #expect(error?.message.contains(defect.rawValue) == true, "\(error?.message ?? "")")
    }

    @Test func `the error lists all broken rules in lines of their own`() async throws {
        let table = DefectiveCacher.Table()
        let error = await #expect(throws: StoreError.self) {
            try await CacherContract.check(keys: ["a", "b"], contents: ["x", "y"]) { DefectiveCacher(.nothingIsSaved, table) }
        }
        let lines = try #require(error?.message).split(separator: "\n")
        #expect(lines.count > 3 && lines.dropFirst().enumerated().allSatisfy { $1.hasPrefix("  \($0 + 1). ") })
        #expect("\(try #require(error))".contains("\n  2. "))
    }
}

/// The defects that are planted, by a part of the message.
enum Defect: String, CaseIterable, Sendable {
    case nothingIsSaved = "returns nil"
    case noValidator = "must return its validator: returns other details"
    case noFreshness = "must return its freshness: returns other details"
    case noPageKeys = "must return its page keys: returns other details"
    case noPages = "its pages and the reason for its end: returns other details"
    case noMark = "the mark of an invalidated record: returns other details"
    case oldDetailsStay = "the absence of everything else: returns other details"
    case wholeSeconds = "returns another date"
    case expiredIsNil = "a record that has expired: returns nil"
    case caseIsIgnored = "load of each of several keys: returns other content"
    case removeDoesNothing = "load after remove: returns a record that was removed"
    case removeRemovesAll = "remove removes the record of another key"
    case removeOfMissingThrows = "remove of a missing key throws"
    case keysAreStale = "keys() lists a key that was removed"
    case keysMissOne = "keys() after saves does not list each key once"
    case lateSaves = "must return the last record"
    case nothingStays = "a cacher that is opened again: returns nil"
    case removeAllLeavesOne = "load after removeAll: returns a record that was removed"
    case neverOutOfDate = "needsRefresh is false for an invalidated record"
}

/// A cacher in memory with one defect.
actor DefectiveCacher: Cacher {
    /// The storage that outlives a cacher.
    final class Table: Sendable {
        let records = WatchedState<[String: CacheRecord<String>]>([:])
    }

    struct Missing: Error {}

    private let defect: Defect
    private let table: Table
    private var lastKeys: Set<String> = []

    init(_ defect: Defect, _ table: Table) {
        self.defect = defect
        self.table = defect == .nothingStays ? Table() : table
    }

    private func name(_ key: String) -> String { defect == .caseIsIgnored ? key.lowercased() : key }

    func load(param: String) -> CacheRecord<String>? {
        let record = table.records.current[name(param)]
        if defect == .expiredIsNil, let record, let lifetime = record.freshness.lifetime, lifetime == .seconds(1) { return nil }
        return record
    }

    func save(_ record: CacheRecord<String>, param: String) {
        var record = record
        lastKeys.insert(param)
        switch defect {
        case .nothingIsSaved: return
        case .noValidator: record.validator = nil
        case .noFreshness: record.freshness = .unspecified
        case .noPageKeys: (record.nextKey, record.prevKey) = (nil, nil)
        case .noPages: (record.pages, record.guessedEnd) = ([], nil)
        case .noMark: record.isInvalidated = false
        case .oldDetailsStay: record.validator = record.validator ?? load(param: param)?.validator
        case .wholeSeconds: record.fetchedAt = Date(timeIntervalSince1970: record.fetchedAt.timeIntervalSince1970.rounded(.down))
        case .lateSaves:
            // Loses the end of a burst.
            if record.fetchedAt.timeIntervalSince1970 > 1_700_000_050 { return }
        default: break
        }
        let saved = record
        table.records.update { $0[name(param)] = saved }
    }

    func remove(param: String) throws {
        switch defect {
        case .removeDoesNothing: break
        case .removeRemovesAll: table.records.update { $0 = [:] }
        case .removeOfMissingThrows where table.records.current[param] == nil: throw Missing()
        default: table.records.update { $0[name(param)] = nil }
        }
    }

    func removeAll() {
        table.records.update { records in
            records = defect == .removeAllLeavesOne ? Dictionary(uniqueKeysWithValues: records.prefix(1).map { ($0, $1) }) : [:]
        }
    }

    func keys() -> [String]? {
        switch defect {
        case .keysAreStale: Array(lastKeys)
        case .keysMissOne: Array(table.records.current.keys.dropFirst())
        default: Array(table.records.current.keys)
        }
    }

    nonisolated func needsRefresh(_ record: CacheRecord<String>, param: String, now: Date) -> Bool {
        defect != .neverOutOfDate && (record.isInvalidated || record.fetchedAt > now)
    }
}

/// The defects of sharing that are planted, by a part of the message.
enum SharingDefect: String, CaseIterable, Sendable {
    case silence = "a save of another user is announced: nothing arrives"
    case echo = "the own changes of a cacher are delivered to its observers"
    case overwriting = "save over a position before another user's change replaces newer content"
    case refusal = "save over the own position is refused"
    case grants = "a second lease of a key is granted while another user holds it"
    case keeps = "a waiter for a lease is not resumed when the lease has ended"
    case neverGrants = "the first lease of a key is not granted"
    case notShared = "isShared is false"
}

/// A shared cacher with one defect.
final class DefectiveSharedCacher: SharedCacher {
    private let defect: SharingDefect
    private let sound: FileCacher<Int, String>
    private let own = WatchedState<[@Sendable (CacherChange<Int>) -> Void]>([])
    private let kept = WatchedState<[Lease]>([])

    init(_ defect: SharingDefect, _ sound: FileCacher<Int, String>) {
        self.defect = defect
        self.sound = sound
    }

    var isShared: Bool { defect != .notShared }
    var position: Revision { sound.position }

    func load(param: Int) async throws -> CacheRecord<String>? { try await sound.load(param: param) }
    func save(_ record: CacheRecord<String>, param: Int) async throws { try await sound.save(record, param: param) }
    func remove(param: Int) async throws { try await sound.remove(param: param) }
    func removeAll() async throws { try await sound.removeAll() }
    func keys() async throws -> [Int]? { try await sound.keys() }

    func observeChanges(_ observer: @escaping @Sendable (CacherChange<Int>) -> Void) -> ChangeObservation {
        own.update { $0.append(observer) }
        return sound.observeChanges { [defect] change in if defect != .silence { observer(change) } }
    }

    func save(_ record: CacheRecord<String>, param: Int, over base: Revision) async throws -> SaveOutcome<String> {
        if defect == .refusal { return .superseded(by: nil, base) }
        let outcome = try await sound.save(record, param: param, over: base)
        switch outcome {
        case .saved(let revision):
            if defect == .echo { for observer in own.current { observer(.changed(param, revision)) } }
            return outcome
        case .superseded(_, let revision):
            return defect == .overwriting ? try await sound.save(record, param: param, over: revision) : outcome
        }
    }

    func remove(param: Int, over base: Revision) async throws -> SaveOutcome<String> { try await sound.remove(param: param, over: base) }

    func lease(_ param: Int, for duration: Duration) async throws -> LeaseOutcome {
        switch defect {
        case .grants: return .granted(Lease(position: position) { _ in })
        case .neverGrants: while true { try await Task.sleep(for: .seconds(3600)) }
        default: break
        }
        let outcome = try await sound.lease(param, for: duration)
        // A lease that comes too late is given back, so that the next request gets it.
        guard defect == .keeps, !Task.isCancelled, case .granted(let lease) = outcome else { return outcome }
        kept.update { $0.append(lease) }
        return .granted(Lease(position: lease.position) { _ in })
    }
}
