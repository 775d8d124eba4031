/// The content that the helper program saves. The two programs share only its JSON form.
struct Entry: Codable, Sendable, Equatable {
    var key: Int
    var serial: Int
    var filler: String

    /// Whether key, serial number and filler belong together.
    var isWhole: Bool { filler.utf8.count == serial &* 7919 % 6000 && filler.utf8.allSatisfy { $0 == UInt8(97 + serial % 26) } }
}
