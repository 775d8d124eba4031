#if os(Linux)
import Foundation
import Testing

@testable import RemoteHTTP

/// Bodies of requests that begin again.
@Suite
struct BodySourceTests {
    @Test func `W6: a body that begins again is sent from its beginning`() throws {
        let source = BodySource(Data("0123456789".utf8))
        for count in [4, 10, 1, 10] {
            source.prepare()
            #expect(read(source, count) == Array("0123456789".utf8.prefix(count)))
        }
    }

    @Test func `W6: a body that cannot begin again is not sent from its middle`() throws {
        let body = HTTPBodyStream(length: nil, isReplayable: false) { { _ in nil } }
        let source = BodySource(1, try #require(Mailbox()), body)
        source.prepare()
        source.take(.success(Data("01234".utf8)))
        // Nothing has been sent of it.
        source.prepare()
        #expect(read(source, 3) == Array("012".utf8))
        source.take(.success(Data("56789".utf8)))
        source.prepare()
        #expect(read(source, 3) == nil)
    }

    /// The next bytes; `nil` where the source fails.
    private func read(_ source: BodySource, _ count: Int) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: count)
        let step = buffer.withUnsafeMutableBytes { source.read(into: $0) }
        if case .bytes(let count) = step { return Array(buffer.prefix(count)) }
        return nil
    }
}
#endif
