import StoreCore
import StoreCoreTesting

extension ManualTime {
    /// Waits for sleepers, and advances the clocks.
    func advance(by duration: Duration, sleepers count: Int, fileID: String = #fileID, line: Int = #line) async throws {
        try await sleepers(atLeast: count, fileID: fileID, line: line)
        advance(by: duration)
    }
}
