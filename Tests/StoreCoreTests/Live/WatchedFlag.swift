@testable import StoreCore

/// A gate that a test opens once.
final class WatchedFlag: Sendable {
    private let state = WatchedState(false)

    func open() { state.update { $0 = true } }
    func wait() async throws { try await state.wait { $0 ? () : nil } }
}
