package import StorePlatform

/// A nonblocking TCP socket on 127.0.0.1, with the few POSIX calls that the origin needs.
struct Socket: Sendable {
    let descriptor: Int32

    /// The result of an attempt to accept.
    enum Acceptance {
        case connection(Socket)
        case noConnection
        /// The process has no descriptor left; an immediate retry would only spin.
        case exhausted
    }

    /// The result of an attempt to send or receive.
    enum Transfer: Equatable {
        case bytes(Int)
        case wouldBlock
        case ended
    }

    /// Returns a socket that is bound to `port` but does not listen yet: it reserves the port while connections are refused.
    static func bound(to port: UInt16) throws(LoopbackOrigin.Failure) -> Socket {
        let socket = try open()
        socket.set(SO_REUSEADDR, at: SOL_SOCKET, to: Int32(1))
        let outcome = withLoopbackAddress(port: port) { bind(socket.descriptor, $0, $1) }
        guard outcome == 0 else {
            let failure = LoopbackOrigin.Failure.system("bind to 127.0.0.1:\(port)", errno)
            socket.hangUp()
            throw failure
        }
        return socket
    }

    /// Starts queueing connections.
    func startListening() throws(LoopbackOrigin.Failure) { guard listen(descriptor, 4096) == 0 else { throw .system("listen", errno) } }

    /// Accepts the next connection from the queue.
    func acceptConnection() -> Acceptance {
        let accepted = accept(descriptor, nil, nil)
        guard accepted >= 0 else { return errno == EMFILE || errno == ENFILE ? .exhausted : .noConnection }
        let connection = Socket(descriptor: accepted)
        connection.prepare()
        // Otherwise Nagle's algorithm would gather a drip of single bytes into one packet.
        connection.set(TCP_NODELAY, at: Int32(IPPROTO_TCP), to: Int32(1))
        return .connection(connection)
    }

    /// Reads available bytes into `buffer`.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 { return .bytes(count) }
        return count < 0 && Self.isTemporary(errno) ? .wouldBlock : .ended
    }

    /// Sends as many of `bytes` as the kernel accepts now.
    func transmit(_ bytes: ArraySlice<UInt8>) -> Transfer {
        #if canImport(Darwin)
        let flags: Int32 = 0
        #else
        let flags = Int32(MSG_NOSIGNAL)
        #endif
        let count = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
        if count >= 0 { return .bytes(count) }
        return Self.isTemporary(errno) ? .wouldBlock : .ended
    }

    /// Closes the sending side; the socket can still read.
    func finishSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Stops accepting and closes, even if a child process that is being started still holds a copy of the descriptor.
    func stopListening() {
        _ = shutdown(descriptor, Int32(SHUT_RDWR))
        _ = close(descriptor)
    }

    /// Closes the socket normally; the peer learns of it at once, even if a child process that is being started still holds a copy of the
    /// descriptor.
    func hangUp() {
        finishSending()
        _ = close(descriptor)
    }

    /// Closes the socket with a reset, which the peer sees as an error.
    func reset() {
        set(SO_LINGER, at: SOL_SOCKET, to: linger(l_onoff: 1, l_linger: 0))
        _ = close(descriptor)
    }
}

extension Socket {
    private static func open() throws(LoopbackOrigin.Failure) -> Socket {
        let descriptor = openSocket()
        guard descriptor >= 0 else { throw .system("open a socket", errno) }
        let opened = Socket(descriptor: descriptor)
        opened.prepare()
        return opened
    }

    /// Makes the socket nonblocking, and prevents child processes from inheriting it, which would keep the port open.
    private func prepare() {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
        set(SO_NOSIGPIPE, at: SOL_SOCKET, to: Int32(1))
        #endif
    }

    private func set<Value: BitwiseCopyable>(_ option: Int32, at level: Int32, to value: Value) {
        var value = value
        _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Value>.size))
    }

    private static func isTemporary(_ code: Int32) -> Bool { code == EAGAIN || code == EWOULDBLOCK || code == EINTR }
}

/// Opens a TCP socket that child processes do not inherit; a negative number if the system refuses it.
package func openSocket() -> Int32 {
    #if canImport(Glibc)
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    #else
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    // With a copy in a child process, the connection or the port would stay open.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
}

/// Calls a function of the system with the address of a port on 127.0.0.1, and the size of the address.
package func withLoopbackAddress<Result>(port: UInt16, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
}

/// Returns the port of a socket; zero if it has none.
package func localPort(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let outcome = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
    }
    return outcome == 0 ? UInt16(bigEndian: address.sin_port) : 0
}
