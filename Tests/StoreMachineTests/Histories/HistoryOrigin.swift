import StoreCore
import Trials

/// An origin that holds every request, canceled or not, until it is completed by a command.
final class HistoryOrigin: TwoWayPaginationFetcher {
    typealias Param = Int
    typealias Element = Int

    /// The contents of a held request.
    struct Asked: Hashable, Sendable {
        var key: Int
        var direction: PageDirection?
        var pageKey: String?
        var validator: String?
    }

    private struct Held: Sendable {
        var asked: Asked
        var isCancelled: Bool
        var passage: CheckedContinuation<OriginResponse<[Int]>, any Error>?
    }

    private struct State: Sendable {
        var begun = 0
        var cancelled = 0
        var isOpen = false
        var held: [Int: Held] = [:]
    }

    private let desk = WatchedState(State())

    /// The number of requests so far, the number of canceled ones, and the held requests that are not canceled.
    var counts: (begun: Int, cancelled: Int, wanted: [Asked]) {
        desk.read { desk in (desk.begun, desk.cancelled, desk.held.values.filter { !$0.isCancelled && $0.passage != nil }.map(\.asked)) }
    }

    func respond(to request: OriginRequest<Int>) async throws -> OriginResponse<[Int]> {
        let asked =
            switch request {
            case .content(let key, let validator): Asked(key: key, validator: validator?.entityTag)
            case .page(let direction, let pageKey, let key): Asked(key: key, direction: direction, pageKey: pageKey)
            }
        let ticket = desk.update { desk in
            desk.begun += 1
            desk.held[desk.begun] = Held(asked: asked, isCancelled: false)
            return desk.begun
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { passage in
                let isOpen = desk.update { desk in
                    if desk.isOpen { desk.held[ticket] = nil } else { desk.held[ticket]?.passage = passage }
                    return desk.isOpen
                }
                if isOpen { passage.resume(throwing: Offline()) }
            }
        } onCancel: {
            desk.update { desk in
                guard desk.held[ticket]?.isCancelled == false else { return }
                desk.held[ticket]?.isCancelled = true
                desk.cancelled += 1
            }
        }
    }

    /// Completes the wanted request for this key and direction.
    func answer(_ key: Int, _ direction: PageDirection?, with result: Result<OriginResponse<[Int]>, any Error>) {
        let passage = desk.update { desk in
            let ticket = desk.held.first { !$0.value.isCancelled && $0.value.asked.key == key && $0.value.asked.direction == direction }?
                .key
            return ticket.flatMap { desk.held.removeValue(forKey: $0)?.passage }
        }
        passage?.resume(with: result)
    }

    /// Completes all canceled requests with content that no observer may ever see.
    func answerCancelled() {
        let passages = desk.update { desk in
            let cancelled = desk.held.filter { $0.value.isCancelled && $0.value.passage != nil }
            for ticket in cancelled.keys { desk.held[ticket] = nil }
            return cancelled.values.compactMap(\.passage)
        }
        for passage in passages { passage.resume(returning: OriginResponse(.modified([HistoryClients.poison]), nextKey: "poison")) }
    }

    /// Fails every held and future request.
    func open() {
        let passages = desk.update { desk in
            defer { desk.held = [:] }
            desk.isOpen = true
            return desk.held.values.compactMap(\.passage)
        }
        for passage in passages { passage.resume(throwing: Offline()) }
    }

    // These are never called, because `respond(to:)` handles every request.
    func fetch(param: Int) async throws -> Page<Int> { throw Offline() }
    func fetchNext(nextKey: String, param: Int) async throws -> Page<Int> { throw Offline() }
    func fetchPrev(prevKey: String, param: Int) async throws -> Page<Int> { throw Offline() }
}
