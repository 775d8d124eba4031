#if os(Linux)
import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// Malformed responses to the text fetcher over libcurl. `HostileResponseTests` and `ContentCodingTests` of RemoteRouting check the other
/// faults. `URLSession` ends the process for some of them, as its `SessionCrashTests` shows in child processes.
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
}
#endif
