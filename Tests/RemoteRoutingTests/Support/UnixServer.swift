#if os(Linux)
import Foundation
import Glibc
import StoreCore

/// An HTTP server on a Unix domain socket, which sends back the first line and the body of each request.
final class UnixServer: Sendable {
    let path: String
    private let listener: Int32
    private let accepted = WatchedState(0)

    /// The number of accepted connections.
    var acceptedConnections: Int { accepted.current }

    init(_ path: String) throws {
        self.path = path
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
        guard listener >= 0, isBound == 0, listen(listener, 128) == 0 else { throw POSIXError(.EADDRNOTAVAIL) }
        Thread { [accepted, listener] in
            while case let connection = accept(listener, nil, nil), connection >= 0 {
                accepted.update { $0 += 1 }
                Thread {
                    UnixServer.serve(RawConnection(socket: connection, number: 0))
                    close(connection)
                }.start()
            }
            close(listener)
        }.start()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

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
#endif
