import Foundation
import Testing

@testable import StoreCore

struct CoarseSecondsTests {
    @Test func `a coarse reading of the wall clock is never ahead of it, and less than a tenth of a second behind`() {
        for _ in 0..<10_000 {
            let before = Date().timeIntervalSince1970
            let coarse = coarseSeconds()
            let after = Date().timeIntervalSince1970
            // A date is counted from 2001, and rounds otherwise than a second that is counted from 1970.
            #expect(coarse <= after + 1e-6 && coarse >= before - 0.1)
        }
    }
}
