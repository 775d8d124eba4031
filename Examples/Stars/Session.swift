import Foundation
import RemoteRouting
import StoreCore
import StoreOutbox

/// The screen of one run: it sends what waits, and shows it until each star is delivered, refused, or tried once.
struct Session {
    let list: StarList
    let screen: Screen

    /// One change of what is on screen.
    private enum Change: Sendable {
        case list(LoadingState<[Repository]>)
        case outbox(OutboxState)
        case patienceIsOver
    }

    /// - Parameter patience: The longest time that the program runs.
    /// - Returns: The last state of the outbox.
    func run(patience: Duration) async throws -> OutboxState {
        let commands = await list.outbox.commands(limit: .max)
        let attempts = Dictionary(uniqueKeysWithValues: commands.map { ($0.id, $0.attempts) })
        // The start of the program ends the delays that earlier failures have caused.
        let (launches, launch) = AsyncStream.makeStream(of: Void.self)
        if commands.contains(where: { $0.nextAttempt != nil }) { launch.yield() }
        list.outbox.start(deliveringOn: launches)

        let (changes, change) = AsyncStream.makeStream(of: Change.self)
        let sources = [
            Task { [repositories = list.repositories.flowable] in
                for await state in repositories.publish(forceRefresh: true) { change.yield(.list(state)) }
            },
            Task { [outbox = list.outbox] in
                for await state in outbox.publish() { change.yield(.outbox(state)) }
            },
            Task {
                // The sleep throws when the session is over.
                guard (try? await Task.sleep(for: patience)) != nil else { return }
                change.yield(.patienceIsOver)
            },
        ]
        defer { for source in sources { source.cancel() } }

        var repositories = LoadingState<[Repository]>.loading(content: nil)
        var outbox: OutboxState?
        var isPatient = true
        for await change in changes {
            switch change {
            case .list(let state): repositories = state
            case .outbox(let state): outbox = state
            case .patienceIsOver: isPatient = false
            }
            guard let outbox else { continue }
            let lines = StarRow.lines(StarRow.rows(repositories.content ?? [], outbox.commands))
            if isPatient, repositories.isLoading || !isSettled(outbox, since: attempts) {
                screen.draw(lines)
                continue
            }
            // Without the content on disk, the next run would fetch it again.
            if isPatient { try await list.repositories.waitUntilSaved() }
            // Each sequence arrives at its own pace. A star that the outbox shows as refused is no longer in the list, but the state of the
            // list that says so may still be on its way.
            let current = await list.repositories.flowable.publish().first { _ in true }
            screen.finish(StarRow.lines(StarRow.rows(current?.content ?? repositories.content ?? [], outbox.commands)))
            for line in summary(outbox, repositories, isPatient) { screen.write(line) }
            return outbox
        }
        throw CancellationError()
    }

    /// Whether each star was delivered, refused, or tried since the start of the program.
    private func isSettled(_ state: OutboxState, since attempts: [UUID: Int]) -> Bool {
        state.commands.allSatisfy { command in
            switch command.status {
            case .delivering: false
            case .pending: command.attempts > attempts[command.id, default: 0]
            case .failed, .undecodable: true
            }
        }
    }

    private func summary(_ outbox: OutboxState, _ repositories: LoadingState<[Repository]>, _ isPatient: Bool) -> [String] {
        var lines: [String] = []
        if let failure = repositories.error as? RemoteError, failure.status != nil {
            lines.append("  ▲ the list could not be fetched: \(failure.notice)")
        } else if repositories.error != nil {
            lines.append("  ▲ the origin cannot be reached")
        } else if !isPatient {
            lines.append("  ▲ the origin has not responded yet")
        }
        let (waiting, refused) = (outbox.pendingCount, outbox.failedCount)
        if waiting > 0 {
            lines.append(waiting == 1 ? "  ◌ 1 star waits; the next run sends it" : "  ◌ \(waiting) stars wait; the next run sends them")
        }
        if refused > 0 {
            lines.append("  ✗ \(refused) refused and taken back: stars retry, or stars discard")
        }
        if lines.isEmpty { lines.append("  ✓ the origin has all stars") }
        return lines
    }
}
