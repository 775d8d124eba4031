@testable import StoreCore

/// The state that an observer sees, in a comparable and printable form.
struct ModelShown: Equatable, CustomStringConvertible {
    enum Kind { case loading, completed, error }
    enum Side: Equatable { case none, more, loading, failed(Int) }

    var kind: Kind
    var content: [Int]?
    var error: Int?
    var next = Side.none
    var prev = Side.none

    var description: String {
        let shown = content.map { "\($0)" } ?? "nothing"
        switch kind {
        case .loading: return "loading(\(shown))"
        case .completed: return "completed(\(shown)\(next == .none && prev == .none ? "" : ", next: \(next), prev: \(prev)"))"
        case .error: return "error(\(shown))"
        }
    }
}

extension ModelShown {
    init?(_ state: LoadingState<[Int]>?) {
        switch state {
        case nil: return nil
        case .loading(let content): self.init(kind: .loading, content: content)
        case .completed(let content, let next, let prev): self.init(kind: .completed, content: content, next: Side(next), prev: Side(prev))
        case .error(let error, let content): self.init(kind: .error, content: content, error: number(of: error))
        }
    }

    /// Creates the expected state from the oracle and the running fetches.
    init?(_ oracle: ModelOracle, running: [ModelFetch]) {
        if running.contains(where: \.isOfContent) {
            self.init(kind: .loading, content: oracle.visible)
        } else if let failure = oracle.failure {
            self.init(kind: .error, content: oracle.visible, error: failure.number)
        } else if let content = oracle.visible {
            func side(_ direction: PageDirection, _ key: String?) -> Side {
                if running.contains(where: { $0.direction == direction }) { return .loading }
                if let number = oracle.failedSides[direction] { return .failed(number) }
                return key == nil ? .none : .more
            }
            self.init(
                kind: .completed, content: content, next: side(.next, oracle.accepted?.nextKey), prev: side(.prev, oracle.accepted?.prevKey)
            )
        } else {
            return nil
        }
    }
}

extension ModelShown.Side {
    init(_ state: AdditionalLoadingState) {
        switch state {
        case .fixed(let canRequest): self = canRequest ? .more : .none
        case .loading: self = .loading
        case .error(let error): self = .failed(number(of: error))
        }
    }
}

/// Returns the number of an error; -1 for an error of the store.
func number(of error: any Error) -> Int { (error as? ModelError)?.number ?? -1 }

/// A fetch that the machine has begun.
struct ModelFetch {
    var ticket: Ticket
    var order: FetchOrder
    /// The epoch in which it began.
    var epoch: Int
    /// Whether an observer or caller requested it explicitly.
    var isExplicit = false
    /// Whether it continues without an observer or caller, because a caller got stale content.
    var isPromised = false

    var isOfContent: Bool { direction == nil }
    var isStream: Bool { if case .values = order { true } else { false } }

    /// The validator of a stream's connection.
    var last: Validator? { if case .values(let last) = order { last } else { nil } }

    var direction: PageDirection? { if case .page(let direction, key: _) = order { direction } else { nil } }

    var tag: Int? { if case .content(let validator?, pages: _) = order { validator.entityTag.flatMap { Int($0) } } else { nil } }

    var pages: PageCounts { if case .content(_, let pages) = order { pages } else { PageCounts() } }

    /// The key of the page that it requests.
    var key: String? { if case .page(_, let key) = order { key } else { nil } }

    /// The pages of the list that it returns; `storage` is that of the page with which it begins.
    func loaded(_ storage: Freshness.Storage) -> [LoadedPage] {
        guard pages != PageCounts() else { return [] }
        let further = (0..<pages.next).map { _ in LoadedPage(direction: .next, key: "n", count: 1) }
        if case .page(let direction, let key) = pages.start {
            return [LoadedPage(direction: direction, storage, key: key, returnKey: "x", count: 1)] + further
        }
        return (0..<pages.prev).map { _ in LoadedPage(direction: .prev, key: "p", count: 1) } + [LoadedPage(storage, count: 1)] + further
    }
}
