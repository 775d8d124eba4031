internal import StoreCore

/// The state of a script: the remaining answers, the recorded requests, and the running fetches.
struct ScriptState<Param: Hashable & Sendable, Content: Sendable>: Recounted {
    typealias Answer = ScriptedAnswer<Content>
    /// The way in which a fetch leaves the gate; `nil` instead of an answer makes the fetch call the script's closure.
    typealias Passage = Result<Answer?, any Error>

    struct Flight {
        var isCancelled = false
        /// `nil` while the fetch is held at the gate.
        var passage: Passage?
        var suspension: Suspension?

        mutating func leave(_ passage: Passage) -> Release {
            self.passage = passage
            return { [suspension = suspension.take()] in suspension?.resume() }
        }
    }

    /// Resumes a fetch that has left the gate; called outside the lock.
    typealias Release = @Sendable () -> Void

    private(set) var requests: [ScriptedRequest<Param>] = []
    var unanswered: Set<Int> = []
    private(set) var endedCount = 0
    private(set) var cancelledCount = 0
    var cancellation: ScriptedCancellation
    var answers: [Answer]
    var isHolding = false
    /// The running fetches, by the numbers of their requests.
    private(set) var flights: [Int: Flight] = [:]

    init(answers: [Answer], cancellation: ScriptedCancellation) {
        self.answers = answers
        self.cancellation = cancellation
    }

    var runningCount: Int { flights.count }

    func isHeld(_ number: Int) -> Bool { flights[number].map { $0.passage == nil } ?? false }

    var held: [Int] { flights.filter { $0.value.passage == nil }.keys.sorted() }

    var history: [String] {
        requests.map { request in
            let phase =
                switch flights[request.number] {
                case nil where unanswered.contains(request.number): "failed, because the script had no answer left"
                case nil: "ended"
                case let flight?: flight.passage == nil ? "held" : "running"
                }
            switch request.request {
            case .content(let param, let validator): return "content of \(param)\(validator == nil ? "" : ", revalidating"), \(phase)"
            case .page(let direction, let key, let param): return "\(direction) page \(key) of \(param), \(phase)"
            }
        }
    }

    mutating func begin(_ request: OriginRequest<Param>, isCancelled: Bool) -> Int {
        let number = requests.count + 1
        requests.append(ScriptedRequest(number: number, request: request))
        flights[number] = Flight()
        if isCancelled { _ = cancel(number) }
        if !isHolding { _ = release(number, with: nil) }
        return number
    }

    /// Suspends a fetch that is held; returns `false` if it is not.
    mutating func suspend(_ number: Int, _ suspension: Suspension) -> Bool {
        guard isHeld(number) else { return false }
        flights[number]?.suspension = suspension
        return true
    }

    func passage(of number: Int) -> Passage {
        guard let passage = flights[number]?.passage else { preconditionFailure("fetch \(number) was resumed at the gate") }
        return passage
    }

    mutating func cancel(_ number: Int) -> Release? {
        guard let flight = flights[number], !flight.isCancelled else { return nil }
        flights[number]?.isCancelled = true
        cancelledCount += 1
        guard cancellation == .honored, isHeld(number) else { return nil }
        return flights[number]?.leave(.failure(CancellationError()))
    }

    mutating func end(_ number: Int) {
        flights[number] = nil
        endedCount += 1
    }

    /// Opens the gate; the fetches receive answers in the order in which they began.
    mutating func release() -> [Release] {
        isHolding = false
        return held.compactMap { release($0, with: nil) }
    }

    mutating func release(_ number: Int, with answer: Answer?) -> Release? {
        guard isHeld(number) else { return nil }
        let answer = answer ?? (answers.isEmpty ? nil : answers.removeFirst())
        return flights[number]?.leave(.success(answer))
    }

    func hasPassed(_ number: Int) -> Bool { number <= requests.count && !isHeld(number) }
}
