import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StorePlatform

@Suite(.timeLimit(.minutes(hangMinutes)))
struct DescriptorShareTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    /// The number of open lease files of this test's directory; `nil` where the system does not list them.
    private var openLeases: Int? { openFiles { $0.contains(".lease") } }

    /// The number of open files and directories of this test's directory; `nil` where the system does not list them.
    private func openFiles(where fits: (String) -> Bool = { _ in true }) -> Int? {
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") else { return nil }
        let paths = names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0) }
        return paths.count { $0.contains(place.url.lastPathComponent) && fits($0) }
    }

    @Test(arguments: [(0 as UInt64, 8), (64, 8), (256, 32), (512, 64), (1_048_576, 64), (.max, 64)])
    func `D10: the share is an eighth of the limit, and 64 at most`(limit: UInt64, share: Int) {
        #expect(DescriptorShare.total(of: limit) == share)
        #expect(DescriptorShare.leaseCount < DescriptorShare.total)
    }

    @Test(arguments: [LeaseKind.locked, .dated])
    func `D10: leases hold a bounded number of descriptors, and further fetches wait their turn`(kind: LeaseKind) async throws {
        let permits = Permits(4)
        let user = SharedDirectory(place.directory, leaseKind: kind, leasePermits: permits)
        let held = WatchedState<[Lease]>([])
        let tasks = (0..<20).map { number in
            Task {
                let lease = try #require(try await user.lease(SHA256.digest(of: [UInt8(number)]), for: .seconds(100_000)).lease)
                held.update { $0.append(lease) }
            }
        }
        try await until("sixteen fetches wait") { permits.waiterCount == 16 && held.read { $0.count } == 4 }
        #expect(openLeases ?? 4 == 4)
        var ended = 0
        try await until("every fetch had its turn") {
            let leases = held.update { held in
                defer { held = [] }
                return held
            }
            for lease in leases { lease.end(.saved) }
            ended += leases.count
            #expect(openLeases ?? 0 <= 4)
            return ended == 20
        }
        for task in tasks { try await task.value }
        try await user.perform {}
        #expect(openLeases ?? 0 == 0)
    }

    @Test func `D10: a shared directory holds three descriptors, however many keys it has, and none after its last use`() async throws {
        do {
            let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
            let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
            for key in 0..<100 {
                _ = try await store[key].requireData()
                await store[key].update(key)
            }
            await cacher.settle()
            // The follower may still look at the files, because of the last change.
            try await until("three files are open") { openFiles() ?? 3 == 3 }
        }
        try await until("all files are closed") { openFiles() ?? 0 == 0 }
    }

    @Test func `D10: an outbox holds seven descriptors at most, however many lanes it has, and none after its last use`() async throws {
        struct Note: Command {
            static let name = "note"
            var lane: Int
        }
        do {
            let store = Store<Int, Int>(cacher: MemoryCacher()) { $0 }
            let outbox = try Outbox(directory: place.url)
            let gate = WatchedState(false)
            await outbox.register(Note.self, patching: store, at: \.lane) { _, _ in
            } perform: { _, _ in
                try await gate.wait { $0 ? () : nil }
            }
            outbox.start()
            for lane in 0..<100 { try await outbox.submit(Note(lane: lane)) }
            #expect(openFiles() ?? 7 <= 7)
            gate.update { $0 = true }
            #expect(await outbox.drain(until: .seconds(100_000)) == .drained)
            #expect(openFiles() ?? 7 <= 7)
            try await outbox.close()
        }
        try await until("all files are closed") { openFiles() ?? 0 == 0 }
    }

    @Test func `D10: a fetch that waits for another process's lease holds no descriptor`() async throws {
        let permits = Permits(1)
        let (other, user) = (SharedDirectory(place.directory), SharedDirectory(place.directory, leasePermits: permits))
        let lease = try #require(try await granted { try await other.lease(SHA256.digest(of: [1]), for: .seconds(100_000)) })
        let waiter = Task { try await user.lease(SHA256.digest(of: [1]), for: .seconds(100_000)) }
        try await until { user.leaseEvents.current.waited.count == 1 }
        #expect(try await granted { try await user.lease(SHA256.digest(of: [2]), for: .seconds(100_000)) } != nil)
        lease.end(.saved)
        #expect(try await waiter.value().lease != nil)
    }

    @Test(arguments: [false, true])
    func `D10: a fetch that another fetch waits for does not wait for its turn`(isAwaitedBefore: Bool) async throws {
        let permits = Permits(1)
        let taken = permits.takeIfFree()
        let (key, wait) = (FetchedKey(0), FetchWait(FetchScope(FetchedKey(0), .one(WatchedState(0)))))
        if isAwaitedBefore { #expect(wait.begin(awaiting: key)) }
        let turn = Task { try await FetchTurn.$key.withValue(key) { try await FetchTurn.take(permits, within: .seconds(100_000)) } }
        if !isAwaitedBefore {
            try await until { permits.waiterCount == 1 }
            #expect(wait.begin(awaiting: key))
        }
        #expect(try await turn.value == nil)
        wait.end()
        // Nothing waits any longer, so the next fetch waits again.
        let next = Task { try await FetchTurn.$key.withValue(key) { try await FetchTurn.take(permits, within: .seconds(100_000)) } }
        try await until { permits.waiterCount == 1 }
        taken?.release()
        #expect(try await next.value != nil)
    }

    @Test func `D10: a wait for a turn ends with its task, and without a lease after the duration of one`() async throws {
        let permits = Permits(1)
        let taken = permits.takeIfFree()
        let canceled = Task { try await FetchTurn.take(permits, within: .seconds(100_000)) }
        try await until { permits.waiterCount == 1 }
        canceled.cancel()
        await #expect(throws: CancellationError.self) { try await canceled.value }
        #expect(try await FetchTurn.take(permits, within: .milliseconds(1)) == nil)
        try await until { permits.waiterCount == 0 }
        taken?.release()
    }

    @Test func `D10: fetches that fetch another key all end, although there are more of them than leases`() async throws {
        let count = isWholeRun || isLongRun ? 400 : 2 * DescriptorShare.leaseCount
        let own = WatchedState<Store<Int, Int>?>(nil)
        let store = Store(
            cacher: TieredCacher(over: FileCacher<Int, Int>(directory: place.url, sharing: .processes)),
            policy: StorePolicy(leaseDuration: .seconds(100_000))
        ) { key in
            guard key < 1_000, let store = own.current else { return key }
            return try await store[key + 1_000].requireData()
        }
        own.update { $0 = store }
        defer { own.update { $0 = nil } }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for key in 0..<count { group.addTask { try await store[key].requireData() } }
            for try await value in group {
                #expect(value >= 1_000)
                #expect(openLeases ?? 0 <= DescriptorShare.leaseCount)
            }
        }
    }

    @Test func `D8: a list of changes of another version is refused, and stays as it is`() async throws {
        let header = LogFormat("SHchange", version: 9, noun: "").header
        try FileManager.default.createDirectory(at: place.file(".sharing"), withIntermediateDirectories: true)
        try place.write(header, ".sharing/changes")
        let cacher = FileCacher<Int, Int>(directory: place.url, sharing: .processes)
        let error = await #expect(throws: StoreError.self) { try await cacher.save(record(1), param: 1) }
        #expect(error?.code == .unreadableRecord)
        #expect(error?.description.contains("version 9") == true)
        #expect(try place.bytes(".sharing/changes") == header)
        #expect(try await cacher.load(param: 1) == nil)
    }

    @Test func `D8: the patience with a lock is measured on the monotonic clock`() async throws {
        let signal = try ThreadSignal("file")
        let start = ContinuousClock.now
        #expect(!signal.wait(atMost: .milliseconds(20)))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
        signal.send()
        #expect(signal.wait(atMost: .zero))
        let other = try ThreadSignal("file")
        Thread.detachNewThread { other.send() }
        #expect(other.wait(atMost: .seconds(100_000)))
    }
}
