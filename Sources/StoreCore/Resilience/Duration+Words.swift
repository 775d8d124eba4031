extension Duration {
    /// The duration in the most suitable unit, to three digits: `26.8 µs`, `340 ms`, `2 s`.
    var inWords: String {
        let nanoseconds = self / .nanoseconds(1)
        let units: [(name: String, size: Double)] = [("s", 1e9), ("ms", 1e6), ("µs", 1e3)]
        // A value that rounds up to a thousand of one unit is shown in the next unit.
        let (name, size) = units.first { abs(nanoseconds) >= $0.size * 0.9995 } ?? ("ns", 1)
        let value = nanoseconds / size
        let scale: Double = abs(value) < 9.995 ? 100 : abs(value) < 99.95 ? 10 : 1
        let text = "\((value * scale).rounded() / scale)"
        return "\(text.hasSuffix(".0") ? String(text.dropLast(2)) : text) \(name)"
    }
}
