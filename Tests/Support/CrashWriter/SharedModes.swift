import Foundation
import StoreCore
import StorePlatform
internal import StoreFiles
import Trials

/// The modes in which the process shares its directory with others.
enum SharedModes {
    static func run(_ mode: String, _ directory: URL, _ arguments: [String]) async throws {
        let cacher = FileCacher<Int, Int>(directory: directory, sharing: .processes) { say("fault \($0.kind.rawValue)") }
        func number(_ index: Int) -> Int { arguments.dropFirst(index).first.flatMap { Int($0) } ?? 0 }
        switch mode {
        case "count": try await count(cacher, keys: number(0), rounds: number(1))
        case "fill": try await fill(cacher, count: number(0))
        case "save":
            try await cacher.save(record(number(1)), param: number(0))
            say("saved")
        case "stop-in-write":
            try await cacher.save(record(1), param: 0)
            let path = directory.appending(path: ".sharing").path(percentEncoded: false)
            guard let folder = try DirectoryHandle(opening: Directory(path: path)) else { return }
            let lock = try WritableFile("lock", in: folder)
            if try lock.lock() { say("writing") }
            _ = readLine()
            lock.unlock()
            say("written")
        case "full": try await fillDisk(cacher, FileCacher(directory: directory, sharing: .processes))
        case "full-before":
            // No process has shared the directory, so it has no list of changes.
            try await fillUp(FileCacher(directory: directory))
            try await cacher.removeAll()
            say(try await cacher.keys() == [] ? "removed all" : "kept some")
        case "nobody": try await useUnwritable(directory)
        case "lease": try await lease(cacher, key: number(0), seconds: number(1), fails: arguments.last == "fail")
        case "wait":
            say("waiting")
            if case .granted = try await cacher.lease(number(0), for: .seconds(100_000)) { say("granted") }
        case "fetch": try await fetch(cacher, key: number(0), value: number(1))
        case "race": try await race(cacher, key: number(0), log: arguments[1])
        case "observe": try await observe(cacher)
        case "rest":
            _ = try await FileCacher<Int, Int>(directory: directory).load(param: 0)
            say("resting")
            try await untilCanceled()
        #if os(Linux)
        case "observe-beyond-limit":
            let watchers = exhaustWatchers()
            // The first failure is reported before the watchers are closed.
            try await observe(cacher) { closeWatchers(watchers) }
        #endif
        default: say("unknown mode \(mode)")
        }
    }

    static func record(_ value: Int) -> CacheRecord<Int> { CacheRecord(content: value, fetchedAt: Date()) }

    /// Adds one to random keys; no addition of any process may be lost.
    static func count(_ cacher: FileCacher<Int, Int>, keys: Int, rounds: Int) async throws {
        let observation = cacher.observeChanges { _ in }
        defer { withExtendedLifetime(observation) {} }
        say("began")
        for _ in 0..<rounds {
            let key = Int.random(in: 0..<keys)
            var base = cacher.position
            var value = try await cacher.load(param: key)?.content ?? 0
            if base == .none {
                // The first load has begun to count the position.
                base = cacher.position
                value = try await cacher.load(param: key)?.content ?? 0
            }
            adding: while true {
                switch try await cacher.save(record(value + 1), param: key, over: base) {
                case .saved: break adding
                case .superseded(let newer, let revision): (value, base) = (newer?.content ?? 0, revision)
                }
            }
            say("\(key)")
        }
        say("done")
    }

    static func fill(_ cacher: FileCacher<Int, Int>, count: Int) async throws {
        // Many saves of several processes wait for one lock, on a busy disk for longer than their patience.
        for key in 0..<count { try await until("key \(key) is saved") { (try? await cacher.save(record(key), param: key)) != nil } }
        say("done")
    }

    /// Uses a store over a directory that the process may not write, for longer than the first delays between attempts to follow it.
    static func useUnwritable(_ directory: URL) async throws {
        becomeNobody()
        let faults = Lock(0)
        let store = Store(
            cacher: TieredCacher(over: FileCacher<Int, Int>(directory: directory, sharing: .processes)),
            onEvent: { event in if case .cacherFault(.follow, _) = event.kind { faults.withLock { $0 += 1 } } },
            fetch: { (key: Int) in key })
        say("fetched \(try await store[2].requireData())")
        await store[2].update(3)
        say("updated \(try await store[2].requireData())")
        try await until("a fault is reported") { faults.withLock { $0 } > 0 }
        try await leaveIdle(seconds: 4)
        say("follow \(faults.withLock { $0 })")
    }

