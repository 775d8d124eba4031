/// A key with one of a few hash values.
package struct Clumsy: Hashable, Sendable {
    package let id: Int
    package let spread: Int

    package init(_ id: Int, spread: Int) {
        self.id = id
        self.spread = spread
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(id % spread) }

    /// The numbers of hash values under test: from one shared by all keys to one per key.
    package static let spreads = [1, 2, 7, 50, 1_000_000]
}
