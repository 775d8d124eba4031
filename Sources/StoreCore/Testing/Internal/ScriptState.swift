/// The state of a script: the remaining answers, the recorded requests, and the running fetches.
struct ScriptState<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    typealias Answer = ScriptedAnswer<Content>
    /// The continuation of a fetch at the gate; `nil` instead of an answer makes the fetch call the script's closure.
    typealias Passage = CheckedContinuation<Answer?, any Error>

    /// A running fetch.
    private struct Flight {
        var isCancelled = false
        /// The continuation that releases the fetch; `nil` after it has left the gate.
        var passage: Passage?
    }

    /// The effect of an operation on the gate, performed outside the lock.
    enum GateAction: Sendable {
        case wait
        case resume(Passage, Result<Answer?, any Error>)

        func perform() {
            if case .resume(let passage, let result) = self { passage.resume(with: result) }
        }
    }

    private(set) var requests: [ScriptedRequest<Param>] = []
    private(set) var endedCount = 0
    private(set) var cancelledCount = 0
    var cancellation: ScriptedCancellation
    private var answers: [Answer]
    private var isHolding = false
    private var lastTicket: UInt64 = 0
    /// The numbers of the running fetches, by ticket: a task may be canceled before its fetch has a number.
    private var numbers: [UInt64: Int] = [:]
    /// The running fetches, by number.
    private var flights: [Int: Flight] = [:]

    init(answers: [Answer], cancellation: ScriptedCancellation) {
        self.answers = answers
        self.cancellation = cancellation
    }

    var runningCount: Int { flights.count }

    /// Returns whether the fetch with this number is held at the gate.
    func isHeld(_ number: Int) -> Bool { flights[number]?.passage != nil }

    /// The numbers of the held fetches, oldest first.
    var held: [Int] { flights.filter { $0.value.passage != nil }.keys.sorted() }

    /// One line per request, oldest first, with the phase of its fetch.
    var history: [String] {
        requests.map { request in
            let phase =
                switch flights[request.number] {
                case nil: "ended"
                case let flight?: flight.passage == nil ? "running" : "held"
                }
            switch request.request {
            case .content(let param, let validator): return "content of \(param)\(validator == nil ? "" : ", revalidating"), \(phase)"
            case .page(let direction, let key, let param): return "\(direction) page \(key) of \(param), \(phase)"
            }
        }
    }

    mutating func enqueue(_ more: [Answer]) { answers += more }

    mutating func hold() { isHolding = true }

    mutating func makeTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Records a new fetch, which passes the gate or waits there.
    mutating func begin(
        _ request: OriginRequest<Param>, ticket: UInt64, isCancelled: Bool, passage: Passage
    ) -> (number: Int, action: GateAction) {
        let number = requests.count + 1
        requests.append(ScriptedRequest(number: number, request: request))
        numbers[ticket] = number
        flights[number] = Flight(isCancelled: isCancelled)
        if isCancelled { cancelledCount += 1 }
        if isCancelled, cancellation == .honoured { return (number, .resume(passage, .failure(CancellationError()))) }
        if isHolding {
            flights[number]?.passage = passage
            return (number, .wait)
        }
        return (number, .resume(passage, .success(takeAnswer())))
    }

    /// Cancels a fetch; has no effect before the fetch begins and after it ends.
    mutating func cancel(ticket: UInt64) -> GateAction {
        guard let number = numbers[ticket], let flight = flights[number], !flight.isCancelled else { return .wait }
        flights[number]?.isCancelled = true
        cancelledCount += 1
        guard cancellation == .honoured, let passage = flight.passage else { return .wait }
        flights[number]?.passage = nil
        return .resume(passage, .failure(CancellationError()))
    }

    /// Removes a fetch that returned or threw.
    mutating func end(ticket: UInt64) {
        if let number = numbers.removeValue(forKey: ticket) { flights[number] = nil }
        endedCount += 1
    }

    /// Opens the gate; the fetches receive answers in the order in which they began.
    mutating func release() -> [GateAction] {
        isHolding = false
        return held.map { release($0, with: nil) }
    }

    /// Releases one fetch, with a given answer or the script's next answer.
    mutating func release(_ number: Int, with answer: Answer?) -> GateAction {
        guard let passage = flights[number]?.passage else { return .wait }
        flights[number]?.passage = nil
        return .resume(passage, .success(answer ?? takeAnswer()))
    }

    /// Returns whether the fetch with this number has reached the gate and left it.
    func hasPassed(_ number: Int) -> Bool {
        number <= requests.count && flights[number]?.passage == nil
    }

    private mutating func takeAnswer() -> Answer? {
        answers.isEmpty ? nil : answers.removeFirst()
    }
}
