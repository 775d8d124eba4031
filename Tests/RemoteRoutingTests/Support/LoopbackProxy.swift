#if os(Linux)
import Foundation
import Glibc
import StoreCore

/// A proxy on this machine: tunnels (RFC 9110 §9.3.6), absolute-form requests (RFC 9112 §3.2.2), and SOCKS 5 (RFC 1928).
final class LoopbackProxy: Sendable {
    private let server: RawServer
    private let heads = WatchedState<[String]>([])

    /// The proxy's port.
    var port: Int { Int(server.port) }

    /// The heads of the requests to the proxy; of SOCKS the addresses.
    var requests: [String] { heads.current }

    /// Makes a proxy.
    ///
    /// - Parameters:
    ///   - authorization: The value of `Proxy-Authorization` that is wanted, or the user and password of SOCKS.
    ///   - host: The last number of the address 127.0.0.
    ///   - port: The port; 0 for any.
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
            return relay(connection, origin)
        }
    }

    private static func serveSOCKS(_ connection: RawConnection, _ authorization: String?, _ note: (String) -> Void) {
        func read(_ count: Int) -> [UInt8] {
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while bytes.count < count, recv(connection.socket, &byte, 1, 0) == 1 { bytes.append(byte) }
            return bytes
        }
        func send(_ bytes: [UInt8]) { _ = Glibc.send(connection.socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        let greeting = read(2)
        guard greeting.count == 2 else { return }
        let methods = read(Int(greeting[1]))
        let method: UInt8 = authorization == nil ? 0 : 2
        guard methods.contains(method) else { return send([5, 0xFF]) }
        send([5, method])
        if let authorization {
            let user = String(decoding: read(Int(read(2).last ?? 0)), as: UTF8.self)
            let password = String(decoding: read(Int(read(1).last ?? 0)), as: UTF8.self)
            guard "\(user):\(password)" == authorization else { return send([1, 1]) }
            send([1, 0])
        }
        let request = read(4)
        guard request.count == 4 else { return }
        let host = request[3] == 3 ? String(decoding: read(Int(read(1).last ?? 0)), as: UTF8.self) : "\(read(request[3] == 1 ? 4 : 16))"
        let port = read(2).reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        note("\(host):\(port)")
        guard let origin = RawConnection(to: port) else { return send([5, 5, 0, 1, 0, 0, 0, 0, 0, 0]) }
        defer { close(origin.socket) }
        send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        relay(connection, origin)
    }

    /// Copies bytes both ways until both sides have ended.
    private static func relay(_ one: RawConnection, _ other: RawConnection) {
        let isOver = DispatchSemaphore(value: 0)
        for (source, target) in [(one.socket, other.socket), (other.socket, one.socket)] {
            Thread {
                var buffer = [UInt8](repeating: 0, count: 65_536)
                copying: while case let count = recv(source, &buffer, buffer.count, 0), count > 0 {
                    var sent = 0
                    while sent < count {
                        let more = buffer[sent..<count].withUnsafeBytes { send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                        guard more > 0 else { break copying }
                        sent += more
                    }
                }
                shutdown(target, Int32(SHUT_WR))
                isOver.signal()
            }.start()
        }
        isOver.wait()
        isOver.wait()
    }
}
#endif
