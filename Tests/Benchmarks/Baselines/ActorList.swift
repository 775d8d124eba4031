/// The same as ``MutexList``, based on an actor.
actor ActorList<Element: Identifiable & Sendable> where Element.ID: Sendable {
    typealias Fetch = @Sendable (_ page: Int) async throws -> (elements: [Element], next: Int?)

    private var elements: [Element] = []
    private var known: Set<Element.ID> = []
    private var nextPage: Int? = 0
    private var flight: Task<Void, any Error>?
    private var observers: [Int: AsyncStream<[Element]>.Continuation] = [:]
    private var lastObserver = 0
    private let fetch: Fetch

    init(fetch: @escaping Fetch) { self.fetch = fetch }

    /// Loads the next page, or joins a load in progress.
    func loadNext() async throws {
        if let flight { return try await flight.value }
        guard let page = nextPage else { return }
        let flight = Task {
            defer { self.flight = nil }
            let (elements, next) = try await fetch(page)
            append(elements, next)
        }
        self.flight = flight
        try await flight.value
    }

    private func append(_ page: [Element], _ next: Int?) {
        for element in page where known.insert(element.id).inserted { elements.append(element) }
        nextPage = next
        for observer in observers.values { observer.yield(elements) }
    }

    func observe() -> AsyncStream<[Element]> {
        let (stream, continuation) = AsyncStream.makeStream(of: [Element].self, bufferingPolicy: .bufferingNewest(1))
        lastObserver += 1
        let id = lastObserver
        observers[id] = continuation
        continuation.yield(elements)
        continuation.onTermination = { [weak self] _ in Task { await self?.leave(id) } }
        return stream
    }

    private func leave(_ id: Int) { observers[id] = nil }
}
