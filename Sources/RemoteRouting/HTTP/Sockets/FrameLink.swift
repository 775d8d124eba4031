#if os(Linux)
internal import Foundation
internal import StoreCore

/// A WebSocket over an exchange: frames take the places of the response body and of the request body.
///
/// Any libcurl that passes on a response of 101 can carry it. libcurl's own functions for WebSockets exist since 7.86 and are missing from
/// many builds, such as Debian 12's.
final class FrameLink: SocketLink {
    private struct State: Sendable {
        /// The frames that wait, with the numbers of their senders; a long message has several.
        var frames: [(number: UInt64, bytes: Data)] = []
        /// A control frame that precedes them.
        var control: Data?
        /// The numbers of the last sender, and of that of the last frame that the wire has taken.
        var (last, taken): (UInt64, UInt64) = (0, 0)
        /// Whether nothing more will be sent, and whether the exchange is over.
        var (isFinished, isOver) = (false, false)
        /// Receives the next bytes for the wire, once; `nil` is their end.
        var demand: (@Sendable (Data?) -> Void)?
    }

    let handshake: [(String, String)]
    private let key: String
    private let protocols: [String]
    private let messageBytes: Int
    private let state = WatchedState(State())

    init(protocols: [String], messageBytes: Int) {
        let key = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) }).base64EncodedString()
        self.key = key
        self.protocols = protocols
        self.messageBytes = messageBytes
        var fields = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", key)]
        if !protocols.isEmpty { fields.append(("Sec-WebSocket-Protocol", protocols.joined(separator: ", "))) }
        handshake = fields
    }

    func check(_ fields: HTTPFields) throws(TransportFailure) {
        let isUpgraded =
            fields["Upgrade"]?.equalsIgnoringCase("websocket") == true
            && fields["Connection"]?.split(separator: ",").contains { $0.withoutBlanksAtEnds.equalsIgnoringCase("upgrade") } == true
        guard isUpgraded, fields["Sec-WebSocket-Accept"] == FrameLink.acceptance(of: key) else {
            throw TransportFailure(
                .protocolViolation, "the response of 101 does not accept the handshake (RFC 6455 §4.1); check the address and the server")
        }
        let chosen = fields["Sec-WebSocket-Protocol"]
        guard fields["Sec-WebSocket-Extensions"] == nil, chosen.map({ protocols.contains($0) }) ?? true else {
            throw TransportFailure(
                .protocolViolation,
                "the server has chosen an extension or a protocol that was not offered; correct the server, or offer its protocol")
        }
    }

    /// Returns the proof that the server has read the key (RFC 6455 §4.2.2).
    static func acceptance(of key: String) -> String {
        Data(SHA1.digest(of: Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))).base64EncodedString()
    }

    func receive(_ body: HTTPResponse.Body, _ take: (SocketEvent) async throws -> Bool) async throws {
        var reader = SocketFrameReader(messageBytes: messageBytes)
        for try await piece in body {
            reader.push(piece)
            while let event = try reader.next() {
                guard try await take(event) else { return }
            }
        }
    }

    // MARK: Sending

    func send(_ event: SocketEvent) async throws {
        let frames = FrameLink.frames(of: event)
        let number: UInt64? = state.update { state in
            guard !state.isFinished, !state.isOver else { return nil }
            state.last += 1
            state.frames += frames.map { (state.last, $0) }
            // Before the wire has taken it: no frame follows a Close frame (RFC 6455 §5.5.1).
            if case .close = event { state.isFinished = true }
            return state.last
        }
        guard let number else { throw TransportFailure.closedSocket }
        passOn()
        do {
            let isTaken = try await state.wait { state -> Bool? in state.taken >= number ? true : state.isOver ? false : nil }
            if !isTaken { throw TransportFailure.closedSocket }
        } catch is CancellationError {
            let isTaken = state.update { state in
                if state.taken < number { state.frames.removeAll { $0.number == number } }
                return state.taken >= number
            }
            if !isTaken { throw TransportFailure.cancelled }
        }
    }

    func post(_ event: SocketEvent) {
        let bytes = FrameLink.frames(of: event).first
        let isPong = if case .pong = event { true } else { false }
        state.update { state in
            // A pong is a response, so a ping of this side does not replace it.
            guard !state.isFinished, isPong || state.control == nil else { return }
            state.control = bytes
        }
        passOn()
    }

    func finish() {
        state.update { $0.isFinished = true }
        passOn()
    }

    /// Ends all waits, because the exchange is over.
    func end() {
        state.update { state in
            (state.isOver, state.frames, state.control, state.demand) = (true, [], nil, nil)
        }
    }

    /// Requests the next bytes for the wire, which `demand` receives as soon as there are any.
    func requestNext(_ demand: @escaping @Sendable (Data?) -> Void) {
        state.update { state in
            if !state.isOver { state.demand = demand }
        }
        passOn()
    }

    /// Passes on the next frame if the wire has requested it.
    private func passOn() {
        let delivery: (demand: @Sendable (Data?) -> Void, bytes: Data?)? = state.update { state in
            guard let demand = state.demand else { return nil }
            var bytes = state.control
            if bytes != nil {
                state.control = nil
            } else if !state.frames.isEmpty {
                let frame = state.frames.removeFirst()
                (bytes, state.taken) = (frame.bytes, frame.number)
            } else if !state.isFinished {
                return nil
            }
            state.demand = nil
            return (demand: demand, bytes: bytes)
        }
        if let delivery { delivery.demand(delivery.bytes) }
    }

    // MARK: Frames

    private static func frames(of event: SocketEvent) -> [Data] {
        let (opcode, payload): (SocketOpcode, Data) =
            switch event {
            case .text(let text): (.text, Data(text.utf8))
            case .data(let data): (.data, data)
            case .ping(let data): (.ping, data)
            case .pong(let data): (.pong, data)
            case .close(let code, let reason):
                (.close, code.map { Data([UInt8($0 >> 8), UInt8($0 & 0xFF)]) + Data(reason.utf8) } ?? Data())
            }
        // Pings and pongs go between the frames of a long message (RFC 6455 §5.4). Otherwise, a slow connection would count as lost.
        return stride(from: 0, to: max(1, payload.count), by: 1 << 20).map { start in
            let part = payload.dropFirst(start).prefix(1 << 20)
            return frame(start == 0 ? opcode : .continuation, part, isFinal: part.endIndex == payload.endIndex)
        }
    }

    /// Encodes a frame of a client, which is masked with a new random key (RFC 6455 §5.3).
    static func frame(_ opcode: SocketOpcode, _ payload: Data, isFinal: Bool = true) -> Data {
        let key = (0..<4).map { _ in UInt8.random(in: .min ... .max) }
        var frame = Data(capacity: payload.count + 14)
        let size = payload.count < 126 ? 0 : payload.count < 65_536 ? 2 : 8
        frame.append((isFinal ? 0x80 : 0) | opcode.rawValue)
        frame.append(0x80 | (size == 0 ? UInt8(payload.count) : size == 2 ? 126 : 127))
        for place in 0..<size { frame.append(UInt8(truncatingIfNeeded: payload.count >> (8 * (size - 1 - place)))) }
        frame.append(contentsOf: key)
        let start = frame.count
        frame.append(payload)
        frame.withUnsafeMutableBytes { bytes in
            for place in start..<bytes.count { bytes[place] ^= key[(place - start) & 3] }
        }
        return frame
    }
}

