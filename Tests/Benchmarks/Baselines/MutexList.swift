internal import Synchronization

/// A typical handwritten paged list: keeps the snapshot and drops duplicates.
final class MutexList<Element: Identifiable & Sendable>: Sendable where Element.ID: Sendable {
    typealias Fetch = @Sendable (_ page: Int) async throws -> (elements: [Element], next: Int?)

    private struct State {
        var elements: [Element] = []
        var known: Set<Element.ID> = []
        var nextPage: Int? = 0
        var flight: Task<Void, any Error>?
        var observers: [Int: AsyncStream<[Element]>.Continuation] = [:]
        var lastObserver = 0
    }

    private let state = Mutex(State())
    private let fetch: Fetch

    init(fetch: @escaping Fetch) { self.fetch = fetch }

    /// Loads the next page, or joins a load in progress.
    func loadNext() async throws {
        let flight = state.withLock { state -> Task<Void, any Error>? in
            if let flight = state.flight { return flight }
            guard let page = state.nextPage else { return nil }
            let flight = Task { [self] in
                defer { self.state.withLock { $0.flight = nil } }
                let (elements, next) = try await fetch(page)
                append(elements, next)
            }
            state.flight = flight
            return flight
        }
        try await flight?.value
    }

    private func append(_ page: [Element], _ next: Int?) {
        state.withLock { state in
            for element in page where state.known.insert(element.id).inserted { state.elements.append(element) }
            state.nextPage = next
            for observer in state.observers.values { observer.yield(state.elements) }
        }
    }

    func observe() -> AsyncStream<[Element]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [Element].self, bufferingPolicy: .bufferingNewest(1))
        let id = state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = continuation
            continuation.yield(state.elements)
            return state.lastObserver
        }
        continuation.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.observers.removeValue(forKey: id) } }
        return stream
    }
}
