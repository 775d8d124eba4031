@testable import StoreCore

// Describes states and results with the names of their contents, for use in tables.

extension ModelWorld {
    func described(_ content: [Int]?) -> String {
        content.map { $0.map { log.names?[abs($0)] ?? "\($0)" }.joined(separator: "+") } ?? "nothing"
    }

    func described(_ answer: CallerResult<[Int]>) -> String {
        switch answer {
        case .content(let content): described(content)
        case .outdated: "outdated"
        case .failure(let error): (error as? StoreError)?.code.rawValue ?? "error"
        case .done: "done"
        case .page(.failed): "page failed"
        case .page(let request): "\(request)"
        case .cancelled: "cancelled"
        }
    }

    func described(_ state: LoadingState<[Int]>?) -> String {
        switch state {
        case nil: "no state"
        case .loading(let content): "loading(\(described(content)))"
        case .error(_, let content): "error(\(described(content)))"
        case .completed(let content, let next, let prev):
            setting.isList ? "completed(\(described(content)), \(described(next)), \(described(prev)))" : "completed(\(described(content)))"
        }
    }

    private func described(_ side: AdditionalLoadingState) -> String {
        switch side {
        case .fixed(let canRequest): canRequest ? "more" : "end"
        case .loading: "loading"
        case .error: "error"
        }
    }
}
