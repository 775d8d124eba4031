/// What the helper program saves; the two know each other by the JSON.
struct Entry: Codable, Sendable, Equatable {
    var key: Int
    var serial: Int
    var filler: String

    /// Whether all of it belongs together.
    var isWhole: Bool {
        filler.utf8.count == serial &* 7919 % 6000 && filler.utf8.allSatisfy { $0 == UInt8(97 + serial % 26) }
    }
}
