@testable import StoreCore

// What a world shows, with the names of its contents: for tables that are to be read.

extension ModelWorld {
    func told(_ content: [Int]?) -> String {
        content.map { $0.map { log.names?[abs($0)] ?? "\($0)" }.joined(separator: "+") } ?? "nothing"
    }

    func told(_ answer: CallerAnswer<[Int]>) -> String {
        switch answer {
        case .content(let content): told(content)
        case .outdated: "outdated"
        case .failure(let error): (error as? StoreError)?.code.rawValue ?? "error"
        case .done: "done"
        case .page(.failed): "page failed"
        case .page(let request): "\(request)"
        case .cancelled: "cancelled"
        }
    }

    func told(_ state: LoadingState<[Int]>?) -> String {
        switch state {
        case nil: "no state"
        case .loading(let content): "loading(\(told(content)))"
        case .error(_, let content): "error(\(told(content)))"
        case .completed(let content, let next, let prev):
            setting.isList ? "completed(\(told(content)), \(told(next)), \(told(prev)))" : "completed(\(told(content)))"
        }
    }

    private func told(_ side: AdditionalLoadingState) -> String {
        switch side {
        case .fixed(let canRequest): canRequest ? "more" : "end"
        case .loading: "loading"
        case .error: "error"
        }
    }
}
