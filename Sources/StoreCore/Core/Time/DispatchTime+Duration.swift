package import Dispatch

extension DispatchTime {
    /// Returns the time after a duration from now; now for a negative duration.
    package static func after(_ duration: Duration) -> DispatchTime {
        let (seconds, nanoseconds) = duration.dispatchParts
        return .now() + .seconds(Int(seconds)) + .nanoseconds(Int(nanoseconds))
    }
}

extension Duration {
    /// The duration in whole seconds and the rest, at most 68 years.
    ///
    /// Both fit a 32-bit `Int`, which the intervals of Dispatch take. All nanoseconds of a duration beyond 2.1 seconds would not.
    package var dispatchParts: (seconds: Int32, nanoseconds: Int32) {
        let nanoseconds = max(0, saturatedNanoseconds)
        guard let seconds = Int32(exactly: nanoseconds / 1_000_000_000) else { return (.max, 0) }
        return (seconds, Int32(nanoseconds % 1_000_000_000))
    }
}
