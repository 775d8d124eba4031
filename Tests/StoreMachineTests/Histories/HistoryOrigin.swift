import StoreCore
import Trials

@testable import StoreCoreTesting

/// An origin that holds every request, canceled or not, until it is completed by a command.
struct HistoryOrigin: Sendable {
    /// The contents of a held request.
    struct Asked: Hashable, Sendable {
        var key: Int
        var direction: PageDirection?
        var pageKey: String?
        var validator: String?
    }

    /// After its gate is opened, every held and future request fails.
    let fetcher = ScriptedPaginationFetcher<Int, Int>(cancellation: .ignored) { _ in .failure(Offline()) }

    init() { fetcher.hold() }

    /// The number of requests so far, the number of canceled ones, and the held requests that are not canceled.
    var counts: (begun: Int, cancelled: Int, wanted: [Asked]) {
        fetcher.script.state.read { ($0.requests.count, $0.cancelledCount, $0.suspended(isCancelled: false).map(Asked.init)) }
    }

    /// Completes the wanted request for this key and direction.
    func answer(_ key: Int, _ direction: PageDirection?, with result: Result<OriginResponse<[Int]>, any Error>) {
        let resume = fetcher.script.state.update { state in
            let request = state.suspended(isCancelled: false).first { $0.param == key && $0.direction == direction }
            return request.flatMap { state.release($0.number, with: ScriptedAnswer(result: result)) }
        }
        resume?()
    }

    /// Completes all canceled requests with content that no observer may ever see.
    func answerCancelled() {
        let poison = ScriptedAnswer(result: .success(OriginResponse(.modified([HistoryClients.poison]), nextKey: "poison")))
        let released = fetcher.script.state.update { state in
            state.suspended(isCancelled: true).compactMap { state.release($0.number, with: poison) }
        }
        for resume in released { resume() }
    }
}

extension HistoryOrigin.Asked {
    fileprivate init(_ request: ScriptedRequest<Int>) {
        self.init(
            key: request.param, direction: request.direction, pageKey: request.pageKey, validator: request.validator?.entityTag)
    }
}

extension ScriptState {
    /// The requests that wait at the gate.
    fileprivate func suspended(isCancelled: Bool) -> [ScriptedRequest<Param>] {
        requests.filter { request in
            guard let flight = flights[request.number] else { return false }
            return flight.suspension != nil && flight.isCancelled == isCancelled
        }
    }
}
