#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
public import StoreCore

/// The rules that a store relies on, checked against a cacher of your own.
///
/// One call makes some hundred calls of the cacher and throws one error that lists every broken rule:
///
/// ```swift
/// @Test func `the cacher of the database keeps the contract`() async throws {
///     let database = Database()
///     try await CacherContract.check(keys: [1, 2, 30], contents: ["", "Ada"]) {
///         DatabaseCacher<String>(database: database)
///     }
/// }
/// ```
///
/// The cacher must be empty, and is empty afterward.
///
/// <doc:TestingYourStore> explains which keys and contents to pass.
public enum CacherContract {
    /// Checks the rules of a cacher.
    ///
    /// - Parameters:
    ///   - keys: At least two keys, among them the most unusual ones: they must not be confused with each other.
    ///   - contents: At least two contents, among them the largest and the most unusual.
    ///   - open: Opens the cacher. It is called twice, and the second cacher must find the records of the first. A cacher without storage
    ///     outside the process returns the same object.
    /// - Throws: ``StoreError/Code/contractBroken``, with a line for each broken rule; the errors of `open`.
    public static func check<Opened: Cacher>(
        keys: [Opened.Param], contents: [Opened.Content], open: () async throws -> Opened
    ) async throws where Opened.Content: Equatable {
        precondition(Set(keys).count >= 2 && contents.count >= 2, "the check needs two different keys and two contents")
        var check = Check(cacher: try await open(), keys: unique(keys), contents: contents)
        await check.start()
        await check.records()
        await check.keys(listed: "after saves")
        await check.removal()
        await check.saves()
        await check.concurrency()
        let records = await check.saveAll()
        check.cacher = try await open()
        await check.expect(records, "a cacher that is opened again")
        await check.emptying()
        try check.broken.throwIfAny(Opened.self)
    }

    /// Checks the rules of a shared cacher, with two users of the same records.
    ///
    /// - Parameters:
    ///   - keys: At least two keys.
    ///   - contents: At least two different contents.
    ///   - timeout: The longest wait for a change or a lease, in real time.
    ///   - open: Opens the cacher. It is called twice, and must return two objects that share their records.
    /// - Throws: ``StoreError/Code/contractBroken``, with a line for each broken rule; the errors of `open`.
    public static func checkSharing<Opened: SharedCacher>(
        keys: [Opened.Param], contents: [Opened.Content], timeout: Duration = .seconds(30), open: () async throws -> Opened
    ) async throws where Opened.Content: Equatable {
        precondition(Set(keys).count >= 2 && contents.count >= 2, "the check needs two different keys and two contents")
        let check = SharingCheck(
            a: SharedUser(try await open()), b: SharedUser(try await open()), keys: unique(keys), contents: contents, timeout: timeout)
        await check.run()
        try check.broken.throwIfAny(Opened.self)
    }
}

private func unique<Key: Hashable>(_ keys: [Key]) -> [Key] {
    var seen: Set<Key> = []
    return keys.filter { seen.insert($0).inserted }
}

extension StoreError.Code {
    /// A cacher does not keep the rules that a store relies on; the message lists them.
    public static let contractBroken = StoreError.Code(rawValue: "contractBroken")
}

private final class BrokenRules: Sendable {
    private let lines = WatchedState<[String]>([])

    func note(_ line: String) { lines.update { lines in if !lines.contains(line) { lines.append(line) } } }

    func throwIfAny(_ type: (some Cacher).Type) throws {
        let lines = lines.current
        guard !lines.isEmpty else { return }
        let list = lines.enumerated().map { "\n  \($0.offset + 1). \($0.element.escapedForDisplay())" }.joined()
        var error = StoreError(.contractBroken, "checking the cacher \(type): it breaks \(lines.count) of the rules of Cacher:\(list)")
        error.keepsLineBreaks = true
        throw error
    }

    /// Runs a call that must not throw.
    func attempt<Value>(_ rule: String, _ call: () async throws -> Value) async -> Value? {
        do { return try await call() } catch {
            note("\(rule) throws \(error)")
            return nil
        }
    }
}

private struct Check<Checked: Cacher> where Checked.Content: Equatable {
    typealias Record = CacheRecord<Checked.Content>

    var cacher: Checked
    let keys: [Checked.Param]
    let contents: [Checked.Content]
    let broken = BrokenRules()
    private let date = Date(timeIntervalSince1970: 1_700_000_000.123_456)

