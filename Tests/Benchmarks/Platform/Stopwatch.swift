/// Wall-clock time since it was made.
struct Stopwatch {
    private let began = ContinuousClock.now

    var nanoseconds: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    }
}

/// Takes a value, so that the loop that made it cannot be left out.
@inline(never)
func blackHole<Value>(_ value: Value) {}