/// The digest of the handshake (RFC 3174), which proves that the server knows WebSockets and protects nothing.
enum SHA1 {
    static func digest(of bytes: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        var padded = bytes + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        for place in 0..<8 { padded.append(UInt8(truncatingIfNeeded: (bytes.count * 8) >> (56 - 8 * place))) }
        func rotated(_ word: UInt32, by count: UInt32) -> UInt32 { word << count | word >> (32 - count) }
        for block in stride(from: 0, to: padded.count, by: 64) {
            var words = (0..<16).map { index in
                padded[(block + 4 * index)..<(block + 4 * index + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            }
            for index in 16..<80 {
                words.append(rotated(words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], by: 1))
            }
            var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
            for index in 0..<80 {
                let (mixed, constant): (UInt32, UInt32) =
                    switch index / 20 {
                    case 0: (b & c | ~b & d, 0x5A82_7999)
                    case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                    case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                    default: (b ^ c ^ d, 0xCA62_C1D6)
                    }
                let next = rotated(a, by: 5) &+ mixed &+ e &+ constant &+ words[index]
                (a, b, c, d, e) = (next, a, rotated(b, by: 30), c, d)
            }
            for (index, word) in [a, b, c, d, e].enumerated() { state[index] &+= word }
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * UInt32($0))) } }
    }
}
#endif
