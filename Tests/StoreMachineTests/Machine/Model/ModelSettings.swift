@testable import StoreCore

// The rules and events of the searches.

extension ModelSetting {
    /// Settings with all events, one for each set of rules.
    static let wholes: [ModelSetting] = [
        ModelSetting("defaults"),
        ModelSetting("a front alone", expiry: 2, front: true, backing: false),
        ModelSetting("a front and a backing", expiry: 2, front: true),
        ModelSetting(
            "stale while revalidate, stale if error", expiry: 2,
            policy: StorePolicy(staleWhileRevalidate: .seconds(2), staleIfError: .seconds(2))),
        ModelSetting("revalidates on expiry", expiry: 2, policy: StorePolicy(revalidatesOnExpiry: true)),
        ModelSetting("error expiry", expiry: 2, policy: StorePolicy(errorExpiry: .seconds(2))),
        ModelSetting("zero expiry", expiry: 0, front: true, policy: StorePolicy(revalidatesOnExpiry: true)),
        ModelSetting("unwanted fetches run to completion", expiry: 2, policy: StorePolicy(unwantedFetch: .complete)),
        ModelSetting("no grace", expiry: 2, policy: StorePolicy(staleWhileRevalidate: .seconds(2), unwantedFetch: .cancel(after: .zero))),
        ModelSetting(
            "everything", expiry: 2, front: true,
            policy: StorePolicy(
                staleWhileRevalidate: .seconds(1), staleIfError: .seconds(2), revalidatesOnExpiry: true, errorExpiry: .seconds(2))),
        ModelSetting("a list", isList: true, needs: listNeeds),
        ModelSetting(
            "a list, all loaded pages", expiry: 2, front: true, isList: true, needs: listNeeds,
            policy: StorePolicy(refreshScope: .loadedPages)),
        ModelSetting("a list without grace", isList: true, needs: listNeeds, policy: StorePolicy(unwantedFetch: .cancel(after: .zero))),
        ModelSetting("a list with a window of one page", isList: true, window: 1, needs: listNeeds),
        ModelSetting(
            "a list with a window, all loaded pages", expiry: 2, front: true, isList: true, window: 2, needs: listNeeds,
            policy: StorePolicy(refreshScope: .loadedPages)),
    ]

    /// Settings of an origin that pushes, with all events.
    static let streams: [ModelSetting] = [
        live("a stream"),
        live("a stream that connects again", policy: StorePolicy(retry: steady(attempts: 3))),
        live("a stream in memory", backing: false, policy: StorePolicy(retry: steady(attempts: 2))),
        live(
            "a stream over time", expiry: 2,
            policy: StorePolicy(revalidatesOnExpiry: true, retry: steady(attempts: 3), idleTimeout: .seconds(2), saveInterval: .seconds(2))),
        live(
            "a stream, stale content and held off failures", expiry: 2,
            policy: StorePolicy(
                staleWhileRevalidate: .seconds(1), staleIfError: .seconds(2), retry: steady(attempts: 2), errorExpiry: .seconds(2))),
        live("unwanted streams run to completion", expiry: 2, policy: StorePolicy(retry: steady(attempts: 2), unwantedFetch: .complete)),
        live(
            "a stream without grace", expiry: 2,
            policy: StorePolicy(staleWhileRevalidate: .seconds(2), unwantedFetch: .cancel(after: .zero))),
    ]

    /// Settings of an origin that pushes, with few events.
    static let streamThemes: [ModelSetting] = [
        live("streaming", [.failures, .late, .validators], needs: [.content, .refresh], policy: StorePolicy(retry: steady(attempts: 2))),
        live(
            "streaming over time", expiry: 2, [.failures, .time], needs: [.content, .freshness], observers: 1,
            policy: StorePolicy(revalidatesOnExpiry: true, retry: steady(attempts: 2), idleTimeout: .seconds(2))),
        live(
            "streaming and writing", [.writes, .failures, .validators], needs: [.refresh], observers: 1,
            policy: StorePolicy(retry: steady(attempts: 2))),
        live(
            "streaming and mutating", [.patches, .responses, .failures], needs: [.content], observers: 1, callers: 1,
            policy: StorePolicy(retry: steady(attempts: 2))),
        live(
            "streaming and saving", [.writes, .faults, .time], needs: [.allSaved], observers: 1, callers: 1,
            policy: StorePolicy(saveInterval: .seconds(2))),
        live(
            "streaming and triggers", expiry: 2, [.failures, .time, .triggers], needs: [.refresh], observers: 1, callers: 1,
            policy: StorePolicy(minimumInterval: .seconds(2), retry: steady(attempts: 3))),
    ]

