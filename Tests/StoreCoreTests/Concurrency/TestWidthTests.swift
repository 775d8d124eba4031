import Foundation
import StoreCore
import Testing
import TestWidth

/// The bound on the number of tests that run at once, without which a time limit begins to count long before its test has a turn.
struct TestWidthTests {
    private static let running = Lock((now: 0, peak: 0))

    @Test(arguments: 0..<64)
    func `at most the stated number of tests run at once`(_: Int) async throws {
        let variable = try #require(ProcessInfo.processInfo.environment["SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH"])
        let width = try #require(Int(variable))
        Self.running.withLock { $0 = ($0.now + 1, max($0.peak, $0.now + 1)) }
        // Without a bound, the other cases begin meanwhile.
        for _ in 0..<200 { await Task.yield() }
        let peak = Self.running.withLock { running in
            running.now -= 1
            return running.peak
        }
        #expect(peak <= width, "\(peak) tests ran at once; the limit is \(width)")
    }
}
