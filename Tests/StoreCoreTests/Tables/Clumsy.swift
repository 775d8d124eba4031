/// A key with one of a few hash values.
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
    /// The numbers of hash values under test: from one shared by all keys to one per key.
    static let spreads = [1, 2, 7, 50, 1_000_000]
}
