#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// Malformed responses to the text fetcher over libcurl. `URLSession` ends the process for some of them, as `SessionCrashTests` of
/// RemoteRouting shows in child processes.
@Suite(.enabled(if: RealTextTransport.available.contains(.curl), "libcurl is missing"), .timeLimit(.minutes(hangMinutes)))
struct HostileTextTests {
    /// `STOREHOUSE_SEEDS=20000` sets the number of mutations after the truncations.
    @Test func `W1, T5: a response that is truncated anywhere, or mutated, is a text or a typed error`() async throws {
        let numbers = Mutations.numbers(mutations: rounds(600, quick: 60))
        let origin = try LoopbackOrigin { request in .verbatim(Data(Mutations.response(Int(request.path.dropFirst()) ?? 0))) }
        // The deadline only limits hangs: every response ends with its connection.
        let fetcher = try RealTextTransport.curl.fetcher(deadline: hangLimit)
        let expected: Set<TextStoreError.Code> = [.unreachable, .unexpectedStatus, .tooLarge, .lengthMismatch]
        let seen = WatchedState<[String: Int]>([:])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for number in stride(from: worker, to: numbers.count, by: 8).map({ numbers[$0] }) {
                        let file = RemoteFile(url: origin.url.appending(path: "\(number)"), limit: 10_000)
                        do {
                            let validator = number % 3 == 0 ? Validator(entityTag: "\"1\"") : nil
                            switch try await fetcher.fetch(param: file, revalidating: validator) {
                            case .modified(let text, _, _): #expect(text.bytes.count <= file.limit, "response \(number)")
                            case .notModified: #expect(validator != nil, "response \(number)")
                            }
                            seen.update { $0["response", default: 0] += 1 }
                        } catch let error as TextStoreError {
                            seen.update { $0[error.code.rawValue, default: 0] += 1 }
                            #expect(expected.contains(error.code), "response \(number): \(error)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counts = seen.current
        #expect(counts.values.reduce(0, +) == numbers.count)
        for kind in ["response", "unreachable", "unexpectedStatus", "tooLarge"] { #expect(counts[kind, default: 0] > 0, "\(counts)") }
    }

    @Test func `W4: twenty thousand fields cause a typed error`() async throws {
        let head = "HTTP/1.1 200 OK\r\n" + String(repeating: "X-Field: 12345678\r\n", count: 20_000) + "Content-Length: 0\r\n\r\n"
        let origin = try LoopbackOrigin { _ in .verbatim(head) }
        await expectError(.unreachable) {
            _ = try await RealTextTransport.curl.fetcher().fetch(param: RemoteFile(url: origin.url.appending(path: "x")), revalidating: nil)
        }
    }

    @Test(arguments: [LoopbackOrigin.Response.Framing.length, .chunked(bytes: 3)])
    func `W7, T5: a text truncated at any byte of its framing is an error`(_ framing: LoopbackOrigin.Response.Framing)
        async throws
    {
        let origin = try LoopbackOrigin { request in
            .text("0123456789").framed(framing).misbehaving(.truncate(afterBodyBytes: Int(request.path.dropFirst()) ?? 0))
        }
        let fetcher = try RealTextTransport.curl.fetcher()
        for place in 0..<(framing == .length ? 10 : 30) {
            let error = await #expect(throws: TextStoreError.self, "cut after \(place) bytes") {
                _ = try await fetcher.fetch(param: RemoteFile(url: origin.url.appending(path: "\(place)")), revalidating: nil)
            }
            #expect(error?.code == .unreachable)
        }
    }

    @Test func `W7, T5: a truncated gzip body and an unrequested content coding are errors`() async throws {
        let packed = try #require(try ChildProcess.output(of: "/bin/gzip", ["-9nc"], input: Data("0123456789".utf8)))
        let origin = try LoopbackOrigin { request in
            let count = Int(request.path.dropFirst()) ?? packed.count
            let coding = request.path == "/compress" ? "compress" : "gzip"
            let head = "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\nContent-Length: \(count)\r\n\r\n"
            return .verbatim(Data(head.utf8) + packed.prefix(count))
        }
        let fetcher = try RealTextTransport.curl.fetcher()
        func fetch(_ path: String) async throws -> FetchResult<RemoteText> {
            try await fetcher.fetch(param: RemoteFile(url: origin.url.appending(path: path)), revalidating: nil)
        }
        guard case .modified(let text, _, _) = try await fetch("\(packed.count)") else { return }
        #expect(text.bytes == Data("0123456789".utf8))
        for path in (1..<packed.count).map({ "\($0)" }) + ["compress"] {
            let error = await #expect(throws: TextStoreError.self, "\(path)") { _ = try await fetch(path) }
            #expect(error?.code == .unreachable)
        }
    }
}
#endif
