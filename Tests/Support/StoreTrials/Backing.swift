/// The cachers of a store under test.
package enum Backing: CaseIterable, Sendable {
    /// A `MemoryCacher` only.
    case memory
    /// A `TieredCacher` over a cacher controlled by the test.
    case tiered
    /// The controlled cacher only.
    case plain

    package static let withCacher: [Backing] = [.tiered, .plain]
}
