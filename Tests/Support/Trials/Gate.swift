package import StoreCore

/// Lets tasks wait until it is opened.
package final class Gate: Sendable {
    private let isOpen = WatchedState(false)

    package init() {}

    package func open() { isOpen.update { $0 = true } }

    package func wait() async { _ = try? await isOpen.wait { $0 ? true : nil } }
}

extension WatchedState<Int> {
    /// Adds one, and returns the sum.
    @discardableResult
    package func increment() -> Int {
        update { number in
            number += 1
            return number
        }
    }
}
