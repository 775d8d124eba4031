internal import Foundation
import StoreCore

/// One request under way: collects the answer, ends once, and lets go of the connection when it ends early.
final class TextExchange: Sendable {
    private struct State {
        var head: ResponseHead?
        var bytes = Data()
        var redirects = 0
        var result: Result<FetchResult<RemoteText>, any Error>?
        var waiting: CheckedContinuation<Void, Never>?
        var stop: (@Sendable () -> Void)?
    }

    private let file: RemoteFile
    private let isConditional: Bool
    /// Guards what has come of the answer, and who waits for it.
    private let state = Lock(State())

    init(_ file: RemoteFile, isConditional: Bool) {
        self.file = file
        self.isConditional = isConditional
    }

    /// What lets go of the connection.
    func onStop(_ stop: @escaping @Sendable () -> Void) {
        state.withLock { $0.stop = stop }
    }

    /// Waits for the answer.
    func result() async throws -> FetchResult<RemoteText> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.result == nil { state.waiting = continuation }
                    return state.result != nil
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            end(.failure(CancellationError()))
        }
        guard let result = state.withLock({ $0.result }) else { preconditionFailure("an exchange was woken without an answer") }
        return try result.get()
    }

    /// Ends the exchange; the first end counts.
    func end(_ result: Result<FetchResult<RemoteText>, any Error>) {
        let (waiting, stop) = state.withLock { state -> (CheckedContinuation<Void, Never>?, (@Sendable () -> Void)?) in
            guard state.result == nil else { return (nil, nil) }
            state.result = result
            state.bytes = Data()
            defer {
                state.waiting = nil
                state.stop = nil
            }
            return (state.waiting, state.stop)
        }
        stop?()
        waiting?.resume()
    }

    // MARK: What happens to the answer

    /// Where a redirect leads; `nil` where it is not followed and is itself the answer.
    func redirect(to url: URL?) -> URL? {
        guard let url, let scheme = url.scheme?.lowercased(), scheme == file.url.scheme?.lowercased() else { return nil }
        return state.withLock { state in
            state.redirects += 1
            return state.redirects <= 5 ? url : nil
        }
    }

    func receive(_ head: ResponseHead) {
        let isLong = head.status == 200 && !head.isCoded && (head.length ?? 0) > file.limit
        state.withLock { $0.head = head }
        if isLong { end(.failure(tooLarge)) }
    }

    func receive(_ data: Data) {
        let isLong = state.withLock { state in
            guard state.result == nil, state.head?.status == 200 else { return false }
            guard state.bytes.count + data.count <= file.limit else { return true }
            state.bytes.append(data)
            return false
        }
        if isLong { end(.failure(tooLarge)) }
    }

    func fail(_ error: any Error) {
        let name = file.url.absoluteString
        end(.failure(TextStoreError(.unreachable, "getting \(name): the origin did not answer; try again later", underlyingError: error)))
    }

    func finish() {
        let (head, bytes) = state.withLock { ($0.head, $0.bytes) }
        end(Result { try answer(head, bytes) })
    }

    private func answer(_ head: ResponseHead?, _ bytes: Data) throws(TextStoreError) -> FetchResult<RemoteText> {
        let name = file.url.absoluteString
        guard let head else { throw TextStoreError(.unreachable, "getting \(name): the answer is not one of HTTP; look at the address") }
        switch head.status {
        case 200:
            // A connection that ended early is no error to every system's loader.
            if !head.isCoded, let length = head.length, length != bytes.count {
                throw TextStoreError(.lengthMismatch, "getting \(name): \(bytes.count) bytes came of \(length); try again later")
            }
            return .modified(RemoteText(bytes: bytes, contentType: head.contentType, headers: head.headers), .unspecified, head.validator)
        case 304 where isConditional:
            return .notModified()
        default:
            let advice = (300..<400).contains(head.status) ? "let the address be the file's own" : "look at the server"
            throw TextStoreError(
                .unexpectedStatus, "getting \(name): the origin answered \(head.status); \(advice)", retryAfter: head.retryAfter)
        }
    }

    private var tooLarge: TextStoreError {
        TextStoreError(.tooLarge, "getting \(file.url.absoluteString): more than the limit of \(file.limit) bytes; raise the file's limit")
    }
}
