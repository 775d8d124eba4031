import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials
@testable import StoreCore
@testable import StoreFiles
@testable import StorePlatform

#if os(macOS) || os(Linux)

/// Tests D1 to D6 with real processes that are killed or stopped.
@Suite(.serialized)
struct SharedProcessTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func start(_ mode: String, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess("CrashWriter", ["share", place.directory.path, mode] + arguments)
    }

    @Test func `D3: additions of several processes are never lost, even if one of them is killed`() async throws {
        let keys = 3
        let workers = 3
        var acknowledged = 0
        var kills = 0
        for round in 0..<rounds(6, quick: 3) {
            let children = try (0..<workers).map { _ in try start("count", "\(keys)", "\(round == 0 ? 100 : 1_000_000)") }
            var lines = 0
            for child in children where round > 0 {
                for _ in 0..<Int.random(in: 1...60) {
                    guard try await child.nextLine() != nil else { break }
                    lines += 1
                }
                for _ in 0..<Int.random(in: 0...2000) { _ = SHA256.digest(of: []) }
                child.kill()
                kills += 1
            }
            for child in children {
                while let line = try await child.nextLine() { if line != "done" { lines += 1 } }
                _ = try await child.ending()
            }
            // The first line of each says that it has begun.
            acknowledged += lines - workers
        }
        var sum = 0
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        for key in 0..<keys { sum += try await cacher.load(param: key)?.content ?? 0 }
        // A process may be killed between its save and its word of it.
        #expect(sum >= acknowledged && sum <= acknowledged + kills, "\(sum) of \(acknowledged), with \(kills) kills")
    }

    /// The changes of each of two processes, which exceed the log after ``addChanges(_:in:_:)`` has filled most of it.
    private static let excess = max(150, rounds(5_000, quick: 150))

    @Test func `D1, D4: more changes than the log holds are all known, and a process stopped meanwhile is told of a gap and the next`()
        async throws
    {
        let reader = try start("observe")
        #expect(try await reader.nextLine() == "observing")
        reader.send(SIGSTOP)
        try await addChanges(1_900, in: place)
        let user = SharedUser(place.url)
        try await user.attach()
        let children = try (0..<2).map { _ in try start("fill", "\(Self.excess)") }
        for child in children { #expect(try await child.ending() == 0) }
        reader.send(SIGCONT)
        try await until { try user.cacher.position.number == changeNumbers(in: place)?.head ?? 0 }
        // Every key is known to have changed.
        #expect(user.gaps > 0 || Set(user.keys) == Set(0..<Self.excess))
        var lines: [String] = []
        while let line = try await reader.nextLine() {
            lines.append(line)
            if line == "gap" { break }
        }
        // Changes that it received before it was stopped may come first, and no other ones.
        #expect(lines.last == "gap" && lines.count < Self.excess)
        #expect(try await start("save", "77777", "1").ending() == 0)
        #expect(try await reader.nextLine() == "changed 77777")
    }

    // MARK: Leases

    @Test func `D5: only one of several processes fetches a missing key`() async throws {
        let log = place.file("log").path(percentEncoded: false)
        for round in 1...rounds(10, quick: 3) {
            let children = try (0..<4).map { _ in try start("race", "\(round)", log) }
            for child in children { #expect(try await child.ending() == 0) }
            let fetches = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").count
            #expect(fetches == round)
        }
    }

    @Test func `D5: when a holder is killed, another process takes over at once`() async throws {
        for _ in 0..<rounds(5, quick: 2) {
            let holder = try start("lease", "1", "100000")
            #expect(try await holder.nextLine() == "granted")
            let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
            let waiter = Task { try await granted { try await cacher.lease(1, for: .seconds(100_000)) } }
            try await until { cacher.shared?.leaseEvents.current.waited.count == 1 }
            holder.kill()
            #expect(try await waiter.value() != nil)
        }
    }

    @Test func `D5: a holder that is stopped keeps its lease for its duration`() async throws {
        let holder = try start("lease", "1", "1")
        #expect(try await holder.nextLine() == "granted")
        holder.send(SIGSTOP)
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let waiter = Task { try await granted { try await cacher.lease(1, for: .seconds(100_000)) } }
        #expect(try await waiter.value() != nil)
        holder.send(SIGCONT)
    }

    @Test func `D3, D5: a holder that was stopped for longer than its lease does not save over its successor`() async throws {
        let holder = try start("fetch", "1", "7")
        #expect(try await holder.nextLine() == "fetching")
        holder.send(SIGSTOP)
        let store = Store(
            cacher: TieredCacher(over: FileCacher<Int, Int>(directory: place.url, sharing: .processes)),
            fetcher: ScriptedFetcher<Int, Int>.counting(), policy: StorePolicy(leaseDuration: .seconds(1)))
        #expect(try await Task { try await store[1].requireData() }.value() == 1)
        await store[1].update(50)
        try holder.write("go on")
        holder.send(SIGCONT)
        #expect(try await holder.nextLine()?.hasPrefix("got") == true)
        #expect(try await holder.nextLine() == "kept 50")
        #expect(try await FileCacher<Int, Int>(directory: place.url).load(param: 1)?.content == 50)
        #expect(try await store[1].requireData() == 50)
    }

    @Test func `D5: a failure reaches the waiters in another process`() async throws {
        let holder = try start("lease", "1", "100000", "fail")
        #expect(try await holder.nextLine() == "granted")
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let waiter = Task { try await cacher.lease(1, for: .seconds(100_000)) }
        try await until("this process waits") { cacher.shared?.leaseEvents.current.waited.count == 1 }
        try holder.write("fail")
        let failure = try #require(try await waiter.value().failure)
        #expect(failure.failureKind == .permanent && failure.message == "out of order" && failure.retryAfter == .seconds(7))
    }

    @Test func `D8: while a process is stopped in the middle of a write, a store continues, and saves later`() async throws {
        let writer = try start("stop-in-write")
        #expect(try await writer.nextLine() == "writing")
        writer.send(SIGSTOP)
        let events = EventLog()
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: ScriptedFetcher<Int, Int>.counting(), onEvent: events.append)
        #expect(try await store[1].requireData() == 1)
        await store[1].update(5)
        #expect(try await store[1].requireData() == 5)
        try await events.first("fault follow")
        #expect(events.names.count { $0 == "fault follow" } == 1)
        writer.send(SIGCONT)
        try writer.write("go on")
        #expect(try await writer.nextLine() == "written")
        // The thread that waits for the lock gives it back at once.
        try await until { (try? await store.waitUntilSaved()) != nil }
        #expect(try await FileCacher<Int, Int>(directory: place.url).load(param: 1)?.content == 5)
    }

    // MARK: Idle

    #if os(Linux)
    @Test func `D6: an idle process that follows a directory is not woken and holds no lock`() async throws {
        let child = try start("observe")
        let user = SharedUser(place.url)
        #expect(try await child.nextLine() == "observing")
        try await user.cacher.save(record(1), param: 1)
        #expect(try await child.nextLine() == "changed 1")
        // A process that does not follow: the runtime wakes each process about once a second.
        let resting = try start("rest")
        #expect(try await resting.nextLine() == "resting")
        let (woken, wokenControl) = try await child.wakes(beside: resting)
        #expect(woken <= wokenControl + 2, "\(woken) switches, and \(wokenControl) of a process that does not follow")
        #expect(try !child.holdsLock())
        try await user.cacher.save(record(2), param: 2)
        #expect(try await child.nextLine() == "changed 2")
    }

    @Test func `D8: beyond the limit of watches, changes arrive as soon as a watch is possible`() async throws {
        let user = SharedUser(place.url)
        try await user.cacher.save(record(0), param: 0)
        // The limit is that of the user, and other processes need watches meanwhile: only a namespace has a limit of its own.
        let script = #"echo 4 >/proc/sys/user/max_inotify_instances; exec "$@""#
        let program = try ChildProcess.path(of: "CrashWriter")
        let inNamespace = ["-Ur", "/bin/sh", "-c", script, "sh", program, "share", place.directory.path, "observe-beyond-limit"]
        let child = try Self.hasNamespaces ? ChildProcess("/usr/bin/unshare", inNamespace) : start("observe-beyond-limit")
        #expect(try await child.nextLine() == "fault changesLost")
        #expect(try await child.nextLine() == "observing")
        try await user.cacher.save(record(1), param: 1)
        #expect(try await child.nextLine() == "changed 1")
    }

    /// Starts a process that may watch no file until a line is written to it.
    private func startWithoutWatches(_ mode: String, _ arguments: String...) throws -> ChildProcess {
        let script = """
            echo 0 >/proc/sys/user/max_inotify_watches
            "$@" </dev/null &
            read line
            echo 1000 >/proc/sys/user/max_inotify_watches
            wait
            """
        // The limit is that of a user namespace. The end of the process namespace ends the program too.
        let shell = ["-Urpf", "--kill-child", "/bin/sh", "-c", script, "sh", try ChildProcess.path(of: "CrashWriter")]
        return try ChildProcess("/usr/bin/unshare", shell + ["share", place.directory.path, mode] + arguments)
    }

    /// Whether the system permits a namespace; some containers do not.
    static let hasNamespaces =
        (try? ChildProcess.output(of: "/usr/bin/unshare", ["-Urpf", "--kill-child", "true"], showsErrors: false)) != nil

    @Test(.enabled(if: hasNamespaces)) func `D8: without a watch left, changes are delivered as soon as there is one`() async throws {
        let user = SharedUser(place.url)
        try await user.cacher.save(record(0), param: 0)
        let child = try startWithoutWatches("observe")
        #expect(try await child.nextLine() == "fault changesLost")
        #expect(try await child.nextLine() == "observing")
        try await user.cacher.save(record(1), param: 1)
        try child.write("raise the limit")
        // No second fault, and the change made before the watch.
        #expect(try await child.nextLine() == "changed 1")
        try await user.cacher.save(record(2), param: 2)
        #expect(try await child.nextLine() == "changed 2")
    }

    @Test(.enabled(if: hasNamespaces)) func `D5: without a watch left, a waiter gets the lease when it ends`() async throws {
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let lease = try #require(try await granted { try await cacher.lease(1, for: .seconds(100_000)) })
        let child = try startWithoutWatches("wait", "1")
        #expect(try await child.nextLine() == "waiting")
        lease.end(.saved)
        #expect(try await child.nextLine() == "granted")
    }
    #endif
}

#endif
