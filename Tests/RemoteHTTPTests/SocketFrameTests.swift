import Foundation
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP

/// The frames of WebSockets without a connection.
@Suite
struct SocketFrameTests {
    /// Two fragments with a ping between them, an empty text, a pong, and a Close frame.
    private static let bytes: [UInt8] =
        [0x02, 0x03, 1, 2, 3, 0x89, 0x01, 9, 0x80, 0x7E, 0x00, 0x7E] + [UInt8](repeating: 4, count: 126)
        + [0x81, 0x00, 0x8A, 0x00, 0x88, 0x04, 0x03, 0xE8, 0x6F, 0x6B]

    private static let events: [SocketEvent] = [
        .ping(Data([9])), .data(Data([1, 2, 3] + [UInt8](repeating: 4, count: 126))), .text(""), .pong(Data()),
        .close(code: 1000, reason: "ok"),
    ]

    @Test(arguments: [1, 2, 3, 7, 64, 1_000], [true, false])
    func `H25: frames are read from pieces of any size, each at once or after the last one`(_ size: Int, _ isAtOnce: Bool) throws {
        var reader = SocketFrameReader(messageBytes: 129)
        var events: [SocketEvent] = []
        for start in stride(from: 0, to: Self.bytes.count, by: size) {
            // A slice has other indices than a whole.
            reader.push(Data([UInt8(0)] + Array(Self.bytes.dropFirst(start).prefix(size))).dropFirst())
            while isAtOnce, let event = try reader.next() { events.append(event) }
        }
        while let event = try reader.next() { events.append(event) }
        #expect(events == Self.events)
    }

    @Test func `H25: random bytes are events or a fault`() {
        var random = SplitMix(seed: 23)
        for _ in 0..<rounds(20_000, quick: 2_000) {
            var reader = SocketFrameReader(messageBytes: 64)
            reader.push(Data((0..<Int.random(in: 0..<40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }))
            do throws(SocketFault) {
                while try reader.next() != nil {}
            } catch {
                #expect([1002, 1007, 1009].contains(error.closeCode))
            }
        }
    }

    #if os(Linux)
    @Test(arguments: [0, 1, 125, 126, 65_535, 65_536])
    func `H25: a frame of the client has the shortest length and a mask`(_ count: Int) {
        let payload = Data((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        let frame = [UInt8](FrameLink.frame(.data, payload))
        let size = count < 126 ? 2 : count < 65_536 ? 4 : 10
        #expect(frame.count == size + 4 + count && frame[0] == 0x82)
        #expect(frame[1] == 0x80 | (size == 2 ? UInt8(count) : size == 4 ? 126 : 127))
        let key = frame[size..<(size + 4)]
        let unmasked = frame.dropFirst(size + 4).enumerated().map { $0.element ^ key[key.startIndex + $0.offset % 4] }
        #expect(Data(unmasked) == payload)
    }

    @Test func `H25: no frame follows a Close frame`() async throws {
        let link = FrameLink(protocols: [], messageBytes: 1)
        let wire = WatchedState<[Data?]>([])
        link.requestNext { bytes in wire.update { $0.append(bytes) } }
        try await link.send(.close(code: 1000, reason: ""))
        link.post(.ping(Data()))
        link.requestNext { bytes in wire.update { $0.append(bytes) } }
        // Otherwise, the next call would wait for the wire.
        try #require(wire.current.count == 2 && wire.current[0]?.first == 0x88 && wire.current[1] == nil)
        await #expect(throws: TransportFailure.self) { try await link.send(.text("late")) }
    }

    @Test func `H25: a pong goes between the frames of a long message`() async throws {
        let link = FrameLink(protocols: [], messageBytes: 1)
        let wire = WatchedState<[Data]>([])
        func take() { link.requestNext { bytes in wire.update { $0.append(bytes ?? Data()) } } }
        take()
        try await link.send(.data(Data(count: (2 << 20) + 1)))
        link.post(.pong(Data([7])))
        for _ in 0..<3 { take() }
        #expect(wire.current.map(\.first) == [0x02, 0x8A, 0x00, 0x80])
        #expect(wire.current.map(\.count) == [(1 << 20) + 14, 7, (1 << 20) + 14, 7])
    }

    @MainActor
    @Test func `H25: a frame that the end of the exchange discards is not reported as sent to a canceled sender`() async throws {
        let link = FrameLink(protocols: [], messageBytes: 1)
        let sender = Task { try await link.send(.text("lost")) }
        await otherTasksRun(turns: 20)
        sender.cancel()
        // Before the sender continues, because it shares the actor.
        link.end()
        await #expect(throws: TransportFailure.self) { try await sender.value }
    }

    @Test func `H25: the proof of a handshake is that of RFC 6455`() {
        #expect(FrameLink.acceptance(of: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        // RFC 3174 §7.3.
        let long = SHA1.digest(of: Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8))
        #expect(long.prefix(4) == [0x84, 0x98, 0x3E, 0x44] && SHA1.digest(of: []).prefix(4) == [0xDA, 0x39, 0xA3, 0xEE])
    }
    #endif
}
