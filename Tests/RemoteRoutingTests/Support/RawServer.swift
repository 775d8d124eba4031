#if os(Linux)
import Foundation
import Glibc
import RemoteRouting
import StoreCore

@testable import RemoteHTTP

/// A TCP server that runs a closure per connection, each on its own thread with blocking reads and writes.
final class RawServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let accepted = WatchedState(0)

    var acceptedConnections: Int { accepted.current }

    /// Creates a server at the address 127.0.0.`host`.
    convenience init(host: UInt8 = 1, port: UInt16 = 0, _ serve: @escaping @Sendable (RawConnection) -> Void) throws {
        let listener = RawConnection.makeSocket()
        let (isBound, bound) = withLoopbackAddress(host: host, port: port) { address, size in
            bind(listener, address, size) == 0 && listen(listener, 128) == 0 && getsockname(listener, address, &size) == 0
        }
        guard listener >= 0, isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        self.init(listener, bound, serve)
    }

    convenience init(path: String, _ serve: @escaping @Sendable (RawConnection) -> Void) throws {
        let listener = RawConnection.makeSocket(AF_UNIX)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard listener >= 0, isBound == 0, listen(listener, 128) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        self.init(listener, 0, serve)
    }

    private init(_ listener: Int32, _ port: UInt16, _ serve: @escaping @Sendable (RawConnection) -> Void) {
        (self.listener, self.port) = (listener, port)
        Thread { [accepted] in
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EMFILE || errno == ENFILE || errno == EINTR {
                    // Other tests of the process use all descriptors for a moment.
                    usleep(10_000)
                    continue
                }
                guard connection >= 0 else { break }
                // A copy in a child process would keep the connection open.
                _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
                let number = accepted.update { count in
                    count += 1
                    return count
                }
                Thread {
                    serve(RawConnection(socket: connection, number: number))
                    close(connection)
                }.start()
            }
            close(listener)
        }.start()
    }

    /// Creates a server that reads the head of a request, sends a text, and runs a closure.
    convenience init(sending text: String, _ then: @escaping @Sendable (RawConnection) -> Void = { _ in }) throws {
        try self.init { connection in
            guard connection.readHead() != nil else { return }
            connection.send(text)
            then(connection)
        }
    }

    // This ends the accepting thread, which closes the listener. Closed here, its number could belong to the next listener before the thread
    // accepts again.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}

struct RawConnection: Sendable {
    let socket: Int32
    /// The number of the connection, counting from 1.
    let number: Int

    /// Reads the head of a request; `nil` at the end of the connection.
    func readHead() -> String? {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while recv(socket, &byte, 1, 0) == 1 {
            head.append(byte)
            if head.suffix(4) == [13, 10, 13, 10] { return String(decoding: head, as: UTF8.self) }
        }
        return nil
    }

    /// Reads so many bytes, or to the end of the connection; returns how many there were.
    func readBytes(_ count: Int) -> Int {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var left = count
        while left > 0 {
            let got = recv(socket, &buffer, min(left, buffer.count), 0)
            guard got > 0 else { break }
            left -= got
        }
        return count - left
    }

    func drain() { _ = readBytes(.max) }

    func endSending() { _ = shutdown(socket, Int32(SHUT_WR)) }

    func send(_ text: String) { _ = sends(text) }

    func send(_ bytes: [UInt8]) { _ = sends(bytes) }

    /// Sends a text; returns whether the connection has taken it.
    func sends(_ text: String) -> Bool { sends(Array(text.utf8)) }

    private func sends(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}

/// Passes the address 127.0.0.`host` to a function; returns its result, and the port that the address has then.
func withLoopbackAddress<Result>(
    host: UInt8 = 1, port: UInt16 = 0, _ use: (UnsafeMutablePointer<sockaddr>, inout socklen_t) -> Result
) -> (Result, UInt16) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(host)).bigEndian
    address.sin_port = port.bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { use($0, &size) }
    }
    return (result, UInt16(bigEndian: address.sin_port))
}

