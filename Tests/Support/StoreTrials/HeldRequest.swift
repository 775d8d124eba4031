import StoreCore
package import Trials

/// A request that ends when the test says so.
package final class HeldRequest<Value: Sendable>: Sendable {
    private let ending = WatchedState<Result<Value, Offline>?>(nil)
    private let began = WatchedState(false)

    package init() {}

    package func run() async throws -> Value {
        began.update { $0 = true }
        return try await ending.wait { $0 }.get()
    }

    package func hasBegun() async throws { try await began.wait { $0 ? () : nil } }
    package func end(_ result: Result<Value, Offline>) { ending.update { $0 = result } }
}
