/// The settings of a store that its machines need; one object for all keys.
final class KeyRules<Content: Sendable>: Sendable {
    let expiry: Expiry
    let policy: StorePolicy
    /// Whether memory in front of the cacher mirrors each accepted record.
    let hasFront: Bool
    /// Whether there is a cacher to call.
    let hasBacking: Bool
    /// Whether the store has an event hook.
    let reports: Bool
    /// The rules of a list; `nil` for content that is not a list.
    let list: ListRules<Content>?
    /// Whether the content is a list, which may have pages.
    let isList: Bool
    /// Whether the list may have pages before the first one.
    let isTwoWay: Bool
    /// The position of a shared cacher; `nil` if the cacher is not shared.
    let position: (@Sendable () -> Revision)?
    let isShared: Bool
    /// Whether fetches inherit the context of their first callers.
    let inheritsContext: Bool
    /// Whether the origin pushes, so that a stream replaces single fetches.
    let isLive: Bool

    init(
        expiry: Expiry = .never, policy: StorePolicy = .default, hasFront: Bool = false, hasBacking: Bool = true,
        reports: Bool = true, list: ListRules<Content>? = nil, position: (@Sendable () -> Revision)? = nil,
        isLive: Bool = false
    ) {
        self.expiry = expiry
        self.policy = policy
        self.hasFront = hasFront
        self.hasBacking = hasBacking
        self.reports = reports
        self.list = list
        isList = list != nil
        isTwoWay = list?.isTwoWay == true
        self.position = position
        isShared = position != nil
        inheritsContext = policy.fetchContext == .firstCaller
        self.isLive = isLive
    }

    /// Whether content may have pages at this side.
    @inline(__always)
    func hasSide(_ direction: PageDirection) -> Bool { direction == .next ? isList : isTwoWay }
}