    /// Records with every part that a store saves.
    private var samples: [(name: String, record: Record)] {
        var invalidated = Record(content: contents[0], fetchedAt: date)
        invalidated.isInvalidated = true
        let freshness = Freshness(
            lifetime: .milliseconds(1500), staleWhileRevalidate: .seconds(2), staleIfError: .seconds(3), mustRevalidate: true)
        var pages = Record(content: contents[1], fetchedAt: date, prevKey: "p")
        pages.pages = [LoadedPage(direction: .prev, key: "é", count: 1), LoadedPage(count: 2)]
        pages.guessedEnd = .emptyPage
        let validator = Validator(entityTag: "W/\"é\\\"\"", lastModified: "Tue, 14 Nov 2023 22:13:20 GMT")
        return [
            ("its content and date", Record(content: contents[1], fetchedAt: date)),
            ("its freshness", Record(content: contents[0], fetchedAt: date, freshness: freshness)),
            ("its validator", Record(content: contents[1], fetchedAt: date, validator: validator)),
            ("its page keys", Record(content: contents[0], fetchedAt: date, nextKey: "n/é", prevKey: "p ")),
            ("its pages and the reason for its end", pages),
            ("the mark of an invalidated record", invalidated),
            ("a record that has expired", Record(content: contents[1], fetchedAt: .distantPast, freshness: .fresh(for: .seconds(1)))),
            ("a record with a future date", Record(content: contents[0], fetchedAt: date.addingTimeInterval(1e9))),
            // Last, so that nothing of the others is left.
            ("the absence of everything else", Record(content: contents[1], fetchedAt: date)),
        ]
    }

    mutating func start() async {
        for key in keys {
            let found = await broken.attempt("load of a missing key") { try await cacher.load(param: key) }
            if case .some(.some) = found {
                broken.note("load of a missing key returns a record; the cacher must be empty before the check")
            }
            _ = await broken.attempt("remove of a missing key") { try await cacher.remove(param: key) }
        }
        if cacher.expiry != cacher.expiry { broken.note("expiry changes: a store reads it once") }
        var record = Record(content: contents[0], fetchedAt: date, freshness: .fresh(for: .seconds(1)))
        record.isInvalidated = true
        if !cacher.needsRefresh(record, param: keys[0], now: date) { broken.note("needsRefresh is false for an invalidated record") }
    }

    func records() async {
        let others = contents.map { (name: "each of the contents", record: Record(content: $0, fetchedAt: date)) }
        for (name, record) in samples + others {
            guard await broken.attempt("save", { try await cacher.save(record, param: keys[0]) }) != nil else { continue }
            await expect([keys[0]: record], "load after save, which must return \(name)")
        }
        _ = await saveAll()
    }

    func saveAll() async -> [Checked.Param: Record] {
        var saved: [Checked.Param: Record] = [:]
        for (number, key) in keys.enumerated() {
            saved[key] = Record(content: contents[number % contents.count], fetchedAt: date.addingTimeInterval(Double(number)))
        }
        for (key, record) in saved { _ = await broken.attempt("save") { try await cacher.save(record, param: key) } }
        await expect(saved, "load of each of several keys")
        return saved
    }

    func expect(_ records: [Checked.Param: Record?], _ rule: String) async {
        for (key, record) in records {
            guard let found = await broken.attempt(rule, { try await cacher.load(param: key) }) else { continue }
            switch (found, record) {
            case (nil, nil): break
            case (nil, _?): broken.note("\(rule): returns nil")
            case (_?, nil): broken.note("\(rule): returns a record that was removed")
            case (let found?, let record?):
                // A store compares dates with a resolution of milliseconds.
                if abs(found.fetchedAt.timeIntervalSince(record.fetchedAt)) > 0.001 { broken.note("\(rule): returns another date") }
                var dated = found
                dated.fetchedAt = record.fetchedAt
                if dated != record {
                    broken.note("\(rule): returns \(found.content == record.content ? "other details" : "other content")")
                }
            }
        }
    }

    func keys(listed when: String) async {
        guard let listed = await broken.attempt("keys()", { try await cacher.keys() }), let listed else { return }
        if Set(listed) != Set(keys) || listed.count != keys.count { broken.note("keys() \(when) does not list each key once") }
    }

    func removal() async {
        _ = await broken.attempt("remove") { try await cacher.remove(param: keys[0]) }
        await expect([keys[0]: nil], "load after remove")
        if let listed = await broken.attempt("keys()", { try await cacher.keys() }), listed?.contains(keys[0]) == true {
            broken.note("keys() lists a key that was removed")
        }
        for key in keys.dropFirst() {
            let found = await broken.attempt("load") { try await cacher.load(param: key) }
            if case .some(nil) = found { broken.note("remove removes the record of another key") }
        }
    }

    func saves() async {
        for number in 0..<100 {
            let record = Record(content: contents[number % contents.count], fetchedAt: date.addingTimeInterval(Double(number)))
            _ = await broken.attempt("save in place of a record") { try await cacher.save(record, param: keys[0]) }
        }
        await expect(
            [keys[0]: Record(content: contents[99 % contents.count], fetchedAt: date.addingTimeInterval(99))],
            "load after many saves, which must return the last record")
    }

