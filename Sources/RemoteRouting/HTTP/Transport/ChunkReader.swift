internal import Dispatch
internal import Foundation
internal import StoreCore

/// A pass over the chunks of a request body, which requests a chunk from their sequence only when a transport can send it.
///
/// A task of its own iterates the sequence, because an iterator stays in its task. Canceling or releasing the reader cancels that task.
final class ChunkReader: Sendable {
    /// Receives the next chunk, `nil` at the end, or the error of the sequence.
    typealias Receiver = @Sendable (Result<Data?, any Error>) -> Void

    private let desk: Desk
    private let task: Task<Void, Never>

    /// Creates a reader; the sequence is made when its first chunk is requested. An announced length is checked.
    init(length: Int64?, _ make: @escaping @Sendable () throws -> () async throws -> Data?) {
        let (requests, request) = AsyncStream<Void>.makeStream()
        let desk = Desk(request)
        self.desk = desk
        task = Task { await desk.serve(requests, length, make) }
    }

    deinit { cancel() }

    /// Requests the next chunk. The receiver of an earlier request must have been called.
    func read(_ receiver: @escaping Receiver) { desk.request(receiver) }

    func next() async throws -> Data? {
        let (outcomes, outcome) = AsyncStream<Result<Data?, any Error>>.makeStream()
        read { result in
            outcome.yield(result)
            outcome.finish()
        }
        var iterator = outcomes.makeAsyncIterator()
        // Only the cancellation of the task ends the stream without a result.
        guard let result = await iterator.next(isolation: #isolation) else { throw CancellationError() }
        return try result.get()
    }

    /// Blocks the thread until the next chunk has arrived; `nil` at the end.
    func waitForNext() throws -> Data? {
        let outcome = Lock<Result<Data?, any Error>?>(nil)
        let hasArrived = DispatchSemaphore(value: 0)
        read { result in
            outcome.withLock { $0 = result }
            hasArrived.signal()
        }
        hasArrived.wait()
        guard let result = outcome.withLock({ $0 }) else { return nil }
        return try result.get()
    }

    /// Cancels the sequence, and fails the request that waits for its next chunk.
    func cancel() {
        // First, because a canceled sequence may end without an error, which must not look like the end of the body.
        desk.end(.failure(CancellationError()))
        task.cancel()
    }

    /// The request of a transport, between the reader and the task, which must not retain the reader.
    private final class Desk: Sendable {
        private struct State {
            var receiver: Receiver?
            /// The final result, also of all later requests.
            var end: Result<Data?, any Error>?
        }

        private let state = Lock(State())
        private let signal: AsyncStream<Void>.Continuation

        init(_ signal: AsyncStream<Void>.Continuation) { self.signal = signal }

        func request(_ receiver: @escaping Receiver) {
            let end = state.withLock { state -> Result<Data?, any Error>? in
                if state.end == nil { state.receiver = receiver }
                return state.end
            }
            if let end { receiver(end) } else { signal.yield() }
        }

        func end(_ result: Result<Data?, any Error>) {
            let receiver = state.withLock { state -> Receiver? in
                if state.end == nil { state.end = result }
                return state.receiver.take()
            }
            receiver?(result)
            signal.finish()
        }

        func serve(
            _ requests: AsyncStream<Void>, _ length: Int64?, _ make: @Sendable () throws -> () async throws -> Data?
        ) async {
            var requests = requests.makeAsyncIterator()
            guard await requests.next(isolation: #isolation) != nil else { return }
            do {
                let next = try make()
                var left = length
                var last: Data?
                while let chunk = try await next() {
                    guard !chunk.isEmpty else { continue }
                    if let known = left {
                        guard last == nil, Int64(chunk.count) <= known else { throw TransportFailure.longBody }
                        left = known - Int64(chunk.count)
                        if known == Int64(chunk.count) {
                            // Sent when the sequence has ended, because the server would take a body that goes on for a complete one.
                            last = chunk
                            continue
                        }
                    }
                    deliver(chunk)
                    guard await requests.next(isolation: #isolation) != nil else { return }
                }
                guard left ?? 0 == 0 else { throw TransportFailure.shortBody }
                if let last {
                    deliver(last)
                    guard await requests.next(isolation: #isolation) != nil else { return }
                }
                end(.success(nil))
            } catch {
                end(.failure(error))
            }
        }

        private func deliver(_ chunk: Data) {
            let receiver = state.withLock { state -> Receiver? in state.receiver.take() }
            receiver?(.success(chunk))
        }
    }
}
