import Foundation
import LoopbackOrigin
import Testing
import Trials

/// Leaks of descriptors and threads, counted in child processes, where no other test opens any.
@Suite(.timeLimit(.minutes(hangMinutes)), .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")))
struct LeakTests {
    @Test func `starting and stopping leaves no descriptor and no thread behind`() async {
        await #expect(processExitsWith: .success) {
            try cycle()
            let before = try Count()
            for _ in 1...50 { try cycle() }
            try #expect(Count().hasNoLeak(of: 50, since: before))
        }
    }

    @Test func `a refused start leaves no descriptor behind`() async {
        await #expect(processExitsWith: .success) {
            let origin = try LoopbackOrigin()
            let before = try Count()
            for _ in 1...50 { #expect(throws: LoopbackOrigin.Failure.self) { try LoopbackOrigin(port: origin.port) } }
            try #expect(Count().hasNoLeak(of: 50, since: before))
        }
    }
}

/// Runs one origin with clients that stay, leave, wait, and see an outage.
private func cycle() throws {
    let origin = try LoopbackOrigin { $0.path == "/hang" ? .text("").misbehaving(.neverAnswer) : .text("x") }
    let clients = [try RawClient(origin), try RawClient(origin), try RawClient(origin)]
    try clients[0].get("/")
    _ = try clients[0].readResponse()
    try clients[1].get("/hang")
    clients[2].hangUp()
    origin.goDown()
    try origin.comeBack()
    let late = try RawClient(origin, get: "/")
    _ = try late.readResponse()
    origin.stop()
}

/// The number of descriptors and threads of the process.
private struct Count {
    let descriptors: Int
    let threads: Int

    init() throws {
        descriptors = try entries(of: "/proc/self/fd")
        threads = try entries(of: "/proc/self/task")
    }

    /// Returns whether neither number grew with the cycles; the runtime may have started a few workers of its own.
    func hasNoLeak(of cycles: Int, since before: Count) -> Bool {
        descriptors - before.descriptors < cycles / 10 && threads - before.threads < cycles / 10
    }
}

private func entries(of folder: String) throws -> Int { try FileManager.default.contentsOfDirectory(atPath: folder).count }
