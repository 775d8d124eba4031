import Foundation
import Testing
import Trials

@testable import StoreCore

struct CoarseSecondsTests {
    @Test func `a coarse reading of the wall clock is never ahead of it and at most a tenth of a second behind`() async throws {
        // A host that does not run one of the machine's processors for a while holds the clock up.
        try await until("the readings are at most a tenth of a second behind") {
            var isNear = true
            for _ in 0..<10_000 {
                let before = Date().timeIntervalSince1970
                let coarse = coarseSeconds()
                let after = Date().timeIntervalSince1970
                // Date counts from 2001 and rounds differently from seconds counted since 1970.
                #expect(coarse <= after + 1e-6)
                if coarse < before - 0.1 { isNear = false }
            }
            return isNear
        }
    }
}
