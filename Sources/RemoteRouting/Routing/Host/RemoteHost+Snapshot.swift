internal import StoreCore

/// The work of a host at one moment, for metrics, health pages and tests.
///
/// ```swift
/// gauge("waiting requests", api.snapshot().waitingExchanges)
/// ```
///
/// The copies of a host share their limits, so a snapshot counts the work of all of them.
public struct HostSnapshot: Hashable, Sendable {
    /// The origin of the host's requests, without credentials; empty for an invalid host.
    public var origin = ""
    /// The calls that exchange a request and a response now, without streams.
    public var openExchanges = 0
    /// The calls that wait, because the limit on concurrent exchanges is reached.
    public var waitingExchanges = 0
    /// The open streams.
    public var openStreams = 0
    /// The streams that wait, because the limit on open streams is reached.
    public var waitingStreams = 0
}

extension RemoteHost {
    /// Counts the open and waiting exchanges of the host and its copies. Cost: four short locks.
    public func snapshot() -> HostSnapshot {
        // An invalid host sends nothing, and each of its requests throws the fault.
        let origin = (try? configuration.origin()).map { "\($0)" } ?? ""
        return HostSnapshot(
            origin: origin, openExchanges: gate.takenCount, waitingExchanges: gate.waiterCount, openStreams: streamGate.takenCount,
            waitingStreams: streamGate.waiterCount)
    }
}
