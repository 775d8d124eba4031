#if canImport(Darwin)
internal import Foundation

/// A WebSocket of `URLSession`, which writes and reads the frames, and responds to pings.
final class SessionLink: SocketLink {
    private let task: URLSessionWebSocketTask
    private let messageBytes: Int
    /// Postpones the idle deadline of the exchange.
    private let moved: @Sendable () -> Void

    /// Creates the task of a handshake and its link.
    static func task(_ wire: URLRequest, _ exchange: Exchange, _ upgrade: SocketUpgrade, in session: URLSession) -> URLSessionTask {
        var wire = wire
        // The task refuses other schemes.
        if let url = wire.url, var parts = URLComponents(url: url, resolvingAgainstBaseURL: false) {
            parts.scheme = parts.scheme == "http" ? "ws" : "wss"
            wire.url = parts.url
        }
        if !upgrade.protocols.isEmpty {
            wire.setValue(upgrade.protocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = session.webSocketTask(with: wire)
        task.maximumMessageSize = upgrade.messageBytes
        upgrade.began(SessionLink(task, upgrade.messageBytes) { [weak exchange] in exchange?.sent(0, of: nil) })
        return task
    }

    private init(_ task: URLSessionWebSocketTask, _ messageBytes: Int, moved: @escaping @Sendable () -> Void) {
        self.task = task
        self.messageBytes = messageBytes
        self.moved = moved
    }

    /// Does nothing, because the system has checked the handshake.
    func check(_ fields: HTTPFields) throws(TransportFailure) {}

    func receive(_ body: HTTPResponse.Body, _ take: (SocketEvent) async throws -> Bool) async throws {
        while let event = try await next(body) {
            moved()
            guard try await take(event) else { return }
            if case .close = event { return }
        }
    }

    /// Returns the next event; `nil` at the end of the connection. Throws the failure of the exchange, if it has one.
    private func next(_ body: HTTPResponse.Body) async throws -> SocketEvent? {
        do {
            while true {
                switch try await task.receive() {
                case .string(let text): return .text(text)
                case .data(let data): return .data(data)
                @unknown default: continue
                }
            }
        } catch {
            let known = error as NSError
            if known.domain == NSPOSIXErrorDomain, known.code == Int(EMSGSIZE) { throw SocketFault.tooLarge(messageBytes) }
            if task.closeCode != .invalid {
                let code = UInt16(clamping: task.closeCode.rawValue)
                let reason = String(decoding: task.closeReason ?? Data(), as: UTF8.self)
                return .close(code: SocketEvent.isCloseCode(code) ? code : nil, reason: reason)
            }
            for try await _ in body {}
            return nil
        }
    }

    func send(_ event: SocketEvent) async throws {
        do {
            switch event {
            case .text(let text): try await task.send(.string(text))
            case .data(let data): try await task.send(.data(data))
            case .ping, .pong: post(event)
            case .close(let code, let reason):
                let code = URLSessionWebSocketTask.CloseCode(rawValue: Int(code ?? 1000)) ?? .normalClosure
                task.cancel(with: code, reason: Data(reason.utf8))
            }
        } catch {
            // The system reports a message to a closed socket as canceled, or with an error of the socket.
            let isOpen = task.state == .running && task.closeCode == .invalid
            throw isOpen ? TransportFailure(sessionError: error) : TransportFailure.closedSocket
        }
    }

    func post(_ event: SocketEvent) {
        guard case .ping = event else { return }
        task.sendPing { [moved] error in
            if error == nil { moved() }
        }
    }

    /// Does nothing, because the Close frame of `send(_:)` is the last one.
    func finish() {}
}
#endif