extension RawConnection {
    static func makeSocket(_ family: Int32 = AF_INET, flags: Int32 = 0) -> Int32 {
        Glibc.socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | flags, 0)
    }

    init?(to port: UInt16) {
        let descriptor = RawConnection.makeSocket()
        guard withLoopbackAddress(port: port, { connect(descriptor, $0, $1) == 0 }).0 else {
            close(descriptor)
            return nil
        }
        self.init(socket: descriptor, number: 0)
    }
}

extension RawConnection {
    /// Forwards received bytes until their end, or until a change returns false.
    private func pass(to other: RawConnection, _ change: (_ bytes: inout [UInt8], _ offset: Int) -> Bool) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var offset = 0
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            var bytes = Array(buffer[..<count])
            let goesOn = change(&bytes, offset)
            offset += count
            guard other.sends(bytes), goesOn else { return }
        }
    }

    /// Connects to a port of this machine, and forwards bytes both ways until its side ends, or until a change of its bytes returns false.
    func relay(to port: UInt16, _ change: (_ bytes: inout [UInt8], _ offset: Int) -> Bool) {
        guard let server = RawConnection(to: port) else { return drain() }
        relay(to: server, change)
        close(server.socket)
    }

    /// Forwards bytes both ways until the server's side ends, or until a change of its bytes returns false.
    func relay(to server: RawConnection, _ change: (_ bytes: inout [UInt8], _ offset: Int) -> Bool = { _, _ in true }) {
        let ended = DispatchSemaphore(value: 0)
        Thread {
            pass(to: server) { _, _ in true }
            shutdown(server.socket, Int32(SHUT_WR))
            ended.signal()
        }.start()
        server.pass(to: self, change)
        shutdown(socket, Int32(SHUT_RDWR))
        shutdown(server.socket, Int32(SHUT_RDWR))
        ended.wait()
    }
}

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
    let heads = WatchedState<[String]>([])
    let frames = WatchedState<[ClientFrame]>([])
    let ended = WatchedState(0)

    init(_ serve: @escaping @Sendable (SocketPeer) -> Void) throws {
        server = try RawServer { [heads, frames, ended] connection in
            defer { ended.update { $0 += 1 } }
            guard let head = connection.readHead() else { return }
            heads.update { $0.append(head) }
            serve(SocketPeer(connection: connection, head: head, frames: frames))
        }
    }

    static func echoing() throws -> SocketServer {
        try SocketServer { peer in
            peer.accept()
            peer.echo()
        }
    }

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

    static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        let size = payload.count < 126 ? 0 : payload.count < 65_536 ? 2 : 8
        let short = size == 0 ? UInt8(payload.count) : size == 2 ? 126 : 127
        return [first, short] + (0..<size).map { UInt8(truncatingIfNeeded: payload.count >> (8 * (size - 1 - $0))) } + payload
    }
}

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

/// An HTTP server on a Unix domain socket, which sends back the first line and the body of each request.
final class UnixServer: Sendable {
    let path: String
    private let server: RawServer

    var acceptedConnections: Int { server.acceptedConnections }

    init(_ path: String) throws {
        self.path = path
        server = try RawServer(path: path) { UnixServer.serve($0) }
    }

    private static func serve(_ connection: RawConnection) {
        while let head = connection.readHead() {
            let lines = head.components(separatedBy: "\r\n")
            if lines[0].hasPrefix("GET /away/") {
                let target = "http://127.0.0.1:\(lines[0].split(separator: "/")[2].split(separator: " ")[0])/"
                connection.send("HTTP/1.1 302 Found\r\nLocation: \(target)\r\nContent-Length: 0\r\n\r\n")
                continue
            }
            let length = lines.first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
            let body = connection.read(length) ?? []
            let host = lines.first { $0.hasPrefix("Host: ") } ?? ""
            let answer = "\(lines[0])|\(host)|" + String(decoding: body, as: UTF8.self)
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(answer.utf8.count)\r\n\r\n\(answer)")
        }
    }
}

