import Foundation
import StoreCore
import StoreFiles
import Testing
import Trials
@testable import SyncEngine

/// S26: lists that are requested as changes since a token.
struct DeltaTests {
    /// An origin with numbered states, and a record of what is requested of it.
    private final class Origin: Sendable {
        struct State: Sendable {
            /// The files of each state; the token of a state is its number.
            var states: [[String: String]] = [[:]]
            var requests: [String] = []
            var expired: Set<String> = []
            /// Replaces the answer for a token.
            var answer: (@Sendable (String) -> ListChanges<ListedFile>?)?
        }

        let state = Lock(State())

        func publish(_ files: [String: String]) { state.withLock { $0.states.append(files) } }
        func takeRequests() -> [String] {
            state.withLock { state in
                defer { state.requests = [] }
                return state.requests
            }
        }

        static func file(_ path: String, _ text: String) -> ListedFile {
            ListedFile(path: path, sha256: digest(text), byteCount: Int64(text.utf8.count))
        }

        func full() -> (list: ListedSource<ListedFile>, token: String) {
            state.withLock { state in
                state.requests.append("full")
                let files = (state.states.last ?? [:]).map { Self.file($0, $1) }.sorted { $0.path < $1.path }
                return (ListedSource(files, expectedCount: files.count), "\(state.states.count - 1)")
            }
        }

        func changes(since token: String) -> ListChanges<ListedFile>? {
            state.withLock { state in
                state.requests.append("since \(token)")
                if let answer = state.answer { return answer(token) }
                guard !state.expired.contains(token), let number = Int(token), number < state.states.count else { return nil }
                let (before, after) = (state.states[number], state.states.last ?? [:])
                var changes = after.filter { before[$0.key] != $0.value }.map { ListChanges.Change.set(Self.file($0, $1)) }
                changes += before.keys.filter { after[$0] == nil }.map { .removed(PathKey($0)) }
                return ListChanges(changes, token: "\(state.states.count - 1)", since: token)
            }
        }
    }

    private let bench: DirectoryBench
    private let place: TemporaryDirectory
    private let origin = Origin()
    private var file: URL { place.url.appending(path: "list") }

    init() throws {
        bench = try DirectoryBench()
        place = try TemporaryDirectory()
    }

    /// A synchronizer with the changes of the origin, and a whole list that is given or the origin's.
    private func synchronizer<Full: SourceList<ListedFile>>(
        every interval: Int = 20, duplicates: DuplicateKeys = .refuse,
        _ full: @escaping @Sendable () async throws -> (list: Full, token: String)
    ) -> OneWaySynchronizer<DirectoryTarget<DeltaSource<Full>, BenchTransfer>> {
        let target = DirectoryTarget(directory: bench.url, transfer: BenchTransfer(bench: bench), durability: .crash) { [origin, file] in
            DeltaSource(saving: file, fullEvery: interval, full: full) { origin.changes(since: $0) }
        }
        let options = SyncOptions(
            stopsOnError: false, removalLimit: .unlimited, updateLimit: .unlimited, retry: .never, duplicates: duplicates)
        return OneWaySynchronizer(processor: target, options: options)
    }

    private func synchronizer(every interval: Int = 20) -> OneWaySynchronizer<DirectoryTarget<some SourceList<ListedFile>, BenchTransfer>> {
        synchronizer(every: interval) { [origin] in origin.full() }
    }

    @discardableResult
    private func sync(_ files: [String: String], every interval: Int = 20) async throws -> SyncReport {
        origin.publish(files)
        bench.origin.withLock { $0.contents = files }
        let report = try await synchronizer(every: interval).sync()
        #expect(try bench.files == files)
        return report
    }

    @Test func `S26: after a whole list, passes request the changes since its token`() async throws {
        try await sync(["a": "1", "b": "2"])
        #expect(origin.takeRequests() == ["full"])
        let report = try await sync(["a": "1", "c": "3", "b": "2 new"])
        #expect(origin.takeRequests() == ["since 1"])
        #expect((report.addedCount, report.updatedCount, report.unchangedCount, report.sourceCount) == (1, 1, 1, 3))
        #expect(try await sync(["a": "1"]).removedCount == 2)
        #expect(origin.takeRequests() == ["since 2"])
    }

    @Test func `S26: the first pass creates a missing directory of the list`() async throws {
        origin.publish(["a": "1"])
        bench.origin.withLock { $0.contents = ["a": "1"] }
        let missing = place.url.appending(path: "state/sync/list")
        let target = DirectoryTarget(directory: bench.url, transfer: BenchTransfer(bench: bench)) { [origin] in
            DeltaSource(saving: missing, full: { origin.full() }) { origin.changes(since: $0) }
        }
        for _ in 0..<2 { try await OneWaySynchronizer(processor: target).sync() }
        #expect(origin.takeRequests() == ["full", "since 1"])
    }