    func concurrency() async {
        await withTaskGroup { group in
            for (number, key) in keys.enumerated() {
                group.addTask { [self] in
                    for round in 0..<20 {
                        let record = Record(content: contents[(number + round) % contents.count], fetchedAt: date)
                        _ = await broken.attempt("save beside calls for other keys") { try await cacher.save(record, param: key) }
                        await expect([key: record], "load beside calls for other keys")
                        if round % 5 == 0 {
                            _ = await broken.attempt("remove beside calls for other keys") { try await cacher.remove(param: key) }
                            await expect([key: nil], "load after remove, beside calls for other keys")
                        }
                        _ = await broken.attempt("keys() beside other calls") { try await cacher.keys() }
                    }
                }
            }
        }
    }

    func emptying() async {
        _ = await broken.attempt("removeAll") { try await cacher.removeAll() }
        await expect(Dictionary(uniqueKeysWithValues: keys.map { ($0, nil) }), "load after removeAll")
        if let listed = await broken.attempt("keys()", { try await cacher.keys() }), listed?.isEmpty == false {
            broken.note("keys() lists keys after removeAll")
        }
        let record = Record(content: contents[0], fetchedAt: date)
        _ = await broken.attempt("save after removeAll") { try await cacher.save(record, param: keys[0]) }
        await expect([keys[0]: record], "load after removeAll and save")
        _ = await broken.attempt("removeAll") { try await cacher.removeAll() }
    }
}

/// A user of the shared records, and the changes that it has received.
private final class SharedUser<Shared: SharedCacher>: Sendable {
    let cacher: Shared
    let changes = WatchedState<[CacherChange<Shared.Param>]>([])
    private let observation = WatchedState<ChangeObservation?>(nil)

    init(_ cacher: Shared) {
        self.cacher = cacher
        let observed = cacher.observeChanges { [changes] change in changes.update { $0.append(change) } }
        observation.update { $0 = observed }
    }
}

private struct SharingCheck<Shared: SharedCacher>: Sendable where Shared.Content: Equatable {
    let a: SharedUser<Shared>
    let b: SharedUser<Shared>
    let keys: [Shared.Param]
    let contents: [Shared.Content]
    let timeout: Duration
    let broken = BrokenRules()
    private let date = Date(timeIntervalSince1970: 1_700_000_000)
    private let refusal = "the first lease of a key is not granted"

    private func record(_ number: Int) -> CacheRecord<Shared.Content> {
        CacheRecord(content: contents[number % contents.count], fetchedAt: date)
    }

    func run() async {
        if !a.cacher.isShared || !b.cacher.isShared { return broken.note("isShared is false") }
        // Following begins with the first load.
        for user in [a, b] { _ = await broken.attempt("load") { try await user.cacher.load(param: keys[0]) } }
        await changes()
        await conflicts()
        await leases()
        await emptying()
    }

    private func wait(_ user: SharedUser<Shared>, _ rule: String, until isDone: @escaping @Sendable ([CacherChange<Shared.Param>]) -> Bool)
        async
    {
        do {
            try await user.changes.wait(timeout: timeout) { isDone($0) ? () : nil }
        } catch {
            broken.note("\(rule): nothing arrives within \(timeout.inWords)")
        }
    }

    private func changes() async {
        var last: Revision?
        for (number, key) in keys.enumerated() {
            let base = a.cacher.position
            let outcome = await broken.attempt("save over the own position") {
                try await a.cacher.save(record(number), param: key, over: base)
            }
            guard case .saved(let revision) = outcome else {
                if outcome != nil { broken.note("save over the own position is refused, although no other user has changed the key") }
                continue
            }
            if let last, revision <= last { broken.note("the revisions of later changes are not higher") }
            last = revision
            await wait(b, "a save of another user is announced") { changes in
                changes.contains { if case .changed(key, revision) = $0 { true } else { $0 == .gap } }
            }
            let found = await broken.attempt("load") { try await b.cacher.load(param: key) }
            if found??.content != record(number).content { broken.note("load after an announced change does not return its record") }
        }
        let revisions = b.changes.current.compactMap { if case .changed(_, let revision) = $0 { revision } else { nil } }
        if revisions != revisions.sorted() { broken.note("changes are not announced in the order of their revisions") }
        if a.changes.current.contains(where: { if case .changed = $0 { true } else { false } }) {
            broken.note("the own changes of a cacher are delivered to its observers")
        }
    }

