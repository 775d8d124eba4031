internal import Foundation

@testable import StoreCore

// The commands of an outbox that change the content (O2, O7): shown until the origin has performed them, folded once, and named by the
// record until the outbox has forgotten them.

extension ModelOracle {
    /// A command that the origin has performed, and that the outbox has not forgotten.
    struct Delivered {
        var id: UUID
        var order: Int
        var mark: Int
        /// The commands that the content contains, and the revision that must be saved before the outbox forgets them.
        var settling: (ids: [UUID], revision: Int)?
    }

    /// Whether the outbox may forget a command: the saved content contains its change.
    func isRetirable(_ id: UUID) -> Bool {
        delivered.contains { other in
            guard let settling = other.settling else { return false }
            return settling.ids.contains(id) && settling.revision <= settled && !hasSaveFailed
        }
    }

    /// Content of the origin has arrived, which may contain the changes of commands with an attempt.
    mutating func noteArrival() {
        for place in patches.indices where patches[place].command?.isAttempted == true { patches[place].command?.isBeforeFetch = true }
    }

    /// The content contains the changes of these patches.
    mutating func noteFolded(_ patches: some Sequence<Patch>) {
        for id in patches.compactMap({ $0.command?.id }) where !folded.contains(id) { folded.append(id) }
    }

    /// Removes the confirmed patches from the list, because the content contains their changes.
    mutating func dropConfirmed() {
        noteFolded(patches.filter(\.isConfirmed))
        patches.removeAll(where: \.isConfirmed)
    }
}

extension ModelWorld {
    var commandEvents: [ModelEvent] {
        guard setting.world.contains(.commands) else { return [] }
        var events: [ModelEvent] = []
        let pending = oracle.patches.indices.filter { oracle.patches[$0].command != nil && !oracle.patches[$0].isConfirmed }
        if pending.count + oracle.delivered.count < setting.maxPatches { events.append(.command) }
        for place in pending {
            let patch = oracle.patches[place]
            events.append(.refuse(place))
            if patch.command?.isAttempted == false || patch.began != oracle.changes { events.append(.begin(place)) }
            guard patch.command?.isAttempted == true, oracle.isKnown else { continue }
            events.append(.deliver(place, responds: false))
            if setting.world.contains(.responses) { events.append(.deliver(place, responds: true)) }
        }
        if let place = confirmable { events.append(.confirm(place)) }
        if oracle.delivered.contains(where: { oracle.isRetirable($0.id) }) { events.append(.retire) }
        if !pending.isEmpty || !oracle.delivered.isEmpty { events.append(.kill) }
        return events
    }

    /// A performed command of an earlier process that is to be folded.
    var confirmable: Int? { oracle.isKnown ? oracle.delivered.firstIndex { $0.settling == nil } : nil }

    mutating func command(_ event: ModelEvent, _ transition: inout Transition) {
        moment.lostExplicit = flight?.isExplicit == true
        switch event {
        case .begin(let place): begin(place, &transition)
        case .deliver(let place, let responds): deliver(place, responds: responds, &transition)
        case .confirm(let place): settles(place, machine.commandDelivered(oracle.delivered[place].id, .none, &transition))
        case .refuse(let place):
            guard let command = oracle.patches[place].command else { return }
            if oracle.isKnown {
                settled(place, succeeds: false)
                oracle.fold()
            } else {
                oracle.patches.remove(at: place)
            }
            machine.commandsDropped([command.id], &transition)
            if oracle.isKnown { lastSettled() }
        case .retire:
            let ids = oracle.delivered.map(\.id).filter { oracle.isRetirable($0) }
            oracle.delivered.removeAll { ids.contains($0.id) }
            oracle.folded.removeAll { ids.contains($0) }
            if isLive { machine.commandsRetired(ids, &transition) }
        case .kill: kill(&transition)
        default:
            let number = nextNumber("command")
            show([ModelOracle.Delivered(id: UUID(number: number), order: number, mark: -number)], isDelivered: false, &transition)
        }
    }