    @Test func `S26: a list with an item of more than a mebibyte is saved like any other`() async throws {
        origin.publish(["a": "1"])
        bench.origin.withLock { $0.contents = ["a": "1"] }
        for expected in ["full", "since 1"] {
            let synchronizer = synchronizer { [origin] in
                var (list, token) = origin.full()
                for index in list.items.indices { list.items[index].url = String(repeating: "x", count: 2 << 20) }
                return (list, token)
            }
            try await synchronizer.sync()
            #expect(origin.takeRequests() == [expected])
        }
    }

    @Test func `S26: an expired token means a whole list, and so does every pass of a number`() async throws {
        try await sync(["a": "1"])
        origin.state.withLock { $0.expired = ["1"] }
        try await sync(["b": "1"])
        #expect(origin.takeRequests() == ["full", "since 1", "full"])
        for number in 0..<6 { try await sync(["a": "\(number)"], every: 3) }
        #expect(origin.takeRequests() == ["since 2", "since 3", "full", "since 5", "since 6", "full"])
        for number in 0..<2 { try await sync(["b": "\(number)"], every: 0) }
        #expect(origin.takeRequests() == ["full", "full"])
    }

    @Test func `S26: the token is saved only after a pass has applied its changes`() async throws {
        try await sync(["a": "1"])
        let files = ["a": "1", "b": "2", "c": "3"]
        origin.publish(files)
        bench.origin.withLock { origin in
            origin.contents = files
            origin.onTransfer = { if $0 == "b" { throw Trouble.lasting } }
        }
        _ = origin.takeRequests()
        #expect(await syncError { try await synchronizer().sync() }?.code == .incomplete)
        // A dry run saves nothing either.
        #expect(try await synchronizer().plan().additions.map(\.item.path) == ["b"])
        bench.origin.withLock { $0.onTransfer = nil }
        #expect(try await synchronizer().sync().addedCount == 1)
        #expect(try await synchronizer().sync().unchangedCount == 3)
        #expect(origin.takeRequests() == ["since 1", "since 1", "since 1", "since 2"])
    }

    @Test func `S26: a saved list of another version is not overwritten, and the pass fails at its end with its path`() async throws {
        let bytes = Data(SealedFile("SHlistof", version: 2, temporaryKind: "list").encode(Array("another format".utf8)))
        try bytes.write(to: file)
        origin.publish(["a": "1"])
        bench.origin.withLock { $0.contents = ["a": "1"] }
        for _ in 0..<2 {
            let error = await syncError { try await synchronizer().sync() }
            #expect(error?.stage == .end && error?.description.contains("/list has version 2") == true)
            #expect(try bench.files == ["a": "1"])
            #expect(try Data(contentsOf: file) == bytes)
        }
        #expect(origin.takeRequests() == ["full", "full"])
        try FileManager.default.removeItem(at: file)
        try await synchronizer().sync()
        try await synchronizer().sync()
        #expect(origin.takeRequests() == ["full", "since 1"])
    }

    @Test func `S2, S26: a whole list that was cut saves no token`() async throws {
        let list = PagedSource { (_: Int?) in PagedSource.Step([Origin.file("a", "1")], then: .cut) }
        #expect(await syncError { try await synchronizer { (list, token: "1") }.sync() }?.code == .incompleteList)
        #expect(!FileManager.default.fileExists(atPath: file.path(percentEncoded: false)))
    }

    // The answer of the origin to the token of {a, b}; the files after it.
    @Test(
        arguments: [
            ("removes what was never there", [.removed("x"), .removed("a/b")], ["a": "1", "b": "2"]),
            (
                "comes twice", [.set(Origin.file("c", "3")), .removed("a"), .set(Origin.file("c", "3")), .removed("a")],
                ["b": "2", "c": "3"]
            ),
            ("removes and adds", [.removed("a"), .set(Origin.file("a", "3"))], ["a": "3", "b": "2"]),
            ("adds and removes", [.set(Origin.file("c", "3")), .removed("c")], ["a": "1", "b": "2"]),
            ("is empty", [], ["a": "1", "b": "2"]),
        ] as [(String, [ListChanges<ListedFile>.Change], [String: String])])
    func `S26: changes that do not fit do no harm`(
        what: String, changes: [ListChanges<ListedFile>.Change], after: [String: String]
    ) async throws {
        try await sync(["a": "1", "b": "2"])
        bench.origin.withLock { $0.contents = after }
        origin.state.withLock { $0.answer = { _ in ListChanges(changes, token: "next") } }
        // The same changes arrive twice, with two tokens.
        for _ in 0..<2 {
            try await synchronizer().sync()
            #expect(try bench.files == after)
        }
        #expect(origin.takeRequests() == ["full", "since 1", "since next"])
    }

