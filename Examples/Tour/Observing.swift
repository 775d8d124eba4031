import StoreCore

/// An observer that prints each state as it arrives.
struct ShownObserver<Content: Sendable> {
    private var iterator: LoadingStateSequence<Content>.Iterator
    private let stage: Stage
    private let label: String
    private let describe: (Content) -> String

    /// All states that this observer has received.
    private(set) var states: [LoadingState<Content>] = []

    init(_ sequence: LoadingStateSequence<Content>, on stage: Stage, label: String = " ", describe: @escaping (Content) -> String) {
        iterator = sequence.makeAsyncIterator()
        self.stage = stage
        self.label = label
        self.describe = describe
    }

    /// Reads states until one satisfies a condition.
    ///
    /// - Returns: That state.
    mutating func follow(until isWanted: (LoadingState<Content>) -> Bool) async throws -> LoadingState<Content> {
        while let state = await iterator.next() {
            states.append(state)
            show(state)
            if isWanted(state) { return state }
        }
        throw CancellationError()
    }

    private func show(_ state: LoadingState<Content>) {
        let content = state.content.map(describe)
        switch state {
        case .loading:
            stage.state(.loading, "loading", content.map { "\($0), stale" } ?? "no content", label: label)
        case .completed(_, let next, let prev):
            let pages = [pageNote("next", next), pageNote("previous", prev)].compactMap { $0 }
            stage.state(.completed, "completed", ([content ?? ""] + pages).joined(separator: "  "), label: label)
        case .error(let error, _):
            stage.state(.failed, "error", "\(error)" + (content.map { "; still shown: \($0)" } ?? ""), label: label)
        }
    }

    private func pageNote(_ side: String, _ state: AdditionalLoadingState) -> String? {
        switch state {
        case .fixed(canRequestAdditionalData: true): "[\(side): more]"
        case .fixed(canRequestAdditionalData: false): nil
        case .loading: "[\(side): loading]"
        case .error(let error): "[\(side): \(error)]"
        }
    }
}