    /// The origin has performed a command.
    private mutating func deliver(_ place: Int, responds: Bool, _ transition: inout Transition) {
        let patch = oracle.patches[place]
        guard let command = patch.command else { return }
        let number = nextNumber("response")
        let response: MutationResponse<[Int]> = responds ? .content([number]) : .none
        let isAccepted = responds && oracle.accepts(patch, whole: true)
        if isAccepted {
            oracle.noteFolded([oracle.patches.remove(at: place)])
            oracle.epoch += 1
            dropFlight()
            moment.isUpdated = true
            oracle.takeIn([number], whole: true, setting)
            oracle.changes += 1
        } else if command.isBeforeFetch, oracle.accepted != nil {
            // The content that arrived may contain the change already.
            oracle.patches[place].isConfirmed = true
            oracle.fold()
            if oracle.patches.isEmpty { oracle.owesFetch = false }
            moment.isInvalidated = true
            oracle.invalidate()
        } else {
            settled(place, succeeds: true)
        }
        oracle.fold()
        oracle.delivered.append(ModelOracle.Delivered(id: command.id, order: command.order, mark: patch.mark))
        if !moment.isInvalidated { lastSettled() }
        settles(oracle.delivered.count - 1, machine.commandDelivered(command.id, response, &transition))
    }

    /// Checks the commands that the content contains according to the machine.
    private mutating func settles(_ place: Int, _ ids: [UUID]) {
        let id = oracle.delivered[place].id
        let waits = oracle.patches.contains { $0.command?.id == id }
        let expected = Set(oracle.folded + (waits ? [] : [id]))
        check(Set(ids) == expected, "O7", "the content contains the commands \(ids), not \(expected)")
        oracle.delivered[place].settling = (ids, oracle.revision)
        // A patch that waits for an earlier one is folded with it.
        if waits { oracle.delivered[place].settling = (oracle.folded, .max) }
    }

    private mutating func begin(_ place: Int, _ transition: inout Transition) {
        guard let command = oracle.patches[place].command else { return }
        oracle.patches[place].command?.isAttempted = true
        machine.commandAttempted(command.id, isElsewhere: false, &transition)
        oracle.changes += 1
        oracle.patches[place].began = oracle.changes
        oracle.patches[place].isBeforePage = false
        oracle.patches[place].id = machine.book.patches.first { $0.command?.id == command.id }?.id ?? Ticket(number: 0)
    }

    private mutating func show(_ commands: [ModelOracle.Delivered], isDelivered: Bool, _ transition: inout Transition) {
        machine.commandsShown(
            commands.map { command in
                let mark = CommandMark(id: command.id, order: UInt64(command.order))
                return ShownCommand(mark: mark, isDelivered: isDelivered) { $0.append(command.mark) }
            }, &transition)
        for command in commands {
            guard let id = machine.book.patches.first(where: { $0.command?.id == command.id })?.id else {
                violate("O2", "the change of a command is not shown")
                continue
            }
            var patch = ModelOracle.Patch(id: id, mark: command.mark, began: -1)
            patch.command = ModelOracle.Patch.Command(id: command.id, order: command.order)
            patch.isConfirmed = isDelivered
            oracle.patches.append(patch)
        }
    }

    /// The process is killed, and another one shows the commands that are in the log.
    private mutating func kill(_ transition: inout Transition) {
        let pending = oracle.patches.filter { $0.command != nil && !$0.isConfirmed }
        (running, late, observers, callers, forgottenPatch) = ([], [], 0, [], nil)
        (call, saveWaits, isEmptying, isFailureNoted, front) = (nil, false, false, false, nil)
        oracle.forget()
        oracle.hasSaveFailed = false
        for place in oracle.delivered.indices { oracle.delivered[place].settling = nil }
        machine = KeyMachine(rules: setting.rules)
        isLive = true
        var orders: [(order: Int, command: ModelOracle.Delivered, isDelivered: Bool)] = []
        orders += oracle.delivered.map { ($0.order, $0, true) }
        orders += pending.compactMap { patch in
            patch.command.map { ($0.order, ModelOracle.Delivered(id: $0.id, order: $0.order, mark: patch.mark), false) }
        }
        for (_, command, isDelivered) in orders.sorted(by: { $0.order < $1.order }) {
            show([command], isDelivered: isDelivered, &transition)
        }
        for place in oracle.patches.indices {
            let isAttempted = pending.contains { $0.mark == oracle.patches[place].mark && $0.command?.isAttempted == true }
            if isAttempted { begin(place, &transition) }
        }
    }

    /// Removes the names of retired commands from a record, as the engine does when it loads one.
    func withoutRetired(_ record: CacheRecord<[Int]>?) -> CacheRecord<[Int]>? {
        guard var record, let names = record.fields.commands else { return record }
        let kept = names.filter { name in oracle.delivered.contains { $0.id == name } }
        record.fields.commands = kept.isEmpty ? nil : kept
        return record
    }
}

extension UUID {
    /// An identity for each number.
    init(number: Int) {
        let byte = { (shift: Int) in UInt8(truncatingIfNeeded: number >> shift) }
        self.init(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(24), byte(16), byte(8), byte(0)))
    }
}
