package import Foundation
internal import StoreCore

/// An event of a WebSocket, in either direction.
package enum SocketEvent: Hashable, Sendable {
    case text(String)
    case data(Data)
    case ping(Data)
    case pong(Data)
    /// The end of the messages; `nil` for a Close frame without a code.
    case close(code: UInt16?, reason: String)

    /// Whether a Close frame may contain a code (RFC 6455 §7.4).
    package static func isCloseCode(_ code: UInt16) -> Bool {
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}

/// The transport's side of a WebSocket.
package protocol SocketLink: Sendable {
    /// Throws unless the header fields of the response accept the handshake.
    func check(_ fields: HTTPFields) throws(TransportFailure)

    /// Receives events until the connection ends or `take` returns false.
    ///
    /// Reads nothing while `take` runs, so that a slow reader stops the server.
    ///
    /// - Throws: ``SocketFault`` for frames that break the rules; ``TransportFailure`` if the connection is lost.
    func receive(_ body: HTTPResponse.Body, _ take: (SocketEvent) async throws -> Bool) async throws

    /// Sends a message or a control frame, and waits until the wire has taken it, or has begun with a message of several frames.
    ///
    /// - Throws: ``TransportFailure``. A canceled task sends all of it or nothing.
    func send(_ event: SocketEvent) async throws

    /// Sends a ping or a pong without waiting; it replaces an earlier one that still waits (RFC 6455 §5.5.3).
    func post(_ event: SocketEvent)

    /// Sends nothing more after the frames that wait.
    func finish()
}

/// The upgrade of a call to a WebSocket (RFC 6455 §4).
package final class SocketUpgrade: Sendable {
    package let protocols: [String]
    package let messageBytes: Int
    /// The time without any frame after which the connection counts as lost; `nil` for no limit.
    package let silence: Duration?
    private let latest = Lock<(any SocketLink)?>(nil)

    package init(protocols: [String], messageBytes: Int, silence: Duration?) {
        self.protocols = protocols
        self.messageBytes = messageBytes
        self.silence = silence
    }

    /// The link of the latest attempt; `nil` if the transport opens no WebSockets.
    package var link: (any SocketLink)? { latest.withLock { $0 } }

    func began(_ link: any SocketLink) { latest.withLock { $0 = link } }
}