    private static func live(
        _ name: String, expiry: Int? = nil, backing: Bool = true, _ world: Features = .all,
        needs: [CallerNeed] = [.content, .origin, .cached, .freshness, .refresh, .acceptedContent, .allSaved], observers: Int = 2,
        callers: Int = 2, policy: StorePolicy = .default
    ) -> ModelSetting {
        ModelSetting(
            name, expiry: expiry, front: true, backing: backing, world: world.subtracting([.noStore, .wrongOrigin]), needs: needs,
            observers: observers, callers: callers, isLive: true, policy: policy)
    }

    /// A policy with the delays that the errors ask for, or none.
    private static func steady(attempts: Int) -> RetryPolicy { RetryPolicy(attempts: attempts, base: .zero) }

    /// Histories that lead to a connected stream, to a stream with an overtaken value, and to a stream that waits.
    static let streamPreludes: [[ModelEvent]] = {
        let connected: [ModelEvent] = [
            .join(forces: false), .read(succeeds: true), .pushed(.content), .saved(succeeds: true), .pushed(.current), .pushed(.content),
        ]
        return [
            connected,
            connected + [.update, .pushed(.current)],
            connected + [.patch, .patch, .settle(1, succeeds: true)],
            connected + [.streamEnds(fails: true)],
            connected + [.update, .streamEnds(fails: true), .tick, .timer],
            connected + [.leave, .tick],
            [.arrive(.acceptedContent), .read(succeeds: true), .arrive(.content)],
        ]
    }()

    /// Histories that lead to states in which more can go wrong than at the beginning.
    static let preludes: [[ModelEvent]] = {
        let observed: [ModelEvent] = [
            .join(forces: false), .read(succeeds: true), .fetched(nil, .modified), .saved(succeeds: true), .arrive(.refresh),
            .fetched(nil, .modified), .saved(succeeds: true),
        ]
        let page = ModelEvent.arrive(.page(.next, continueWhenError: true))
        return [
            observed,
            observed + [page, .fetched(.next, .modified), .saved(succeeds: true)],
            observed + [.patch, .patch, .settle(1, succeeds: true)],
            observed + [page, .update, .clear, .invalidate],
            observed + [.leave, .arrive(.acceptedContent), .tick, .tick],
            [.arrive(.acceptedContent), .read(succeeds: true), .arrive(.content)],
        ]
    }()

    private static let listNeeds: [CallerNeed] = [
        .content, .refresh, .page(.next, continueWhenError: true), .page(.next, continueWhenError: false),
        .page(.prev, continueWhenError: true), .acceptedContent,
    ]

