import Dispatch
import StoreCore
import Testing

/// Delays for Dispatch. Its intervals take an `Int`, which has 32 bits on some watches.
struct DispatchTimeTests {
    @Test(
        arguments: [
            (.zero, 0, 0), (.nanoseconds(1), 0, 1), (.milliseconds(2_100), 2, 100_000_000), (.milliseconds(2_148), 2, 148_000_000),
            (.seconds(3600), 3600, 0), (.seconds(60) - .nanoseconds(1), 59, 999_999_999), (.seconds(Int64.max), .max, 0),
            (.seconds(1 << 31), .max, 0), (.seconds(-5), 0, 0),
        ] as [(Duration, Int32, Int32)])
    func `a duration of any length has parts of 32 bits`(duration: Duration, seconds: Int32, nanoseconds: Int32) {
        #expect(duration.dispatchParts == (seconds, nanoseconds))
        #expect(DispatchTime.after(duration) >= .now() || duration <= .milliseconds(2_148))
    }
}
