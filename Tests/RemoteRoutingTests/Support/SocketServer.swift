#if os(Linux)
import Foundation
import Glibc
import RemoteRouting
import StoreCore

@testable import RemoteHTTP

/// A frame of a client as it was on the wire.
struct ClientFrame: Hashable, Sendable {
    /// The first byte: the last fragment's bit, the reserved bits and the opcode.
    var first: UInt8
    var isMasked = true
    var payload: [UInt8]
}

/// A server of WebSockets, which runs a closure for each connection.
final class SocketServer: Sendable {
    private let server: RawServer
    /// The heads of the handshakes.
    let heads = WatchedState<[String]>([])
    /// The frames of all connections.
    let frames = WatchedState<[ClientFrame]>([])
    /// The number of connections that have ended.
    let ended = WatchedState(0)

    init(_ serve: @escaping @Sendable (SocketPeer) -> Void) throws {
        server = try RawServer { [heads, frames, ended] connection in
            defer { ended.update { $0 += 1 } }
            guard let head = connection.readHead() else { return }
            heads.update { $0.append(head) }
            serve(SocketPeer(connection: connection, head: head, frames: frames))
        }
    }

    /// A server that sends every message back.
    static func echoing() throws -> SocketServer {
        try SocketServer { peer in
            peer.accept()
            peer.echo()
        }
    }

    /// A server that only reads.
    static func silent() throws -> SocketServer {
        try SocketServer { peer in
            peer.accept()
            while peer.next() != nil {}
        }
    }

    var port: UInt16 { server.port }

    func host(_ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
        try RealTransport.curl.host(server.port) {
            $0.retry = .never
            change(&$0)
        }
    }

    /// Returns a frame of the server.
    static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let size = payload.count < 126 ? 0 : payload.count < 65_536 ? 2 : 8
        let short = size == 0 ? UInt8(payload.count) : size == 2 ? 126 : 127
        return [first, short] + (0..<size).map { UInt8(truncatingIfNeeded: payload.count >> (8 * (size - 1 - $0))) } + payload
    }
}

/// A connection of a ``SocketServer``.
struct SocketPeer: Sendable {
    let connection: RawConnection
    let head: String
    let frames: WatchedState<[ClientFrame]>

    /// Accepts the handshake; the further lines end with CRLF.
    func accept(_ lines: String = "", then bytes: [UInt8] = []) {
        let key = head.components(separatedBy: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19) ?? ""
        let text = """
            HTTP/1.1 101 Switching Protocols\r
            Upgrade: WebSocket\r
            Connection: keep-alive, upgrade\r
            Sec-WebSocket-Accept: \(FrameLink.acceptance(of: String(key)))\r
            \(lines)\r

            """
        connection.send(Array(text.utf8) + bytes)
    }

    func send(_ first: UInt8, _ payload: [UInt8]) { connection.send(SocketServer.frame(first, payload)) }

    /// Reads and records the next frame of the client; `nil` at the end of the connection.
    @discardableResult
    func next() -> ClientFrame? {
        guard let start = connection.read(2) else { return nil }
        let isMasked = start[1] & 0x80 != 0
        var count = Int(start[1] & 0x7F)
        if count >= 126 {
            guard let long = connection.read(count == 126 ? 2 : 8) else { return nil }
            count = long.reduce(0) { $0 << 8 | Int($1) }
        }
        guard let key = connection.read(isMasked ? 4 : 0), var payload = connection.read(count) else { return nil }
        if isMasked { for index in payload.indices { payload[index] ^= key[index % 4] } }
        let frame = ClientFrame(first: start[0], isMasked: isMasked, payload: payload)
        frames.update { $0.append(frame) }
        return frame
    }

    /// Sends every message back, and a Close frame as the last one.
    func echo() {
        while let frame = next() {
            send(frame.first, frame.payload)
            if frame.first == 0x88 { return }
        }
    }
}

extension RawConnection {
    /// Reads so many bytes; `nil` if the connection ends before.
    func read(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var got = 0
        while got < count {
            let more = bytes.withUnsafeMutableBytes { buffer in
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[got...])
                return recv(socket, rest.baseAddress, rest.count, 0)
            }
            guard more > 0 else { return nil }
            got += more
        }
        return bytes
    }
}
#endif
