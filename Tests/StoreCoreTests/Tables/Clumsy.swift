/// A key whose hash is one of a few.
struct Clumsy: Hashable, Sendable {
    let id: Int
    let spread: Int

    init(_ id: Int, spread: Int) {
        self.id = id
        self.spread = spread
    }

    func hash(into hasher: inout Hasher) { hasher.combine(id % spread) }
}

extension Clumsy {
    /// From one hash for all to one for each.
    static let spreads = [1, 2, 7, 50, 1_000_000]
}
