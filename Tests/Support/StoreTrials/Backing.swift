package import StoreCore

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

extension Store {
    /// Creates a store over memory, over a cacher of the test, or over both.
    package convenience init(
        _ backing: Backing, over cacher: some Cacher<Param, Content>, fetcher: some Origin<Param, Content>,
        policy: StorePolicy = .default, time: some TimeSource = .system, scope: CacheScope? = nil,
        onEvent: (@Sendable (StoreEvent<Param>) -> Void)? = nil
    ) {
        switch backing {
        case .memory:
            let memory = MemoryCacher<Param, Content>(expiry: cacher.expiry)
            self.init(cacher: memory, fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        case .tiered:
            self.init(cacher: TieredCacher(over: cacher), fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        case .plain: self.init(cacher: cacher, fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        }
    }
}
