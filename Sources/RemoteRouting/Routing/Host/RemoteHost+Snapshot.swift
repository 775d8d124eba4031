internal import Foundation
public import RemoteHTTP
internal import StoreCore

/// The work of a host at one moment, for metrics, health pages and tests.
///
/// ```swift
/// gauge("waiting requests", api.snapshot().waitingExchanges)
/// ```
///
/// The copies of a host share their limits and their last exchanges, so a snapshot shows the work of all of them.
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
    /// The last 50 exchanges, oldest first. Each attempt and each hop of a redirect counts.
    public var exchanges: [Exchange] = []

    /// One request with its response, without secrets.
    public struct Exchange: Hashable, Sendable {
        /// The method and the address without its user, query and fragment.
        public var operation: String
        /// The status of the response; `nil` before its head and after a failure.
        public var status: Int?
        /// The reason why there is no response; `nil` while the exchange runs.
        public var failure: RemoteError.Code?
        /// The time until the head or the failure, or until now for a running exchange.
        public var duration: Duration
    }
}

extension RemoteHost {
    /// Returns the work of the host and its copies. Cost: five short locks, and the addresses of the last exchanges.
    public func snapshot() -> HostSnapshot {
        // An invalid host sends nothing, and each of its requests throws the fault.
        let origin = (try? configuration.origin()).map { "\($0)" } ?? ""
        return HostSnapshot(
            origin: origin, openExchanges: gate.takenCount, waitingExchanges: gate.waiterCount, openStreams: streamGate.takenCount,
            waitingStreams: streamGate.waiterCount, exchanges: recent.list(at: time.now))
    }
}

/// The last exchanges of a host and its copies, in a ring.
final class RecentExchanges: Sendable {
    private struct Entry: Sendable {
        var number: Int
        var method: HTTPMethod
        /// The address with its secrets, which `list(at:)` removes.
        var url: URL
        var began: MonotonicInstant
        var ended: MonotonicInstant?
        var status: Int?
        var failure: RemoteError.Code?
    }

    private static let capacity = 50
    private let state = Lock<(count: Int, ring: [Entry])>((0, []))

    func begin(_ request: HTTPRequest, at now: MonotonicInstant) -> Int {
        let (method, url) = (request.method, request.url)
        return state.withLock { state in
            let entry = Entry(number: state.count, method: method, url: url, began: now)
            if state.ring.count < Self.capacity { state.ring.append(entry) } else { state.ring[entry.number % Self.capacity] = entry }
            state.count += 1
            return entry.number
        }
    }

    /// Records the head or the failure of an exchange, unless younger ones have replaced it.
    func end(_ number: Int, at now: MonotonicInstant, status: Int? = nil, failure: RemoteError.Code? = nil) {
        state.withLock { state in
            let place = number % Self.capacity
            guard state.ring[place].number == number else { return }
            (state.ring[place].ended, state.ring[place].status, state.ring[place].failure) = (now, status, failure)
        }
    }

    fileprivate func list(at now: MonotonicInstant) -> [HostSnapshot.Exchange] {
        state.withLock(\.ring).sorted { $0.number < $1.number }.map { entry in
            HostSnapshot.Exchange(
                operation: "\(entry.method.rawValue) \(entry.url.withoutSecrets)", status: entry.status, failure: entry.failure,
                duration: entry.began.duration(to: entry.ended ?? now))
        }
    }
}
