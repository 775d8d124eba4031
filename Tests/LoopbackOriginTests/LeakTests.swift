import Foundation
import LoopbackOrigin
import Testing

/// Descriptors and threads are counted in a process of their own, where no other test opens any.
@Suite(.timeLimit(.minutes(1)), .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/fd")))
struct LeakTests {
    @Test func `starting and stopping leaves no descriptor and no thread behind`() async {
        await #expect(processExitsWith: .success) {
            try cycle()
            let before = try counts()
            for _ in 1...50 { try cycle() }
            #expect(try counts() == before)
        }
    }

    @Test func `a refused start leaves no descriptor behind`() async {
        await #expect(processExitsWith: .success) {
            let origin = try LoopbackOrigin()
            let before = try counts()
            for _ in 1...50 { #expect(throws: LoopbackOrigin.Failure.self) { try LoopbackOrigin(port: origin.port) } }
            #expect(try counts() == before)
        }
    }
}

/// One origin's life with clients that stay, leave, wait and see an outage.
private func cycle() throws {
    let origin = try LoopbackOrigin { $0.path == "/hang" ? .text("").misbehaving(.neverAnswer) : .text("x") }
    let clients = [try RawClient(origin), try RawClient(origin), try RawClient(origin)]
    try clients[0].get("/")
    _ = try clients[0].readResponse()
    try clients[1].get("/hang")
    clients[2].hangUp()
    origin.goDown()
    try origin.comeBack()
    let late = try RawClient(origin)
    try late.get("/")
    _ = try late.readResponse()
    origin.stop()
}

private func counts() throws -> [Int] {
    try ["/proc/self/fd", "/proc/self/task"].map { try FileManager.default.contentsOfDirectory(atPath: $0).count }
}
