internal import Foundation
internal import RemoteHTTP
internal import StoreCore

/// The connection of a `WebSocket`: its unread messages, its pings, and its closing handshake.
///
/// A task of its own receives, so that pings are answered while no message is read.
final class SocketConnection: Sendable {
    private enum End {
        case closed
        case failed(RemoteError)
    }

    private struct State: Sendable {
        var messages: [WebSocket.Message] = []
        var bytes = 0
        var end: End?
        var closure: WebSocket.Closure?
        /// Whether this side has sent a Close frame, or is about to.
        var isClosing = false
        var isOver = false

        /// Whether the reader is behind, so that nothing more is received.
        var isFull: Bool { (bytes > 65_536 || messages.count > 256) && !isClosing && end == nil }
    }

    private let link: any SocketLink
    private let body: HTTPResponse.Body
    private let call: RouteCall
    private let pingInterval: Duration?
    private let state = WatchedState(State())

    init(_ link: any SocketLink, _ body: HTTPResponse.Body, _ call: RouteCall, pingInterval: Duration?) {
        self.link = link
        self.body = body
        self.call = call
        self.pingInterval = pingInterval
    }

    var closure: WebSocket.Closure? { state.read { $0.closure } }

    // MARK: Receiving

    func run() async {
        await withTaskGroup(of: Void.self) { group in
            if let pingInterval { group.addTask { [self] in await sendPings(every: pingInterval) } }
            await receive()
            group.cancelAll()
        }
        body.stop()
        state.update { state in
            state.isOver = true
            if state.end == nil { state.end = .closed }
        }
    }

    private func receive() async {
        do {
            try await link.receive(body) { event in try await take(event) }
            let failure = TransportFailure(
                .connectionLost, "the server ended the connection without a Close frame; open another WebSocket")
            if state.read({ $0.closure == nil }) { return end(failure) }
        } catch let fault as SocketFault {
            end(fault.failure)
            await sendClose(fault.closeCode, "")
        } catch {
            return end(error)
        }
        // Ignores the reason of the end, because the socket is closed already.
        try? await withClosingLimit { [body] in for try await _ in body {} }
    }

    /// Handles an event; returns false after the Close frame.
    private func take(_ event: SocketEvent) async throws -> Bool {
        switch event {
        case .text(let text): try await keep(.text(text), text.utf8.count)
        case .data(let data): try await keep(.data(data), data.count)
        case .ping(let payload): link.post(.pong(payload))
        case .pong: break
        case .close(let code, let reason):
            state.update { state in
                state.closure = WebSocket.Closure(code: code.map { WebSocket.CloseCode(rawValue: $0) }, reason: reason)
                if state.end == nil { state.end = .closed }
            }
            await sendClose(code, "")
            return false
        }
        return true
    }

    private func keep(_ message: WebSocket.Message, _ count: Int) async throws {
        let isFull = state.update { state in
            if state.isClosing || state.end != nil { return false }
            state.messages.append(message)
            state.bytes += count
            return state.isFull
        }
        if isFull { _ = try await state.wait { state -> Bool? in state.isFull ? nil : true } }
    }

    /// Ends the messages with a failure, unless the socket is closed already.
    private func end(_ failure: any Error) {
        let error = explain(failure)
        state.update { state in
            if state.end == nil { state.end = state.isClosing ? .closed : .failed(error) }
        }
    }

    private func sendPings(every interval: Duration) async {
        let time = call.host.time
        // Only cancellation ends the sleep with an error.
        while (try? await time.sleep(until: time.now.advanced(by: interval))) != nil { link.post(.ping(Data())) }
    }

    // MARK: Reading and sending

    func next() async throws -> WebSocket.Message? {
        while true {
            let step: Result<WebSocket.Message?, RemoteError>? = state.update { state in
                if !state.messages.isEmpty {
                    let message = state.messages.removeFirst()
                    state.bytes -= message.count
                    return .success(message)
                }
                guard case .failed(let error)? = state.end else { return state.end == nil ? nil : .success(nil) }
                state.end = .closed
                return .failure(error)
            }
            if let step { return try step.get() }
            do {
                _ = try await state.wait { state -> Bool? in state.messages.isEmpty && state.end == nil ? nil : true }
            } catch {
                body.stop()
                throw explain(error)
            }
        }
    }

    func send(_ event: SocketEvent) async throws {
        do {
            try await link.send(event)
        } catch {
            throw explain(error)
        }
    }

    // MARK: Closing

    func close(_ code: UInt16, _ reason: String) async throws {
        guard SocketEvent.isCloseCode(code), reason.utf8.count <= 123 else {
            throw call.error(
                .build, .invalidRoute, call.sentRequest,
                "the code \(code) is never sent, or the reason has more than 123 bytes; use 1000 or 3000 to 4999, and less text")
        }
        do {
            try await withClosingLimit { [self] in
                await sendClose(code, reason)
                _ = try await state.wait { now -> Bool? in now.isOver ? true : nil }
            }
        } catch {
            body.stop()
            if !(error is DeadlinePassed) { throw explain(error) }
        }
    }

    /// Closes the socket in the background, because nothing reads it any longer.
    func abandon() {
        guard state.read({ !$0.isOver }) else { return }
        // Ignores the result, which nothing waits for.
        Task { try? await close(WebSocket.CloseCode.goingAway.rawValue, "") }
    }

    /// Sends a Close frame and nothing after it, unless one was sent.
    private func sendClose(_ code: UInt16?, _ reason: String) async {
        let isFirst = state.update { state in
            defer { state.isClosing = true }
            return !state.isClosing
        }
        guard isFirst else { return }
        // A lost connection needs no Close frame.
        try? await withClosingLimit { [link] in try await link.send(.close(code: code, reason: reason)) }
        link.finish()
    }

    private func withClosingLimit(_ operation: @escaping @Sendable () async throws -> Void) async throws {
        let time = call.host.time
        try await within(time.now.advanced(by: .seconds(5)), of: time, operation)
    }

    private func explain(_ error: any Error) -> RemoteError { call.error(for: error, call.sentRequest) }
}

extension WebSocket.Message {
    fileprivate var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .data(let data): data.count
        }
    }
}
