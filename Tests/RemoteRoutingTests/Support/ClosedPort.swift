import Foundation
import StorePlatform

/// A port of 127.0.0.1 that refuses connections, and that the system gives to no other server meanwhile.
///
/// On Linux, a server that names the port may listen on it, if it sets `SO_REUSEADDR` as most servers do.
final class ClosedPort: Sendable {
    let number: Int
    private let descriptor: Int32

    init() throws {
        #if canImport(Glibc)
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        #else
        let made = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        // Without it, the port could not be named again.
        var isShared: Int32 = 1
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &isShared, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // Without `listen`, the system refuses each connection.
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(made, $0, length) == 0 && getsockname(made, $0, &length) == 0 }
        }
        guard isBound else {
            close(made)
            throw CocoaError(.fileReadUnknown)
        }
        (descriptor, number) = (made, Int(UInt16(bigEndian: address.sin_port)))
    }

    deinit { close(descriptor) }
}
