import Foundation
import LoopbackOrigin
import StorePlatform

/// A port of 127.0.0.1 that refuses connections, and that the system gives to no other server meanwhile.
///
/// On Linux, a server that names the port may listen on it, if it sets `SO_REUSEADDR` as most servers do.
final class ClosedPort: Sendable {
    let number: Int
    private let descriptor: Int32

    init() throws {
        let made = openSocket()
        // Without it, the port could not be named again.
        var isShared: Int32 = 1
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &isShared, socklen_t(MemoryLayout<Int32>.size))
        // Without `listen`, the system refuses each connection.
        let isBound = withLoopbackAddress(port: 0) { bind(made, $0, $1) == 0 }
        let port = localPort(of: made)
        guard isBound, port > 0 else {
            close(made)
            throw CocoaError(.fileReadUnknown)
        }
        (descriptor, number) = (made, Int(port))
    }

    deinit { close(descriptor) }
}
