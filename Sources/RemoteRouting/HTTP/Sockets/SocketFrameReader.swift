internal import Foundation

/// The kinds of frames (RFC 6455 §5.2).
enum SocketOpcode: UInt8 {
    case continuation = 0
    case text = 1
    case data = 2
    case close = 8
    case ping = 9
    case pong = 10

    var isControl: Bool { rawValue >= 8 }
}

/// The reason to end a connection, with the code that names it to the peer (RFC 6455 §7.4).
package struct SocketFault: Error {
    package let closeCode: UInt16
    package let failure: TransportFailure

    static func violation(_ text: String, code: UInt16 = 1002) -> SocketFault {
        SocketFault(closeCode: code, failure: TransportFailure(.protocolViolation, "\(text) (RFC 6455); correct the server"))
    }

    static func tooLarge(_ limit: Int) -> SocketFault {
        SocketFault(
            closeCode: 1009,
            failure: TransportFailure(.bodyTooLarge, "a message has more than \(limit) bytes; raise messageBytes of the socket's options"))
    }
}

/// A parser of a server's frames: a pure machine that receives bytes in pieces of any size (RFC 6455 §5).
struct SocketFrameReader: Sendable {
    private struct Frame {
        let opcode: SocketOpcode
        let isFinal: Bool
        var left: Int
    }

    private let limit: Int
    private var input = Data()
    private var offset = 0
    private var header: [UInt8] = []
    private var frame: Frame?
    private var control = Data()
    private var message = Data()
    /// The kind of the message that further frames continue.
    private var kind: SocketOpcode?

    init(messageBytes limit: Int) { self.limit = limit }

    mutating func push(_ piece: Data) {
        input = offset == input.count ? piece : Data(input.dropFirst(offset)) + piece
        offset = 0
    }

    /// Returns the next event; `nil` if more bytes are needed.
    mutating func next() throws(SocketFault) -> SocketEvent? {
        while true {
            if frame == nil { frame = try readHeader() }
            guard var current = frame else { return nil }
            let count = min(current.left, input.count - offset)
            let start = input.startIndex + offset
            let piece = input[start..<(start + count)]
            if current.opcode.isControl { control.append(piece) } else { message.append(piece) }
            offset += count
            current.left -= count
            frame = current.left > 0 ? current : nil
            if current.left > 0 { return nil }
            if let event = try finish(current) { return event }
        }
    }

    private mutating func readHeader() throws(SocketFault) -> Frame? {
        while offset < input.count {
            header.append(input[input.startIndex + offset])
            offset += 1
            guard let frame = try parsedHeader() else { continue }
            header.removeAll(keepingCapacity: true)
            if frame.opcode == .text || frame.opcode == .data { kind = frame.opcode }
            return frame
        }
        return nil
    }

    private func parsedHeader() throws(SocketFault) -> Frame? {
        guard header.count >= 2 else { return nil }
        guard header[0] & 0x70 == 0 else { throw .violation("a frame has a reserved bit, without an extension") }
        guard header[1] & 0x80 == 0 else { throw .violation("a frame of the server is masked") }
        guard let opcode = SocketOpcode(rawValue: header[0] & 0x0F) else { throw .violation("a frame has an unknown opcode") }
        let (isFinal, short) = (header[0] & 0x80 != 0, Int(header[1]))
        if opcode.isControl, !isFinal || short > 125 { throw .violation("a control frame is fragmented or has more than 125 bytes") }
        if opcode == .continuation, kind == nil { throw .violation("a frame continues no message") }
        if opcode == .text || opcode == .data, kind != nil { throw .violation("a message begins within another one") }
        let size = short == 126 ? 4 : short == 127 ? 10 : 2
        guard header.count == size else { return nil }
        let length = size == 2 ? UInt64(short) : header[2...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let least: UInt64 = size == 2 ? 0 : size == 4 ? 126 : 65_536
        guard length >= least, length >> 63 == 0 else { throw .violation("the length of a frame is not encoded in the shortest form") }
        guard opcode.isControl || length <= UInt64(max(0, limit - message.count)) else { throw .tooLarge(limit) }
        return Frame(opcode: opcode, isFinal: isFinal, left: Int(length))
    }

    private mutating func finish(_ frame: Frame) throws(SocketFault) -> SocketEvent? {
        if frame.opcode.isControl {
            let payload = control
            control = Data()
            return try event(frame.opcode, payload)
        }
        guard frame.isFinal, let kind else { return nil }
        let whole = message
        (message, self.kind) = (Data(), nil)
        return try event(kind, whole)
    }

    private func event(_ opcode: SocketOpcode, _ payload: Data) throws(SocketFault) -> SocketEvent {
        switch opcode {
        case .data, .continuation: return .data(payload)
        case .text: return .text(try text(payload))
        case .ping: return .ping(payload)
        case .pong: return .pong(payload)
        case .close:
            guard payload.count != 1 else { throw .violation("a Close frame has half a code") }
            guard payload.count > 1 else { return .close(code: nil, reason: "") }
            let code = payload.prefix(2).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
            guard SocketEvent.isCloseCode(code) else { throw .violation("a Close frame has the code \(code), which is never sent") }
            return .close(code: code, reason: try text(payload.dropFirst(2)))
        }
    }

    private func text(_ bytes: Data) throws(SocketFault) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .violation("a text is not UTF-8", code: 1007) }
        return text
    }
}
