internal import Foundation

extension Unit {
    /// Returns a number with three significant digits and a suitable unit.
    func text(_ value: Double) -> String {
        switch self {
        case .nanoseconds: Self.scaled(value, [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)])
        case .bytes: Self.scaled(value, [("B", 1), ("kB", 1e3), ("MB", 1e6)])
        case .count: value.rounded() == value ? String(Int(value)) : digits(value)
        }
    }

    private static func scaled(_ value: Double, _ units: [(name: String, size: Double)]) -> String {
        // Keeps bytes up to 9 999, which are more readable than fractions of kB.
        let unit = units.last { abs(value) >= $0.size * ($0.name.hasSuffix("B") ? 10 : 1) } ?? units[0]
        return "\(digits(value / unit.size)) \(unit.name)"
    }
}

extension Contestant {
    var title: String {
        switch self {
        case .floor: "null / floor"
        case .mutex: "Mutex"
        case .actor: "actor"
        case .storehouse: "Storehouse"
        }
    }
}

extension Budget {
    /// Returns the limit in words.
    func text(in unit: Unit) -> String {
        switch kind {
        case .ratio: "≤ \(digits(limit)) × \(reference.title)"
        case .difference: "≤ \(reference.title) + \(unit.text(limit))"
        case .absolute: "≤ \(unit.text(limit))"
        }
    }
}

extension Budget.Reference {
    var title: String {
        switch self {
        case .none: ""
        case .floor: "floor"
        case .mutex: "Mutex"
        case .handwritten: "better by hand"
        }
    }
}

/// Returns three significant digits, without an exponent.
func digits(_ value: Double) -> String {
    let size = abs(value)
    if size < 0.005 { return "0" }
    let text = String(format: size >= 99.95 ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f", value)
    guard text.contains(".") else { return text }
    // Turns 1.20 into 1.2, and 2.0 into 2.
    let short = text.reversed().drop { $0 == "0" }
    return String((short.first == "." ? short.dropFirst() : short).reversed())
}

func padded(_ text: String, to width: Int, isNumber: Bool = false) -> String {
    let space = String(repeating: " ", count: max(0, width - text.count))
    return isNumber ? space + text : text + space
}