    /// Settings with few events, so that all of their states can be reached.
    static let themes: [ModelSetting] = [
        ModelSetting("reading", world: [.failures, .faults, .forcing, .late]),
        ModelSetting(
            "reading over time", expiry: 2, world: [.failures, .time, .late], needs: [.content, .refresh, .cached],
            policy: StorePolicy(revalidatesOnExpiry: true, errorExpiry: .seconds(2))),
        ModelSetting(
            "staleness over time", expiry: 1, front: true, world: [.failures, .time], needs: [.content, .freshness], observers: 1,
            policy: StorePolicy(staleWhileRevalidate: .seconds(1), staleIfError: .seconds(2))),
        ModelSetting(
            "prefetching", expiry: 2, world: [.failures, .writes, .time, .late], needs: [.prefetch, .content, .freshness], observers: 1,
            policy: StorePolicy(errorExpiry: .seconds(1))),
        ModelSetting("prefetching and clearing", world: [.writes, .clearAll, .faults], needs: [.prefetch, .refresh], callers: 3),
        ModelSetting(
            "triggers", expiry: 2, world: [.failures, .time, .triggers], needs: [.refresh], observers: 1, callers: 1,
            policy: StorePolicy(revalidatesOnExpiry: true, minimumInterval: .seconds(2), errorExpiry: .seconds(2))),
        ModelSetting(
            "writing", world: [.writes, .faults, .forcing, .failures, .late], needs: [.content, .refresh, .origin], observers: 1),
        ModelSetting(
            "saving", front: true, world: [.writes, .faults, .clearAll, .noStore], needs: [.refresh, .cached], observers: 1,
            policy: StorePolicy(minimumInterval: .zero)),
        ModelSetting(
            "waiting for saves", front: true, world: [.writes, .faults, .clearAll], needs: [.allSaved, .acceptedContent], observers: 1,
            callers: 3, policy: StorePolicy(minimumInterval: .seconds(1))),
        ModelSetting("waiting for saves over time", world: [.writes, .faults, .time], needs: [.allSaved, .refresh], observers: 1),
        ModelSetting("revalidating", world: [.writes, .validators, .patches], needs: [.refresh], observers: 1, callers: 1),
        ModelSetting("mutating", world: [.patches, .failures], needs: [.content, .refresh, .acceptedContent], observers: 1, patches: 3),
        ModelSetting(
            "mutating with responses", expiry: 2, world: [.patches, .responses, .failures, .validators], needs: [.content, .refresh],
            observers: 1, callers: 1, patches: 3),
        ModelSetting(
            "mutating without a fetch afterwards", expiry: 2, world: [.patches, .responses, .writes], needs: [.content], observers: 1,
            callers: 1, policy: StorePolicy(revalidatesAfterMutation: false)),
        ModelSetting(
            "paging and responses", isList: true, world: [.patches, .responses], needs: [.page(.next, continueWhenError: true), .refresh],
            observers: 1, callers: 1),
        ModelSetting(
            "mutating after failures", world: [.patches, .failures, .time], needs: [.refresh], observers: 1, callers: 1,
            policy: StorePolicy(errorExpiry: .seconds(2))),
        ModelSetting(
            "mutating in memory", front: true, backing: false, world: [.patches, .writes, .eviction], needs: [.acceptedContent, .content],
            observers: 1),
        ModelSetting(
            "paging", isList: true, world: [.failures, .late],
            needs: [.refresh, .page(.next, continueWhenError: true), .page(.prev, continueWhenError: false)], observers: 1),
        ModelSetting(
            "paging in a window", isList: true, window: 2, world: [.failures, .late],
            needs: [.refresh, .origin, .page(.next, continueWhenError: true), .page(.prev, continueWhenError: false)], observers: 1),
        ModelSetting(
            "paging in a window and writing", isList: true, window: 2, world: [.writes],
            needs: [.origin, .page(.next, continueWhenError: true), .page(.prev, continueWhenError: true)], observers: 1, callers: 2),
        ModelSetting(
            "paging and mutating", isList: true, world: [.patches], needs: [.page(.next, continueWhenError: true)], observers: 1,
            callers: 1),
        ModelSetting(
            "paging and writing", isList: true, world: [.writes, .patches], needs: [.page(.next, continueWhenError: true)], observers: 1,
            patches: 1),
    ]

    /// Settings of lists whose initial page the origin may confirm.
    static let confirmedLists = [StorePolicy.RefreshScope.firstPage, .loadedPages].flatMap { scope in
        [nil, 1, 2, 3].map { window in confirmedList(scope, window) }
    }

    private static func confirmedList(_ scope: StorePolicy.RefreshScope, _ window: Int?) -> ModelSetting {
        ModelSetting(
            "refreshing \(scope) of \(window.map { "at most \($0)" } ?? "all") pages", isList: true, window: window,
            world: [.validators, .patches],
            needs: [.refresh, .origin, .page(.next, continueWhenError: true), .page(.prev, continueWhenError: true)], observers: 1,
            callers: 1, patches: 1, policy: StorePolicy(refreshScope: scope))
    }
}
