#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

// The state of the outbox, for observers and for tests.

extension OutboxCore {
    func state(of subject: OutboxSubject?) -> OutboxState {
        guard let subject else {
            // An attempt may outlast its command.
            let deliveringCount = attempts.current.keys.count { machine.items[$0] != nil }
            return OutboxState(
                pendingCount: machine.pendingCount, deliveringCount: deliveringCount, failedCount: machine.failedCount,
                undecodableCount: machine.undecodableCount, isStopped: machine.isStopped,
                commands: commands(after: 0, limit: 100))
        }
        let items = machine.commands(changing: subject.content.replaced(machine.replacements)).filter { item in
            // Other stores without a name may have the same key.
            let engine = registrations[item.submission.name]?.engines.first.map { ObjectIdentifier($0) }
            return item.status != .delivered && (engine == nil || engine == subject.engine)
        }
        let commands = items.map { command($0) }
        func count(_ status: OutboxCommand.Status) -> Int { commands.count { $0.status == status } }
        return OutboxState(
            pendingCount: items.count - count(.failed), deliveringCount: count(.delivering), failedCount: count(.failed),
            undecodableCount: count(.undecodable), isStopped: machine.isStopped, commands: Array(commands.prefix(100)))
    }

    func commands(after order: UInt64, limit: Int) -> [OutboxCommand] {
        machine.commands(after: order, limit: max(0, limit)) { $0.status != .delivered }.map { command($0) }
    }

    func command(_ item: OutboxMachine.Item) -> OutboxCommand {
        let isDelivering = attempts.read { $0[item.id] != nil }
        let undelivered: OutboxCommand.Status = machine.isUndecodable(item) ? .undecodable : .pending
        let status: OutboxCommand.Status = item.status == .failed ? .failed : isDelivering ? .delivering : undelivered
        let next = item.notBefore.flatMap { notBefore in
            item.deferral.map { deferral in
                let delay = notBefore == item.requestedUntil ? deferral.requested : deferral.delay
                return deferral.date.addingTimeInterval(min(delay, machine.rules.longestDelay).timeInterval)
            }
        }
        return OutboxCommand(
            id: item.id, name: item.submission.name, lane: item.lane.text, submittedAt: item.submission.date, status: status,
            attempts: item.attempts, nextAttempt: status == .pending ? next : nil,
            lastError: item.failure?.error ?? item.deferral?.error, payload: item.submission.payload, order: item.order,
            version: item.submission.version)
    }

    var isEmpty: Bool { machine.items.isEmpty }

    /// The number of running attempts, for tests.
    var runningCount: Int { attempts.read { $0.count } }

    /// Whether this process holds the lease, for tests.
    var isDeliverer: Bool { lease != nil }

    /// Whether nothing happens until an attempt ends or time passes, for tests.
    var isQuiet: Bool {
        machine.isStarted && unsettled.isEmpty && moving.isEmpty && responses.isEmpty && machine.running.count == runningCount
            && machine.items.count == machine.pendingCount + machine.failedCount && (lease != nil || !machine.needsLease)
            && machine.nextWake ?? .distantFuture > time.now
    }

    var undelivered: Int { machine.pendingCount - machine.undecodableCount }

    /// The number of commands that a drain waits for.
    var awaited: Int { isClosed ? 0 : undelivered }

    func drain(until timeout: Duration) async -> DrainOutcome {
        let isDrained = await wait(atMost: timeout) { [weak self, version] in
            var seen: UInt64 = 0
            while let count = await self?.awaited, count > 0 {
                let known = seen
                seen = try await version.wait { $0 > known ? $0 : nil }
            }
        }
        // Another process may have submitted a command in the meantime.
        if isDrained, !isClosed { return .drained }
        return undelivered > 0 ? .pending(undelivered) : .drained
    }
}
