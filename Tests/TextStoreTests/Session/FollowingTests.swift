import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import StorePlatform
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// Stores that follow the texts that other stores of their session switch.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct FollowingTests {
    let bench: Bench
    /// The store that follows; it has no server.
    let store: TextStore

    init() throws {
        bench = try Bench()
        store = try bench.store()
    }

    private var lockPath: URL {
        URL(filePath: store.shelf.manifestFile.directory.path(of: SessionLock.fileName), directoryHint: .notDirectory)
    }

    /// Registers texts without a server.
    private func register(_ identifiers: String...) async throws {
        try await store.register(identifiers.map { TextSource(identifier: $0) })
    }

    /// Makes a store of another process, which saves texts without a server.
    private func other() async throws -> Shelf {
        let other = try bench.store()
        try await other.register([TextSource(identifier: "eula"), TextSource(identifier: "privacy")])
        return other.shelf
    }

    private func switches(_ shelf: Shelf, _ identifier: String, _ version: Int) async throws {
        let record = record(identifier, "\(version).0.0", "\(identifier) \(version)")
        #expect(try await shelf.store("text/" + identifier, [record], isActivated: true) != nil)
    }

    /// Observes a text that another store has saved.
    private func observed() async throws -> (Shelf, Shown) {
        let other = try await other()
        try await switches(other, "eula", 1)
        try await register("eula", "privacy")
        let shown = Shown(store, "eula")
        try await shown.wait(for: ["eula 1"])
        return (other, shown)
    }

    @Test func `D9: a text that another store switches or deletes is published`() async throws {
        let (other, shown) = try await observed()
        // Watched before the change, so this tests the notice and not the first pass.
        try await until { await store.shelf.isFollowing }
        for version in 2...5 {
            try await switches(other, "eula", version)
            try await shown.wait(for: (1...version).map { "eula \($0)" })
        }
        _ = try await other.clear()
        try await shown.wait(for: (1...5).map { "eula \($0)" } + ["nothing"])
        try await switches(other, "eula", 6)
        try await shown.wait(for: (1...5).map { "eula \($0)" } + ["nothing", "eula 6"])
        #expect(bench.events.faults.isEmpty)
    }

    @Test func `D9: a set that another store activates later is published then`() async throws {
        let (other, shown) = try await observed()
        try await until { await store.shelf.isFollowing }
        _ = try await other.store("text/eula", [record("eula", "2.0.0", "eula 2")], isActivated: false)
        try await until { await store.shelf.pointer.pending.count == 1 }
        #expect(shown.texts == ["eula 1"])
        #expect(try await other.activatePending().hasSwitched)
        try await shown.wait(for: ["eula 1", "eula 2"])
    }

    @Test func `D9: a waiting text that another store has fetched as well is verified, and not fetched again meanwhile`() async throws {
        let gate = WatchedState(true), seen = WatchedState(0)
        bench.serve(eula: 2, privacy: 2)
        let policy = TextStorePolicy(activation: .manually)
        let store = try await bench.started(
            policy: policy,
            verify: { verification in
                guard verification.identifier == "eula" else { return }
                seen.update { $0 += 1 }
                try await gate.wait { $0 ? () : nil }
            })
        #expect(try await store.text(for: "eula", awaiting: patient).fallbackReason?.code == .notActivated)
        let shown = Shown(store, "eula")
        defer { shown.task.cancel() }
        try await until { await store.shelf.isFollowing }
        let other = try bench.store(policy: policy), known = seen.current
        try await other.register(TextSource(identifier: "eula"))
        gate.update { $0 = false }
        let same = record("eula", "2.0.0", "Remote terms 2")
        #expect(try await other.shelf.store("text/eula", [same], isActivated: false) != nil)
        try await seen.wait { $0 > known ? () : nil }
        gate.update { $0 = true }
        try await store.session.wait { $0.held["eula"]?.waiting == nil ? nil : () }
        _ = try await store.text(for: "eula", awaiting: patient)
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }

    @Test func `D9: an unversioned text that another store has checked is not fetched again, however soon it expires`() async throws {
        bench.serve("notes", "Notes 1")
        let policy = TextStorePolicy(textExpiry: .zero)
        let store = try bench.store(policy: policy), other = try bench.store(policy: policy)
        try await store.register(bench.notes)
        let shown = Shown(store, "notes")
        defer { shown.task.cancel() }
        try await shown.waitForLast("Notes 1")
        try await until { await store.shelf.isFollowing }
        try await store.session.wait { $0.flights.isEmpty ? () : nil }
        try await other.register(bench.notes)
        let known = bench.origin.requests(to: "/notes.txt").count
        for _ in 0..<3 {
            bench.time.advance(by: .seconds(1))
            let now = bench.time.date
            _ = try await other.text(for: "notes", awaiting: patient)
            try await store.session.wait { $0.held["notes"]?.checked == now ? () : nil }
        }
        #expect(bench.origin.requests(to: "/notes.txt").count == known + 3)
    }

    @Test func `D9: an unchanged text is not published again`() async throws {
        let (other, eula) = try await observed()
        let privacy = Shown(store, "privacy")
        for version in 1...3 {
            try await switches(other, "eula", 1)
            try await switches(other, "privacy", version)
            try await privacy.waitForLast("privacy \(version)")
        }
        #expect(eula.texts == ["eula 1"])
    }

    @Test func `D9: a store does not read its own changes again`() async throws {
        let other = try await other()
        try await register("eula")
        let shown = Shown(store, "eula")
        try await until { await store.shelf.isFollowing }
        try await until { !store.shelf.follower.state.withLock { $0.isScheduled } }
        // From here on, the store runs no pass by itself.
        store.shelf.follower.state.withLock { $0.isScheduled = true }
        try await switches(store.shelf, "eula", 1)
        try await shown.waitForLast("eula 1")
        #expect(try await store.shelf.follow {}?.isForeign == false)
        try await switches(other, "eula", 2)
        #expect(try await store.shelf.follow {}?.isForeign == true)
    }

    @Test func `D9: a store follows only while its texts are observed`() async throws {
        let other = try await other()
        try await switches(other, "eula", 1)
        try await register("eula")
        #expect(line(try await store.text(for: "eula")) == "1.0.0 cache: eula 1")
        #expect(await !store.shelf.isFollowing)
        let first = Shown(store, "eula"), second = Shown(store, "eula")
        try await until { await store.shelf.isFollowing }
        first.task.cancel()
        try await switches(other, "eula", 2)
        try await second.wait(for: ["eula 1", "eula 2"])
        second.task.cancel()
        try await until { await !store.shelf.isFollowing }
        try await switches(other, "eula", 3)
        // The next observer receives the changes that were made meanwhile.
        try await Shown(store, "eula").waitForLast("eula 3")
    }

    @Test func `D9: an observer that precedes the registration and the directory receives the first text`() async throws {
        let shown = Shown(store, "eula")
        try await until { store.session.read { !$0.observers.isEmpty } }
        try await register("eula")
        try await until { await store.shelf.isFollowing }
        try await switches(try await other(), "eula", 1)
        try await shown.waitForLast("eula 1")
    }

    @Test func `D9: a directory that is removed and made again is followed`() async throws {
        let (_, shown) = try await observed()
        for version in 2...3 {
            try await until { await store.shelf.isFollowing }
            try removeFollowed(lockPath.deletingLastPathComponent())
            // Made again by the next save, or by the follower if that is earlier.
            try await switches(try await other(), "eula", version)
            try await shown.waitForLast("eula \(version)")
        }
        try await until { await store.shelf.isFollowing }
        try removeFollowed(lockPath.deletingLastPathComponent())
        // Made again although no other store writes.
        try await until { FileManager.default.fileExists(atPath: lockPath.path(percentEncoded: false)) }
        try await switches(try await other(), "eula", 4)
        try await shown.waitForLast("eula 4")
    }

    @Test func `D9: a replaced lock file is followed`() async throws {
        let (other, shown) = try await observed()
        for version in 2...4 {
            try await until { await store.shelf.isFollowing }
            let old = try #require(try FileStatus.of(path: lockPath.path(percentEncoded: false))).inode
            try Data().write(to: lockPath, options: .atomic)
            try await until { store.shelf.follower.state.withLock { $0.inode.map { $0 != old } ?? false } }
            try await switches(other, "eula", version)
            try await shown.waitForLast("eula \(version)")
        }
    }

    @Test func `D9: a directory that cannot be followed is reported once and followed when it can be`() async throws {
        try await register("eula")
        let state = bench.place.file("state")
        try Data().write(to: state)
        let shown = Shown(store, "eula")
        try await until { store.shelf.follower.state.withLock { $0.backOff ?? .zero >= .seconds(2) } }
        #expect(bench.events.faults.map(\.code) == [.fileSystem])
        try FileManager.default.removeItem(at: state)
        try await until { await store.shelf.isFollowing }
        try await switches(try await other(), "eula", 1)
        try await shown.waitForLast("eula 1")
        #expect(bench.events.faults.count == 1)
    }

    @Test func `D9, T13: an acceptance by another store counts at the next question`() async throws {
        let other = try bench.store()
        for version in 1...3 {
            let text = VersionedText(identifier: "eula", text: "eula \(version)", version: SemanticVersion("\(version).0.0"))
            #expect(await store.needsAcceptance(of: text))
            try await other.save(Acceptance(of: text, at: bench.time.date))
            #expect(await !store.needsAcceptance(of: text))
            #expect(try await store.acceptance(of: "eula")?.version == text.version)
        }
        // A lost file loses no acceptance that the store knows.
        #expect(try bench.place.damage("accepted") == 2)
        #expect(try await store.acceptance(of: "eula")?.version?.description == "3.0.0")
    }
}

