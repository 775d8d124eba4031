#if os(Linux)
public import Foundation
import Glibc
import StoreCore

/// A server of TLS on 127.0.0.1 that hands what it decrypts on to an origin, connection by connection.
///
/// ```swift
/// let front = try TLSFront(of: origin.port, TLSFront.Settings(certificate: chain, key: key))
/// // … requests to https://127.0.0.1:(front.port) …
/// print(front.record.handshakes, origin.requests.count)
/// ```
///
/// Each connection is served by a thread that blocks. Needs libssl, which is looked for at run time.
public final class TLSFront: Sendable {
    /// The certificate that the server has, and its demands on clients.
    public struct Settings: Sendable {
        /// A version of TLS, by its number on the wire.
        public enum Version: Int, Sendable {
            case tls12 = 0x0303
            case tls13 = 0x0304
        }

        /// A file of the certificate and its intermediates in PEM.
        public var certificate: URL
        /// A file of the private key in PEM.
        public var key: URL
        /// A file of the authorities of clients; `nil` asks for no client certificate.
        public var clientAuthorities: URL?
        /// The versions that the server offers.
        public var versions: ClosedRange<Int>
        /// Whether the end of a connection is announced (RFC 8446 §6.1), and not only the socket closed.
        public var announcesEnd = true

        /// A server with a certificate, and with demands on clients if it has authorities for them.
        public init(certificate: URL, key: URL, clientAuthorities: URL? = nil, from: Version = .tls12, upTo: Version = .tls13) {
            self.certificate = certificate
            self.key = key
            self.clientAuthorities = clientAuthorities
            versions = from.rawValue...upTo.rawValue
        }
    }

    /// The connections that the server has seen.
    public struct Record: Sendable {
        /// How many were accepted.
        public internal(set) var accepted = 0
        /// How many were secured.
        public internal(set) var handshakes = 0
        /// How many of these resumed a session.
        public internal(set) var resumptions = 0
        /// How many have ended.
        public internal(set) var ended = 0
        /// How many bytes clients sent over secured connections.
        public internal(set) var receivedBytes = 0
    }

    /// Whether this system has libssl.
    public static var isAvailable: Bool { OpenSSL.shared != nil }

    /// The port on 127.0.0.1.
    public let port: UInt16
    private let listener: Int32
    private let state = WatchedState(Record())

    /// The connections so far.
    public var record: Record { state.current }

    /// Starts a server in front of a port of this machine.
    ///
    /// - Parameters:
    ///   - origin: The port that gets what is decrypted.
    ///   - settings: The certificate that the server has, and its demands on clients.
    /// - Throws: `LoopbackOrigin.Failure` where libssl is missing or takes no such file, or the system refuses a socket.
    public init(of origin: UInt16, _ settings: Settings) throws {
        guard let openSSL = OpenSSL.shared else { throw LoopbackOrigin.Failure(code: .system, description: "there is no libssl") }
        let context = try Context(openSSL, settings)
        let listener = openSocket()
        let isBound = withLoopbackAddress(port: 0) { bind(listener, $0, $1) == 0 }
        guard listener >= 0, isBound, listen(listener, 128) == 0 else { throw LoopbackOrigin.Failure.system("listen", errno) }
        self.listener = listener
        port = localPort(of: listener)
        let announcesEnd = settings.announcesEnd
        Thread { [state] in
            while true {
                let client = Glibc.accept(listener, nil, nil)
                if client < 0, errno == EMFILE || errno == ENFILE || errno == EINTR {
                    // The process uses all descriptors for a moment.
                    usleep(10_000)
                    continue
                }
                guard client >= 0 else { break }
                // A copy in a child process would keep the connection open.
                _ = fcntl(client, F_SETFD, FD_CLOEXEC)
                state.update { $0.accepted += 1 }
                Thread {
                    Connection(context, client, state, announcesEnd: announcesEnd).serve(origin)
                    state.update { $0.ended += 1 }
                }.start()
            }
            close(listener)
        }.start()
    }

