package import StoreCore
package import StoreCoreTesting

extension ScriptedFetcher where Content == Int {
    /// Returns the number of each request as its content.
    package static func counting(cancellation: ScriptedCancellation = .honored) -> ScriptedFetcher {
        ScriptedFetcher(cancellation: cancellation) { .success($0.number) }
    }
}

/// A connection that was lost, with the delay that its origin asks for.
package struct Lost: Error, FailureAdvising {
    package var retryAfter: Duration?
    package var failureKind: FailureKind { .transient }

    package init(retryAfter: Duration? = .seconds(1)) { self.retryAfter = retryAfter }
}
