#if os(Linux)
import Foundation
import Glibc
import StoreCore

/// A TCP server that runs a closure per connection, each on its own thread with blocking reads and writes.
final class RawServer: Sendable {
    let port: UInt16
    private let listener: Int32
    private let accepted = WatchedState(0)

    /// The number of accepted connections.
    var acceptedConnections: Int { accepted.current }

    /// - Parameters:
    ///   - host: The last number of the address 127.0.0.
    ///   - port: The port; 0 for any.
    init(host: UInt8 = 1, port: UInt16 = 0, _ serve: @escaping @Sendable (RawConnection) -> Void) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (UInt32(0x7F00_0000) | UInt32(host)).bigEndian
        address.sin_port = port.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 128) == 0 && getsockname(listener, $0, &size) == 0
            }
        }
        guard listener >= 0, isBound else { throw POSIXError(.EADDRNOTAVAIL) }
        self.listener = listener
        self.port = UInt16(bigEndian: address.sin_port)
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

    // This ends the accepting thread, which closes the listener. Closed here, its number could belong to the next listener before the thread
    // accepts again.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}

/// A connection of a ``RawServer``.
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

    /// Reads until the connection ends.
    func drain() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while recv(socket, &buffer, buffer.count, 0) > 0 {}
    }

    /// Closes the sending direction of the connection.
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

extension RawConnection {
    /// Connects to a port of this machine.
    init?(to port: UInt16) {
        let descriptor = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else {
            close(descriptor)
            return nil
        }
        self.init(socket: descriptor, number: 0)
    }
}
#endif