    /// Saves records until the disk is full.
    private static func fillUp(_ cacher: FileCacher<Int, Int>) async throws {
        for key in 0... {
            do { try await cacher.save(record(key), param: key) } catch let error as StoreError where error.fileSystemErrno == ENOSPC {
                return say("full")
            }
        }
    }

    /// Removes records from a full disk.
    static func fillDisk(_ cacher: FileCacher<Int, Int>, _ other: FileCacher<Int, Int>) async throws {
        let hasCleared = WatchedState(false)
        let observation = other.observeChanges { change in if case .removedAll = change { hasCleared.update { $0 = true } } }
        _ = try await other.load(param: 0)
        let base = other.position
        try await fillUp(cacher)
        try await cacher.remove(param: 0)
        say(try await cacher.load(param: 0) == nil ? "removed" : "kept")
        // The content was decided on before the removal.
        if case .superseded = try await other.save(record(1), param: 0, over: base) { say("refused") } else { say("accepted") }
        try await fillUp(cacher)
        try await cacher.removeAll()
        say(try await cacher.keys() == [] ? "removed all" : "kept some")
        try await hasCleared.wait { $0 ? () : nil }
        say("changed all")
        try await cacher.save(record(1), param: 0)
        say("saved")
        withExtendedLifetime(observation) {}
    }

    static func lease(_ cacher: FileCacher<Int, Int>, key: Int, seconds: Int, fails: Bool) async throws {
        switch try await cacher.lease(key, for: .seconds(seconds)) {
        case .granted(let lease):
            say("granted")
            if fails {
                // The test writes a line when another process waits.
                _ = readLine()
                let failure = FetchFailedElsewhere(
                    failureKind: .permanent, retryAfter: .seconds(7), allowsStale: false, message: "out of order")
                lease.end(.failed(failure))
            }
            // Ending is asynchronous: the process lives until the test ends it.
            try await untilCanceled()
        case .failed(let failure): say("failed \(failure.failureKind) \(failure.message)")
        case .notNeeded: say("not needed")
        }
    }

    /// Fetches a key in a store; the fetch ends with a line of the input. Prints the content once a change of another process is shown.
    static func fetch(_ cacher: FileCacher<Int, Int>, key: Int, value: Int) async throws {
        let store = Store(cacher: TieredCacher(over: cacher)) { (_: Int) in
            say("fetching")
            _ = readLine()
            return value
        }
        say("got \(try await store[key].requireData())")
        try await store.waitUntilSaved()
        try await until("the change arrives") { await store[key].getData(from: .cache) != value }
        say("kept \(await store[key].getData(from: .cache) ?? 0)")
    }

    /// Fetches a missing key once among all processes; a fetch adds a line to the log.
    static func race(_ cacher: FileCacher<Int, Int>, key: Int, log: String) async throws {
        say("began")
        while try await cacher.load(param: key) == nil {
            guard case .granted(let lease) = try await cacher.lease(key, for: hangLimit) else { continue }
            guard try await cacher.load(param: key) == nil else {
                lease.end(.abandoned)
                break
            }
            appendLine(log, "fetched")
            await otherTasksRun()
            _ = try await cacher.save(record(1), param: key, over: lease.position)
            lease.end(.saved)
        }
        say("done")
    }

    /// Prints every change until the process is killed.
    static func observe(_ cacher: FileCacher<Int, Int>, afterLoad: () -> Void = {}) async throws {
        let observation = cacher.observeChanges { change in
            switch change {
            case .changed(let key, _): say("changed \(key)")
            case .removedAll: say("removed all")
            case .gap: say("gap")
            }
        }
        _ = try await cacher.load(param: 0)
        afterLoad()
        say("observing")
        // Not a sleep, because its timer would wake the process.
        try await untilCanceled()
        withExtendedLifetime(observation) {}
    }
}
