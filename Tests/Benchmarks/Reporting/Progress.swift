internal import Synchronization

/// A progress line on the terminal; nothing elsewhere.
final class Progress: Sendable {
    private let experiments: Int
    private let ended = Atomic(0)
    private let isShown = isTerminal(.errors)

    init(experiments: Int) { self.experiments = experiments }

    func show(_ experiment: Experiment, round: Int, of rounds: Int) {
        guard isShown else { return }
        let place = ended.load(ordering: .relaxed) + 1
        let stage = round == 0 ? "warming up" : "round \(round) of \(rounds)"
        write("\r\u{1B}[K[\(place)/\(experiments)] \(experiment.figures.first?.title ?? ""): \(stage)", to: .errors)
    }

    func experimentEnded() { ended.add(1, ordering: .relaxed) }

    func clear() { if isShown { write("\r\u{1B}[K", to: .errors) } }
}