/// The texts that an observer of a store has seen.
private final class Shown: Sendable {
    private let all = WatchedState<[String]>([])
    let task: Task<Void, Never>

    init(_ store: TextStore, _ identifier: String) {
        task = Task { [all] in
            for await state in store.publish(identifier) {
                let text = state.content?.text
                // Before the first text, an observer sees that none is available.
                all.update { if text != nil || !$0.isEmpty { $0.append(text ?? "nothing") } }
            }
        }
    }

    deinit { task.cancel() }

    var texts: [String] { all.current }

    func wait(for texts: [String]) async throws { try await until("\(texts)") { all.current == texts } }

    func waitForLast(_ text: String) async throws { try await until(text) { all.current.last == text } }
}

#if os(macOS) || os(Linux)

/// Processes that follow the texts of another one.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct FollowingProcessTests {
    let bench: Bench
    let program: String

    init() throws {
        bench = try Bench()
        program = try ChildProcess.path(of: "TextCrashWriter")
    }

    /// Starts a process that saves versions from a first one on, or runs in another mode.
    private func start(_ first: Int = 1, _ count: Int = 0, step: Int? = nil, _ mode: String = "") throws -> ChildProcess {
        let path = bench.place.url.path(percentEncoded: false)
        return try ChildProcess(program, [path, "-", "\(first)", step.map { "\($0)" } ?? "-", "one", "1", "\(count)", mode])
    }

    @Test func `D9: a switch, a deletion and an acceptance by another process arrive`() async throws {
        let store = try bench.storeOfWriters()
        try await store.register(TextSource(identifier: "one"))
        let versions = WatchedState<[UInt64?]>([])
        let task = Task {
            for await state in store.publish("one") {
                versions.update { $0.append(state.content?.version.flatMap { UInt64("\($0.major)") }) }
            }
        }
        defer { task.cancel() }
        try await until { await store.shelf.isFollowing }
        #expect(try start(1, 3).wait())
        try await until { versions.current.last == 3 }
        #expect(try start(1, 0, "clearing").wait())
        try await until { versions.current.last == .some(nil) }
        #expect(try start(4, 1).wait())
        try await until { versions.current.last == 4 }
        let text = try await store.text(for: "one")
        #expect(await store.needsAcceptance(of: text))
        #expect(try start(4, 1, "accepting").wait())
        #expect(await !store.needsAcceptance(of: text))
    }

    /// A switch writes the manifest and a record, each created, written, and renamed, and two copies of pointer and floors.
    @Test(arguments: part(of: 1...16, each: 3))
    func `D9: a switch by a process that is killed at any step is published if a start finds it`(step: Int) async throws {
        let child = try start(1, 0, "following")
        let first = try start(1, 1)
        while first.readLine() != nil {}
        while let line = child.readLine(), line != "1" {}
        let second = try start(2, 1, step: step)
        while second.readLine() != nil {}
        let store = try bench.storeOfWriters()
        try await store.register(TextSource(identifier: "one"))
        guard try await store.text(for: "one").version?.description == "2.0.0" else { return }
        #expect(child.readLine() == "2")
    }

    #if os(Linux)
    @Test func `D6, D9: an idle process that follows a session is not woken and holds no lock`() async throws {
        #expect(try start(1, 1).wait())
        let child = try start(1, 0, "following")
        while let line = child.readLine(), line != "1" {}
        #expect(try start(2, 1).wait())
        #expect(child.readLine() == "2")
        // A process that does not follow: the runtime wakes each process about once a second.
        let control = try start(1, 0, "resting")
        #expect(control.readLine() == "2")
        var (woken, wokenControl) = try await child.wakes(beside: control)
        // Again, because the threads of the pool may end late on a busy machine; what wakes the process for good does so each time.
        for _ in 0..<4 where woken > wokenControl + 2 { (woken, wokenControl) = try await child.wakes(beside: control) }
        #expect(woken <= wokenControl + 2, "\(woken) switches, and \(wokenControl) of a process that does not follow")
        #expect(try !child.holdsLock())
        #expect(try start(3, 1).wait())
        #expect(child.readLine() == "3")
    }
    #endif
}

#endif

extension Shelf { fileprivate var isFollowing: Bool { follower.hasWatch } }
