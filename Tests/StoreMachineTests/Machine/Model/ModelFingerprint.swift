internal import Foundation

@testable import StoreCore

/// A state without the details that do not affect its future. Contents are numbered by first appearance. Times are relative
/// to now and clamped where a longer time makes no difference. Tickets are omitted, because their order is checked elsewhere.
struct ModelFingerprint: Hashable {
    private var bytes: [UInt8] = []
    private var contents: [[Int]] = []
    private var tags: [Int] = []
    /// The commands that a record may name.
    private var oracleNames: [UUID] = []

    init(_ world: ModelWorld) {
        bytes.reserveCapacity(64)
        oracleNames = world.oracle.delivered.map(\.id)
        add(oracle: world.oracle, world.setting)
        add(machine: world.machine, world.oracle.now)
        add(cacher: world)
        add(participants: world)
        // Numbering aids must not distinguish states.
        contents = []
        tags = []
        oracleNames = []
    }

    // MARK: Elements

    private mutating func add(_ flags: Bool...) {
        var byte: UInt8 = 1
        for flag in flags { byte = byte << 1 | (flag ? 1 : 0) }
        bytes.append(byte)
    }

    private mutating func add(_ number: Int) { bytes.append(UInt8(clamping: number)) }

    private mutating func add(content: [Int]?) {
        guard let content else { return add(255) }
        if let place = contents.firstIndex(of: content) { return add(place) }
        contents.append(content)
        add(contents.count - 1)
    }

    private mutating func add(tag: Int?) {
        guard let tag else { return add(255) }
        if let place = tags.firstIndex(of: tag) { return add(place) }
        tags.append(tag)
        add(tags.count - 1)
    }

    /// Adds a time relative to now. Differences beyond 15 s do not matter.
    private mutating func add(time: Int?, _ now: Int) { add(time.map { 16 + max(-15, min(15, $0 - now)) } ?? 255) }

    private mutating func add(time: MonotonicInstant?, _ now: Int) {
        switch time {
        case nil: add(255)
        case .distantPast?: add(254)
        case .distantFuture?: add(253)
        case let time?: add(time: Int(time.nanoseconds / 1_000_000_000), now)
        }
    }

    // MARK: Parts

    private mutating func add(_ accepted: ModelOracle.Accepted?, _ setting: ModelSetting, _ now: Int) {
        add(content: accepted?.content)
        guard let accepted else { return }
        add(accepted.isInvalidated, accepted.isForbidden, accepted.isComplete, accepted.nextKey != nil, accepted.prevKey != nil)
        add(tag: accepted.tag)
        if !accepted.names.isEmpty { for name in oracleNames { add(accepted.names.contains(name)) } }
        add(accepted.loaded.next * 4 + accepted.loaded.prev)
        for page in accepted.pages { add(page.storage == .forbidden ? page.count + 128 : page.count) }
        if setting.window != nil {
            for page in accepted.pages { add(page.direction == nil, page.direction == .next, page.key != nil, page.returnKey != nil) }
        }
        if !accepted.isInvalidated, let expiry = setting.expiry {
            // After the last window of its policies, the age of a record does not matter.
            let window = max(whole(setting.rules.policy.staleWhileRevalidate), whole(setting.rules.policy.staleIfError))
            add(max(accepted.fetchedAt + expiry - now, -window - 1) + 16)
        }
    }

    private mutating func add(oracle: ModelOracle, _ setting: ModelSetting) {
        add(oracle.accepted, setting, oracle.now)
        add(oracle.isKnown, oracle.isArmed, oracle.triggerWaits, oracle.forceWaits, oracle.invalidationWaits, oracle.hasSaveFailed)
        add(oracle.failure != nil, oracle.isHeldOff, oracle.failedSides[.next] != nil, oracle.failedSides[.prev] != nil, oracle.isUnread)
        if let failure = oracle.failure, oracle.isHeldOff { add(time: failure.holdsUntil, oracle.now) }
        let interval = whole(setting.rules.policy.minimumInterval)
        add(oracle.lastEnded.map { max(0, $0 + interval - oracle.now) } ?? 0)
        add(time: oracle.graceEnds, oracle.now)
        add(oracle.owedSince.map { max(0, $0 + interval - oracle.now) } ?? 254)
        add(oracle.owesInvalidation, oracle.isUnreadable)
        add(oracle.owesFetch)
        add(stream: oracle.stream, oracle)
        for patch in oracle.patches {
            add(patch.isConfirmed, patch.isBeforePage, patch.began == oracle.changes, patch.command != nil)
            if let command = patch.command { add(command.isAttempted, command.isBeforeFetch) }
        }
        for command in oracle.delivered {
            let isNamed = oracle.accepted?.names.contains(command.id) == true
            add(
                isNamed, oracle.folded.contains(command.id), command.settling == nil, oracle.isRetirable(command.id),
                oracle.patches.contains { $0.command?.id == command.id }, (command.settling?.revision ?? 0) == .max)
            let last = oracle.patches.last { $0.command != nil }?.command?.order ?? 0
            add(command.order < last, (command.settling?.revision ?? 0) < oracle.revision)
        }
    }