    @Test func `S26: changes since another token are not applied, and the whole list is requested`() async throws {
        try await sync(["a": "1"])
        origin.state.withLock { $0.answer = { _ in ListChanges([.removed("a")], token: "7", since: "6") } }
        try await sync(["a": "1", "b": "2"])
        #expect(origin.takeRequests() == ["full", "since 1", "full"])
    }

    @Test(arguments: [DuplicateKeys.keepFirst, .keepLast])
    func `S8, S26: a change of a key that the whole list repeats concerns all items with the key`(duplicates: DuplicateKeys) async throws {
        let files = ["a", "b", "c"].map { Origin.file($0, "1") }
        let synchronizer = synchronizer(duplicates: duplicates) { (ListedSource(files + files), token: "1") }
        bench.origin.withLock { $0.contents = ["a": "1", "b": "1", "c": "1"] }
        #expect(try await synchronizer.sync().duplicates.count == 3)
        bench.origin.withLock { $0.contents = ["a": "2", "c": "1"] }
        origin.state.withLock { $0.answer = { _ in ListChanges([.set(Origin.file("a", "2")), .removed("b")], token: "2") } }
        #expect(try await synchronizer.sync().duplicates.map(\.description) == ["c"])
        #expect(try bench.files == ["a": "2", "c": "1"])
    }

    /// A list whose last page has a function of its own.
    private struct Noting: SourceList {
        var list: ListedSource<ListedFile>
        var whenApplied: @Sendable () async throws -> Void

        func makeReader() -> Reader { Reader(inner: list.makeReader(), whenApplied: whenApplied) }

        struct Reader: SourceReader {
            var inner: ListedSource<ListedFile>.Reader
            var whenApplied: @Sendable () async throws -> Void

            mutating func next() async throws -> SourcePage<ListedFile>? {
                var page = inner.next()
                if page?.end != nil { page?.whenApplied = whenApplied }
                return page
            }
        }
    }

    @Test func `S26: the function of the whole list is called after the pass, and again if it fails`() async throws {
        let calls = Lock(0)
        let synchronizer = synchronizer { [origin] in
            let (list, token) = origin.full()
            let noting = Noting(list: list) {
                let count = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if count == 1 { throw CocoaError(.fileWriteUnknown) }
            }
            return (noting, token: token)
        }
        origin.publish(["a": "1"])
        bench.origin.withLock { $0.contents = ["a": "1"] }
        #expect(await syncError { try await synchronizer.sync() }?.stage == .end)
        for _ in 0..<2 { try await synchronizer.sync() }
        #expect(calls.withLock { $0 } == 2)
        #expect(origin.takeRequests() == ["full", "full", "since 1"])
    }

    @Test func `S3, S26: changes that remove everything meet the safety gate`() async throws {
        try await sync(["a": "1", "b": "2"])
        origin.publish([:])
        #expect(await syncError { try await synchronizer().sync() }?.code == .emptySource)
        #expect(try bench.files.count == 2)
    }

    @Test func `S26: a damaged file of the list means a whole list`() async throws {
        try await sync(["a": "1", "b": "2"])
        let whole = try Data(contentsOf: file)
        for length in positions(whole.indices, every: 3, and: [whole.count - 1]) {
            try whole.prefix(length).write(to: file)
            let saved = await SavedList<ListedFile>(reading: file)
            // Without its last line break, a line may have been cut.
            #expect(saved == nil || length == whole.count - 1, "\(length)")
        }
        // A name, a digest or the token with another byte is text like any other.
        for place in positions(whole.indices, every: 3) {
            var other = whole
            other[place] ^= 1
            try other.write(to: file)
            let saved = await SavedList<ListedFile>(reading: file)
            #expect(saved == nil, "\(place)")
        }
        try whole.prefix(whole.count / 2).write(to: file)
        _ = origin.takeRequests()
        try await sync(["a": "1"])
        #expect(origin.takeRequests() == ["full"])
    }

    @Test func `S26: random changes give the list that the origin has`() {
        let first = UInt64.random(in: 1...1_000_000)
        for round in seeds(300 as UInt64, quick: 60) {
            var chance = SplitMix(seed: first + round)
            var model: [String: String] = [:]
            var saved = SavedList<ListedFile>(token: "0", passes: 0, items: [])
            for number in 1...10 {
                var changes: [ListChanges<ListedFile>.Change] = []
                for _ in 0..<Int.random(in: 0...8, using: &chance) {
                    let path = ["a", "b", "c", "d/e", "d/f"].randomElement(using: &chance) ?? "a"
                    let text: String? = Bool.random(using: &chance) ? "\(Int.random(in: 0..<3, using: &chance))" : nil
                    model[path] = text
                    changes.append(text.map { .set(Origin.file(path, $0)) } ?? .removed(PathKey(path)))
                }
                saved.apply(ListChanges(changes, token: "\(number)"))
                #expect(Set(saved.items) == Set(model.map { Origin.file($0, $1) }), "seed \(first + round)")
                #expect(saved.items.count == model.count, "seed \(first + round)")
            }
        }
    }
}