/// A proxy on this machine: tunnels (RFC 9110 §9.3.6), absolute-form requests (RFC 9112 §3.2.2), and SOCKS 5 (RFC 1928).
final class LoopbackProxy: Sendable {
    private let server: RawServer
    private let heads = WatchedState<[String]>([])

    var port: Int { Int(server.port) }

    /// The heads of the requests to the proxy; of SOCKS the addresses.
    var requests: [String] { heads.current }

    /// - Parameter authorization: The value of `Proxy-Authorization` that is wanted, or the user and password of SOCKS.
    init(wanting authorization: String? = nil, host: UInt8 = 1, port: UInt16 = 0) throws {
        server = try RawServer(host: host, port: port) { [heads] connection in
            var first: UInt8 = 0
            guard recv(connection.socket, &first, 1, Int32(MSG_PEEK)) == 1 else { return }
            if first == 5 {
                LoopbackProxy.serveSOCKS(connection, authorization) { text in heads.update { $0.append(text) } }
            } else {
                LoopbackProxy.serveHTTP(connection, authorization) { text in heads.update { $0.append(text) } }
            }
        }
    }

    private static func serveHTTP(_ connection: RawConnection, _ authorization: String?, _ note: (String) -> Void) {
        while let head = connection.readHead() {
            note(head)
            if let authorization, !head.contains("\r\nProxy-Authorization: \(authorization)\r\n") {
                connection.send("HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
                continue
            }
            let words = head.split(separator: " ")
            let isTunnel = words[0] == "CONNECT"
            let target = isTunnel ? String(words[1]) : URL(string: String(words[1])).map { "\($0.host() ?? ""):\($0.port ?? 80)" } ?? ""
            let port = target.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
            guard let origin = RawConnection(to: port) else {
                return connection.send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            }
            defer { close(origin.socket) }
            if isTunnel {
                connection.send("HTTP/1.1 200 OK\r\n\r\n")
            } else {
                // The connection stays with one origin, as with most proxies' upstream connections.
                let path = URL(string: String(words[1]))?.path(percentEncoded: true) ?? "/"
                let lines = head.components(separatedBy: "\r\n").dropFirst().filter { !$0.hasPrefix("Proxy-") }
                origin.send("\(words[0]) \(path) HTTP/1.1\r\n" + lines.joined(separator: "\r\n"))
            }
            return connection.relay(to: origin)
        }
    }

    private static func serveSOCKS(_ connection: RawConnection, _ authorization: String?, _ note: (String) -> Void) {
        func read(_ count: Int) -> [UInt8] { connection.read(count) ?? [] }
        let greeting = read(2)
        guard greeting.count == 2 else { return }
        let methods = read(Int(greeting[1]))
        let method: UInt8 = authorization == nil ? 0 : 2
        guard methods.contains(method) else { return connection.send([5, 0xFF]) }
        connection.send([5, method])
        if let authorization {
            let user = String(decoding: read(Int(read(2).last ?? 0)), as: UTF8.self)
            let password = String(decoding: read(Int(read(1).last ?? 0)), as: UTF8.self)
            guard "\(user):\(password)" == authorization else { return connection.send([1, 1]) }
            connection.send([1, 0])
        }
        let request = read(4)
        guard request.count == 4 else { return }
        let host = request[3] == 3 ? String(decoding: read(Int(read(1).last ?? 0)), as: UTF8.self) : "\(read(request[3] == 1 ? 4 : 16))"
        let port = read(2).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        note("\(host):\(port)")
        guard let origin = RawConnection(to: port) else { return connection.send([5, 5, 0, 1, 0, 0, 0, 0, 0, 0]) }
        defer { close(origin.socket) }
        connection.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        connection.relay(to: origin)
    }
}
#endif
