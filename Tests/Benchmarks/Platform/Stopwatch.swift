/// A stopwatch for wall-clock time since its creation.
struct Stopwatch {
    private let began = ContinuousClock.now

    var nanoseconds: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    }
}

/// Consumes a value, so that the compiler cannot remove the loop that made it.
@inline(never)
func blackHole<Value>(_ value: Value) {}