    private func conflicts() async {
        let old = b.cacher.position
        _ = await broken.attempt("save") { try await a.cacher.save(record(1), param: keys[0], over: a.cacher.position) }
        let outcome = await broken.attempt("save over an older position") { try await b.cacher.save(record(0), param: keys[0], over: old) }
        switch outcome {
        case nil: break
        case .saved: broken.note("save over a position before another user's change replaces newer content")
        case .superseded(let newer, let revision):
            if newer?.content != record(1).content { broken.note("a refused save does not return the newest record") }
            let again = await broken.attempt("save over the revision of a refused save") {
                try await b.cacher.save(record(0), param: keys[0], over: revision)
            }
            if let again, case .superseded = again { broken.note("a save over the revision of the refused save is refused again") }
        }
        let position = a.cacher.position
        _ = await broken.attempt("remove") { try await b.cacher.remove(param: keys[1], over: b.cacher.position) }
        let late = await broken.attempt("save over a position before a removal") {
            try await a.cacher.save(record(0), param: keys[1], over: position)
        }
        if case .saved = late { broken.note("save over a position before another user's removal brings the record back") }
    }

    private func leases() async {
        for (ending, rule) in [(Lease.Ending.saved, "saved"), (.abandoned, "abandoned"), (.notStored, "not stored")] {
            await lease(ending: ending, rule)
        }
        await lease(
            ending: .failed(FetchFailedElsewhere(failureKind: .permanent, retryAfter: nil, allowsStale: false, message: "x")), "failed")
    }

    private typealias Request = (task: Task<LeaseOutcome, any Error>, isDone: WatchedState<Bool>)

    /// Requests a lease in a task of its own, because a defective cacher may never return.
    private func request(_ user: SharedUser<Shared>, _ key: Shared.Param) -> Request {
        let isDone = WatchedState(false)
        let task = Task {
            defer { isDone.update { $0 = true } }
            return try await user.cacher.lease(key, for: .seconds(600))
        }
        return (task, isDone)
    }

    /// Returns the outcome of a request; `nil` if it throws, or does not end in time.
    private func outcome(of request: Request, otherwise rule: String) async -> LeaseOutcome? {
        guard (try? await request.isDone.wait(timeout: timeout) { $0 ? () : nil }) != nil else {
            request.task.cancel()
            broken.note(rule)
            return nil
        }
        return await broken.attempt("lease") { try await request.task.value }
    }

    private func lease(ending: Lease.Ending, _ rule: String) async {
        let first = await outcome(of: request(a, keys[0]), otherwise: refusal)
        guard case .granted(let lease) = first else {
            // A cacher may grant no leases.
            if case .failed = first { broken.note(refusal) }
            return
        }
        let waiter = request(b, keys[0])
        // A cacher that grants at once does so within this time; a slower one is not found out.
        try? await Task.sleep(for: .milliseconds(50))
        // On a busy machine, the waiter may not have run yet.
        for _ in 0..<2_000 where !waiter.isDone.current { await Task.yield() }
        if waiter.isDone.current { broken.note("a second lease of a key is granted while another user holds it") }
        lease.end(ending)
        switch (ending, await outcome(of: waiter, otherwise: "a waiter for a lease is not resumed when the lease has ended (\(rule))")) {
        case (.failed, .failed), (.notStored, .notNeeded), (_, nil): break
        case (.saved, .granted(let next)), (.abandoned, .granted(let next)): next.end(.abandoned)
        case (_, .granted(let next)):
            next.end(.abandoned)
            broken.note("a waiter gets the lease, although it has ended (\(rule))")
        default: broken.note("a waiter gets another outcome than the lease has (\(rule))")
        }
        await cancellation()
    }

    private func cancellation() async {
        guard case .granted(let lease) = await outcome(of: request(a, keys[1]), otherwise: refusal) else { return }
        defer { lease.end(.abandoned) }
        let waiter = request(b, keys[1])
        waiter.task.cancel()
        let isDone: Void? = try? await waiter.isDone.wait(timeout: timeout) { $0 ? () : nil }
        if isDone == nil { broken.note("a canceled wait for a lease does not end") }
    }

    private func emptying() async {
        _ = await broken.attempt("save") { try await a.cacher.save(record(0), param: keys[0], over: a.cacher.position) }
        let (position, seen) = (b.cacher.position, b.changes.current.count)
        _ = await broken.attempt("removeAll") { try await a.cacher.removeAll() }
        let late = await broken.attempt("save over a position before removeAll") {
            try await b.cacher.save(record(0), param: keys[0], over: position)
        }
        if case .saved = late { broken.note("save over a position before another user's removeAll brings a record back") }
        await wait(b, "removeAll of another user is announced") { changes in
            changes.dropFirst(seen).contains { if case .removedAll = $0 { true } else { $0 == .gap } }
        }
        for key in keys {
            if case .some(.some) = await broken.attempt("load", { try await b.cacher.load(param: key) }) {
                broken.note("load returns a record after another user's removeAll")
            }
        }
    }
}