    private mutating func add(stream: ModelStream?, _ oracle: ModelOracle) {
        guard let stream else { return }
        add(true, stream.isConnected, stream.isWaiting, stream.valueRevision == oracle.revision)
        // After a second, a connection has stood long enough.
        add(stream.isConnected ? min(3, oracle.now - stream.connectedAt) : 0)
        add(stream.attempt)
        add(time: stream.reconnectsAt.map { Int($0.nanoseconds / 100_000_000) }, oracle.now * 10)
        add(time: stream.silenceEnds, oracle.now)
        add(time: stream.lastSave.map { max($0, oracle.now - 5) }, oracle.now)
        add(time: stream.saveDue, oracle.now)
        add(content: stream.own?.content)
        add(tag: stream.own?.tag)
    }

    private mutating func add(machine: KeyMachine<[Int]>, _ now: Int) {
        add(
            machine.origin.isKnown, machine.book.held?.refetchesAtDeadline == true, machine.desk.triggerPending,
            machine.desk.forceRefreshPending, machine.desk.invalidatePending)
        add(
            machine.origin.flight != nil, machine.origin.flight?.forceRefresh == true, machine.sides.next.ticket != nil,
            machine.sides.prev.ticket != nil)
        add(machine.sides.next.isInterrupted, machine.sides.prev.isInterrupted)
        let purpose = machine.origin.reread?.purpose
        add(purpose == .pageKeys(isOutdated: false), purpose == .pageKeys(isOutdated: true))
        add(
            machine.sides.mergeIndex != nil, machine.saving.failure != nil, machine.saving.tried < machine.book.revision,
            machine.origin.failure != nil)
        add(time: machine.origin.graceEnds, now)
    }

    private mutating func add(cacher world: ModelWorld) {
        add(world.stored.map { ModelOracle.Accepted($0) }, world.setting, world.oracle.now)
        add(world.front.map { ModelOracle.Accepted($0.record) }, world.setting, world.oracle.now)
        add(
            world.front.map { $0.deadline == .distantPast } ?? false, world.wasEvicted, world.isEmptying, world.call != nil,
            world.saveWaits,
            world.isLive
        )
        guard let call = world.call else { return }
        add(call.kind == .read, call.kind == .save, call.isDeferred, call.revision < world.oracle.revision)
        add(call.record.map { ModelOracle.Accepted($0) }, world.setting, world.oracle.now)
    }

    private mutating func add(participants world: ModelWorld) {
        add(world.observers)
        for fetch in world.running.sorted(by: { $0.place < $1.place }) {
            add(fetch.place + (fetch.isExplicit ? 4 : 0) + (fetch.isPromised ? 8 : 0))
            add(tag: fetch.tag)
            add(fetch.pages.next * 4 + fetch.pages.prev)
        }
        add(world.late.contains(where: \.isOfContent), world.late.contains { !$0.isOfContent }, world.forgottenPatch != nil)
        var waiting = world.callers.map { caller -> UInt8 in
            let part: UInt8 = caller.part.map { $0 == .asked ? 16 : $0 == .joined ? 32 : 48 } ?? 0
            let isServed = caller.awaits.map { $0 <= (world.call?.revision ?? 0) } ?? false
            return caller.need.kind | part | (caller.awaits != nil ? 64 : 0) | (caller.isAnswered || isServed ? 128 : 0)
        }
        waiting.sort()
        bytes += waiting
    }
}

extension ModelFetch {
    fileprivate var place: Int { direction.map { $0 == .next ? 1 : 2 } ?? 0 }
}
