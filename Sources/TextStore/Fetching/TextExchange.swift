internal import Foundation
internal import RemoteHTTP
import StoreCore

/// A request in flight: collects the response within its limit, and ends once.
final class TextExchange: WireReceiver {
    /// A complete response; its body is empty unless the status is 200.
    struct Response: Sendable {
        let head: WireHead
        let body: Data
    }

    private struct State {
        var head: WireHead?
        var body = Data()
        /// The number of body bytes that arrived, and the number that may arrive.
        var count = 0
        var most = 0
        var result: Result<Response, any Error>?
        var stop: (@Sendable () -> Void)?
    }

    private let file: RemoteFile
    private let leavesCoding: Bool
    private let state = WatchedState(State())

    /// Makes the exchange of a file.
    ///
    /// - Parameters:
    ///   - file: The file, with the limit of its bytes.
    ///   - leavesCoding: Whether the transport delivers the body with its content coding.
    init(_ file: RemoteFile, leavesCoding: Bool) {
        self.file = file
        self.leavesCoding = leavesCoding
    }

    /// Sets the closure that ends the exchange on the wire; calls it at once if the exchange has already ended.
    func onStop(_ stop: @escaping @Sendable () -> Void) {
        let isTooLate = state.update { state in
            guard state.result == nil else { return true }
            state.stop = stop
            return false
        }
        if isTooLate { stop() }
    }

    /// Waits for the response.
    ///
    /// - Throws: ``TextStoreError``; `CancellationError` as soon as the task is canceled, which ends the exchange on the wire.
    func response() async throws -> Response {
        do { return try await state.wait { $0.result }.get() } catch {
            end(.failure(error), isEarly: true)
            throw error
        }
    }

    /// Ends the exchange because its deadline has passed.
    func expire(after deadline: Duration) {
        let error = TextStoreError(
            .timedOut, "cannot get \(file.url.absoluteString): the response was not complete within \(deadline); try again later")
        end(.failure(error), isEarly: true)
    }

    // MARK: The transport's side

    func sent(_ total: Int64) {}

    func received(_ head: WireHead?, _ body: Data, isComplete: Bool) -> WireFlow {
        let result = state.update { state -> Result<Response, any Error>? in
            guard state.result == nil else { return nil }
            if state.head == nil, let head {
                state.head = head
                state.most = most(head)
                if head.status == 200, head.length ?? 0 > file.limit { return .failure(file.tooLarge) }
            }
            guard let head = state.head else {
                return isComplete ? .failure(unreachable("the connection ended without a response; check the server", nil)) : nil
            }
            state.count += body.count
            guard head.status == 200 else {
                return isComplete || state.count > state.most ? .success(Response(head: head, body: Data())) : nil
            }
            guard state.count <= state.most else { return .failure(file.tooLarge) }
            state.body.append(body)
            return isComplete ? .success(Response(head: head, body: state.body)) : nil
        }
        if let result { end(result, isEarly: !isComplete) }
        return .goesOn
    }

    func failed(_ failure: WireFailure) {
        // Reports the status even if the body fails, because the status is the more precise error.
        let head = state.read { $0.head }
        let result: Result<Response, any Error> =
            if let head, head.status != 200 {
                .success(Response(head: head, body: Data()))
            } else {
                .failure(unreachable(failure.message, failure.underlyingError ?? failure))
            }
        end(result, isEarly: false)
    }

    /// Returns the number of body bytes to read.
    private func most(_ head: WireHead) -> Int {
        // Reading the short body of an error or a redirect keeps the connection reusable.
        guard head.status == 200 else { return 65_536 }
        // A content coding enlarges short bodies by some bytes.
        return leavesCoding && head.coding != nil ? max(file.limit, file.limit &+ 65_536) : file.limit
    }

    private func unreachable(_ message: String, _ cause: (any Error)?) -> TextStoreError {
        TextStoreError(.unreachable, "cannot get \(file.url.absoluteString): \(message)", underlyingError: cause)
    }

    /// Ends the exchange; later ends are ignored.
    private func end(_ result: Result<Response, any Error>, isEarly: Bool) {
        let stop = state.update { state -> (@Sendable () -> Void)? in
            guard state.result == nil else { return nil }
            state.result = result
            state.body = Data()
            defer { state.stop = nil }
            return isEarly ? state.stop : nil
        }
        stop?()
    }
}

extension RemoteFile {
    /// The error for a body longer than the limit.
    var tooLarge: TextStoreError {
        TextStoreError(.tooLarge, "cannot get \(url.absoluteString): the body exceeds the limit of \(limit) bytes; raise the file's limit")
    }
}
