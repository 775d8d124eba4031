package import StoreCore

/// Records events in the order of their delivery.
package final class EventLog: Sendable {
    private let events = WatchedState<[StoreEvent<Int>]>([])

    package init() {}

    @Sendable package func append(_ event: StoreEvent<Int>) { events.update { $0.append(event) } }

    /// The events in the order of their numbers.
    package var all: [StoreEvent<Int>] { events.current.sorted { $0.number < $1.number } }
    package var names: [String] { all.map(\.kind.name) }

    /// Waits for events with this name.
    package func first(_ name: String, count: Int = 1) async throws {
        try await events.wait { $0.count { $0.kind.name == name } >= count ? () : nil }
    }
}

extension StoreEventKind {
    /// A short name of the kind.
    package var name: String {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .coalesced: "coalesced"
        case .fetchBegan: "began"
        case .fetchEnded(_, duration: _, .modified): "ended"
        case .fetchEnded(_, duration: _, .notModified): "confirmed"
        case .fetchEnded(_, duration: _, .failed): "failed"
        case .fetchEnded(_, duration: _, .refused): "refused"
        case .fetchEnded(_, duration: _, .cancelled): "cancelled"
        case .retried: "retried"
        case .saved: "saved"
        case .removed: "removed"
        case .cacherFault(let operation, _): "fault \(operation)"
        case .evicted: "evicted"
        case .aboveCostLimit: "aboveCostLimit"
        case .droppedAsOutdated: "outdated"
        case .superseded: "superseded"
        case .droppedUnsaved: "droppedUnsaved"
        case .mismatchedIdentity: "mismatchedIdentity"
        }
    }
}

extension PageRequest {
    /// The case name without its error.
    package var word: String {
        switch self {
        case .loaded: "loaded"
        case .joined: "joined"
        case .noPage: "noPage"
        case .notLoadedYet: "notLoadedYet"
        case .failed: "failed"
        case .superseded: "superseded"
        }
    }
}