    // This ends the accepting thread, which closes the listener. Closed here, its number could belong to the next listener before the thread
    // accepts again.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}

extension TLSFront {
    /// The server's certificate and demands, as libssl holds them.
    fileprivate final class Context: Sendable {
        let openSSL: OpenSSL
        /// The address of libssl's object, which may be used by several threads.
        private let bits: UInt

        var pointer: OpaquePointer? { OpaquePointer(bitPattern: bits) }

        init(_ openSSL: OpenSSL, _ settings: Settings) throws {
            self.openSSL = openSSL
            guard let made = openSSL.makeServerContext() else { throw LoopbackOrigin.Failure.system("make a context of libssl", errno) }
            bits = UInt(bitPattern: made)
            // 123, 124: the oldest and the newest version. 78: no waiting for data behind records that hold none.
            _ = openSSL.control(made, 123, settings.versions.lowerBound, nil)
            _ = openSSL.control(made, 124, settings.versions.upperBound, nil)
            _ = openSSL.control(made, 78, 4, nil)
            guard openSSL.useChain(made, settings.certificate.path) == 1, openSSL.useKey(made, settings.key.path, 1) == 1,
                openSSL.setSessionContext(made, "front", 5) == 1
            else { throw LoopbackOrigin.Failure(code: .system, description: "libssl takes no such certificate") }
            guard let authorities = settings.clientAuthorities else { return }
            guard openSSL.useAuthorities(made, authorities.path, nil) == 1 else {
                throw LoopbackOrigin.Failure(code: .system, description: "libssl takes no such authorities")
            }
            // A client must have a certificate, which is verified.
            openSSL.setVerification(made, 3, nil)
        }

        deinit { openSSL.freeContext(pointer) }
    }

    /// One connection of a client, on its thread.
    fileprivate struct Connection {
        private let openSSL: OpenSSL
        private let context: Context
        private let client: Int32
        private let state: WatchedState<Record>
        private let announcesEnd: Bool

        init(_ context: Context, _ client: Int32, _ state: WatchedState<Record>, announcesEnd: Bool) {
            openSSL = context.openSSL
            self.context = context
            self.client = client
            self.state = state
            self.announcesEnd = announcesEnd
        }

        func serve(_ origin: UInt16) {
            defer { close(client) }
            // libssl writes without the flag that keeps a broken connection from being a signal.
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
            let connection = openSSL.makeConnection(context.pointer)
            defer { openSSL.freeConnection(connection) }
            guard openSSL.setDescriptor(connection, client) == 1, openSSL.accept(connection) == 1 else {
                // Closed at once, a socket with unread bytes resets the connection, and the client may lose the alert.
                shutdown(client, Int32(SHUT_WR))
                var byte: UInt8 = 0
                while recv(client, &byte, 1, 0) > 0 {}
                return
            }
            let isResumed = openSSL.isResumed(connection) == 1
            state.update { record in
                record.handshakes += 1
                if isResumed { record.resumptions += 1 }
            }
            let server = openSocket()
            defer { close(server) }
            guard withLoopbackAddress(port: origin, { connect(server, $0, $1) == 0 }) else { return }
            exchange(connection, server)
        }

        /// Passes bytes on in both directions until a side ends.
        private func exchange(_ connection: OpaquePointer?, _ server: Int32) {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                var looks = [pollfd(fd: client, events: Int16(POLLIN), revents: 0), pollfd(fd: server, events: Int16(POLLIN), revents: 0)]
                let isPending = openSSL.pending(connection) > 0
                if poll(&looks, 2, isPending ? 0 : -1) < 0, errno != EINTR { return }
                if looks[1].revents != 0 {
                    let count = recv(server, &buffer, buffer.count, 0)
                    guard count > 0 else { return end(connection, isReset: count < 0) }
                    guard openSSL.write(connection, &buffer, Int32(count)) == Int32(count) else { return }
                }
                if isPending || looks[0].revents != 0 {
                    let count = openSSL.read(connection, &buffer, Int32(buffer.count))
                    if count > 0 {
                        state.update { $0.receivedBytes += Int(count) }
                        guard send(server, &buffer, Int(count), Int32(MSG_NOSIGNAL)) == Int(count) else { return }
                    } else if openSSL.error(connection, count) != 2 {
                        // 2: a record without data.
                        return
                    }
                }
            }
        }

        /// Ends the client's connection as the origin ended its own.
        private func end(_ connection: OpaquePointer?, isReset: Bool) {
            if isReset {
                var now = linger(l_onoff: 1, l_linger: 0)
                setsockopt(client, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
            } else if announcesEnd {
                _ = openSSL.end(connection)
            }
        }
    }
}
#endif
