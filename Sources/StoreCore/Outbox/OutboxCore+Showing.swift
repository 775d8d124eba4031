#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

// The actions of the machine: the changes in the stores, from the submission of a command until the saved content contains its change.

extension OutboxCore {
    func carryOut() {
        repeat {
            var dropped: [UUID] = []
            for action in machine.takeActions() {
                if case .drop(let id) = action {
                    dropped.append(id)
                } else {
                    drop(dropped)
                    dropped = []
                    carryOut(action)
                }
            }
            drop(dropped)
            // A compaction applies the unread entries of other processes, too.
            if machine.actions.isEmpty { compactIfNeeded() }
        } while !machine.actions.isEmpty
        updateLease()
        armWake()
        version.update { $0 += 1 }
    }

    func carryOut(_ action: OutboxMachine.Action) {
        switch action {
        case .begin(let id): begin(id)
        case .perform(let id, let attempt): Task { await deliver(id, attempt) }
        case .rewrite(let id): rewrite(id)
        case .show(let id, let superseded): show(id, insteadOf: superseded)
        case .drop(let id): drop([id])
        case .settle(let item): settle(item)
        case .replaceKey(let temporary, let replacement):
            for registration in registrations.values { registration.replaceKey(temporary, with: replacement) }
        }
    }

    /// The command if it was encoded last.
    func known(_ item: OutboxMachine.Item) -> BoundCommand? {
        latest?.delivery == item.submission.delivery ? latest?.command : nil
    }

    func bind(_ item: OutboxMachine.Item) -> BoundCommand? {
        guard let registration = registrations[item.submission.name], !item.isUnreadable else { return nil }
        do {
            return try registration.bind(item.submission.payload, item.submission.version)
        } catch {
            machine.markUnreadable(item.id)
            report(.undecodable(name: item.submission.name, error), item.id)
            return nil
        }
    }

    func show(_ id: UUID, insteadOf superseded: UUID?) {
        if let superseded, superseded != id { report(.superseded, superseded) }
        // An identifier was replaced. The older change is visible under the temporary key until the entity has moved.
        if superseded == id, waitsForMove(id, .show(id)) { return }
        show(machine.items[id], id, insteadOf: superseded)
    }

    private func show(_ item: OutboxMachine.Item?, _ id: UUID, insteadOf superseded: UUID?) {
        let old = superseded.flatMap { shown.removeValue(forKey: $0) } ?? []
        guard let item, item.status != .failed, let command = known(item) ?? bind(item) else {
            for patch in old { patch.drop([superseded ?? id]) }
            if let item, item.status == .failed { abandon(item) }
            return
        }
        for patch in command.patches {
            if let first = patch.first {
                if item.status == .pending { patch.engine.showCreation(CommandMark(item), of: patch.key, first, insteadOf: superseded) }
            } else {
                patch.show([ShownCommand(item, patch, of: command, at: time.date)], insteadOf: superseded)
            }
        }
        // The command does not change these keys any longer.
        for patch in old where !command.patches.contains(where: { $0.replaces(patch) }) { patch.drop([superseded ?? id]) }
        if !command.patches.isEmpty { shown[id] = command.patches }
    }

    /// Keeps the temporary key of a failed creation from being fetched.
    func abandon(_ item: OutboxMachine.Item) {
        guard let temporary = item.submission.creates, machine.creators[temporary] == item.id,
            let registration = registrations[item.submission.name], let key = registration.decodeKey?(temporary)
        else { return }
        registration.engines.first?.abandonKey(key)
    }

    /// Shows the commands of a type that was just registered: all changes of one content in one step, because each step applies all.
    func show(_ items: [OutboxMachine.Item]) {
        var groups = PatchGroups<ShownCommand<BoxedContent>>()
        for item in items {
            guard let command = bind(item) else { continue }
            for patch in command.patches {
                if let first = patch.first {
                    if item.status == .pending { patch.engine.showCreation(CommandMark(item), of: patch.key, first) }
                } else {
                    groups.add(ShownCommand(item, patch, of: command, at: time.date), patch)
                }
            }
            if !command.patches.isEmpty { shown[item.id] = command.patches }
        }
        for group in groups.all { group.patch.show(group.values) }
    }

    func drop(_ ids: [UUID]) {
        var groups = PatchGroups<UUID>()
        for id in ids {
            for patch in shown.removeValue(forKey: id) ?? [] { groups.add(id, patch) }
            unsettled[id] = nil
        }
        for group in groups.all { group.patch.drop(Set(group.values)) }
        settleAgain(in: groups.all.map(\.patch))
    }

    /// A list folds the change of a delivered command once no earlier command of another lane is pending for the same element.
    private func settleAgain(in patches: [BoundPatch]) {
        let engines = patches.filter { $0.isIn != nil }.map(\.engine)
        guard !engines.isEmpty else { return }
        for (id, lists) in unsettled {
            for list in lists where list.isIn == nil && engines.contains(where: { $0 === list.engine }) { settle(id, .none, in: list) }
        }
    }

    func settle(_ item: OutboxMachine.Item) {
        let id = item.id
        // Another process may have delivered the command before its entity has moved here.
        if waitsForMove(id, .settle(item)) { return }
        let performed = responses.removeValue(forKey: id)
        let response = performed?.response ?? .none
        guard let patches = shown[id], let first = patches.first else {
            // Without a registration, the stores are unknown.
            guard let registration = registrations[item.submission.name] else { return }
            if let temporary = item.submission.creates, let replacement = item.replacement {
                registration.replaceKey(temporary, with: replacement)
            }
            // A program that can decode the command folds its change.
            if machine.items[id]?.isUnreadable != true { retire([id]) }
            return
        }
        // A process that delivered the command may have ended before it saved the lists that it had loaded. The number of waits is bounded.
        let waits = performed == nil && machine.items[id]?.status == .delivered && unsettled.count < 1_000
        // The response and a created entity are newer than what the command's other changes bring, whichever is folded first (E2).
        var isNewer = item.submission.creates != nil
        if case .content = response { isNewer = true }
        let delivered = isNewer && patches.count > 1 ? first.engine.stamp() : item.stampBeforeResponse(time.date)
        let changed = patches.flatMap { patch -> [BoundPatch] in
            let stamp = patch.isSame(as: first) ? nil : delivered
            return patch.isIn == nil ? [patch] : lists(of: patch, toSettle: id, at: stamp, waits: waits)
        }
        guard !changed.isEmpty else { return retire([id]) }
        unsettled[id] = changed
        for patch in changed where patch.isIn == nil {
            patch.engine.knowCommands([id])
            if let first = patch.first {
                move(item, patch, first, performed)
            } else {
                let isFirst = patch.isSame(as: first)
                settle(id, isFirst ? response : .none, in: patch, at: isFirst ? nil : delivered)
            }
        }
    }

    /// The lists that get the change of a delivered command.
    ///
    /// If no list has the element yet, a change that waits is returned itself, and settled with the first list that does.
    ///
    /// - Parameter delivered: The stamp of the change; `nil` for the one that it has, or else for that of the fold.
    private func lists(of patch: BoundPatch, toSettle id: UUID, at delivered: Stamp? = nil, waits: Bool) -> [BoundPatch] {
        let engine = patch.engine
        let readList: @Sendable (BoxedKey) -> Void = { [weak self] list in
            Task.detached { [self] in await engine.readList(list, ifItHasElementOf: id) { await self?.listLoaded(id, patch) } }
        }
        engine.knowCommands([id])
        let lists = engine.listsToSettle(id, at: delivered, onList: waits ? readList : nil)
        if waits, lists.isEmpty { return [patch] }
        return lists.map { BoundPatch(engine: engine, key: $0, apply: patch.apply) }
    }

    /// Another process has delivered a command and saved its change, so no list here needs to wait for it.
    func stopWaiting(_ id: UUID) {
        unsettled[id]?.removeAll { $0.isIn != nil || !$0.engine.showsCommand(id, of: $0.key) }
        guard unsettled[id]?.isEmpty == true else { return }
        unsettled[id] = nil
        for patch in shown.removeValue(forKey: id) ?? [] { if patch.isIn == nil { patch.retire(id) } else { patch.drop([id]) } }
    }

    private func listLoaded(_ id: UUID, _ patch: BoundPatch) {
        guard let position = unsettled[id]?.firstIndex(where: { $0.isIn != nil && $0.engine === patch.engine }) else { return }
        let lists = lists(of: patch, toSettle: id, waits: true).filter { $0.isIn == nil }
        guard !lists.isEmpty else { return }
        unsettled[id]?.replaceSubrange(position...position, with: lists)
        for list in lists { settle(id, .none, in: list) }
    }

    private func settle(
        _ id: UUID, _ response: MutationResponse<BoxedContent>, in patch: BoundPatch, at delivered: Stamp? = nil
    ) {
        Task.detached { [weak self] in
            let settled: @Sendable ([UUID]) async -> Void = { [weak self] folded in await self?.settled(folded, in: patch) }
            await patch.engine.settleCommand(id, of: patch.key, response, at: delivered, saved: settled)
        }
    }

    func move(_ item: OutboxMachine.Item, _ patch: BoundPatch, _ first: BoxedContent, _ performed: PerformedCommand?) {
        let decode = registrations[item.submission.name]?.decodeKey
        guard let key = performed?.replacement?.key ?? item.replacement.flatMap({ decode?($0) }) else { return retire([item.id]) }
        let content: CreatedContent<BoxedContent> =
            if case .content(let content)? = performed?.response { .response(content) } else { item.hasContent ? .unknown : .kept }
        let id = item.id
        let temporary = patch.content
        moving[temporary] = moving[temporary] ?? []
        Task.detached { [weak self] in
            let moved: @Sendable () async -> Void = { [weak self] in await self?.moved(temporary) }
            let settled: @Sendable ([UUID]) async -> Void = { [weak self] folded in await self?.settled(folded, in: patch) }
            await patch.engine.settleCreation(id, from: patch.key, to: key, content, first: first, moved: moved, saved: settled)
        }
    }

    /// Keeps a change of a moving entity until the entity has moved. The command is not delivered before, so that its change is not folded.
    private func waitsForMove(_ id: UUID, _ change: HeldChange) -> Bool {
        let patch = shown[id]?.first { $0.first == nil && moving[$0.content] != nil }
        guard let key = patch?.content else { return false }
        machine.hold(id)
        moving[key]?.append(change)
        return true
    }

    func moved(_ temporary: PatchedContent) {
        machine.woke(time.now)
        for change in moving.removeValue(forKey: temporary) ?? [] {
            switch change {
            case .show(let id):
                machine.release(id)
                if machine.items[id]?.status == .pending { show(id, insteadOf: id) }
            case .settle(let item):
                machine.release(item.id)
                show(item, item.id, insteadOf: item.id)
                settle(item)
            }
        }
        carryOut()
    }

    /// Notes that a store has saved the changes of commands, and retires the commands with changes that all stores have saved.
    func settled(_ ids: [UUID], in settled: BoundPatch) {
        var complete: [UUID] = []
        for id in ids {
            unsettled[id]?.removeAll { $0.content == settled.content }
            if unsettled[id]?.isEmpty == true { complete.append(id) }
        }
        retire(complete)
        carryOut()
    }

    func retire(_ ids: [UUID]) {
        guard !ids.isEmpty, !isClosed else { return }
        do {
            try transact { ids.compactMap { machine.items[$0] }.map { entry($0, .retired) } }
        } catch {
            // The commands stay in the log as delivered, and the next process retires them.
            return report(.logFault(error), nil)
        }
        for id in ids {
            unsettled[id] = nil
            // The key of a created entity is resolved to the one that has replaced it.
            for patch in shown.removeValue(forKey: id) ?? [] { patch.retire(id) }
        }
    }

    func rewrite(_ id: UUID) {
        guard !isClosed, let item = machine.items[id], isOutdated(item) else { return }
        do {
            try transact {
                // Another process may have replaced the identifiers, and its delivery may have begun.
                guard let item = machine.items[id], isOutdated(item), let outdated = bind(item) else { return [] }
                let registration = try registration(item.submission.name)
                return [try rewritten(item, outdated, registration, machine.replacements)]
            }
        } catch {
            report(.logFault(error), id)
            later { $0.rewrite(id) }
        }
    }

    /// Replaces the temporary identifier of an entity in the commands that refer to it.
    ///
    /// These entries belong in the append that logs the creation: another process then finds a lane with its new commands, or with none of
    /// them, even if the lane's name contains the identifier. Commands of other types wait until these are registered.
    func rewrites(after creator: OutboxMachine.Item, _ replacement: String?) -> [OutboxEntry] {
        // If the origin keeps the key, no payload or lane changes.
        guard let temporary = creator.submission.creates, let replacement, replacement != temporary else { return [] }
        return machine.pendingReferrers(to: temporary, of: creator.id).compactMap { id in
            guard let item = machine.items[id], let registration = registrations[item.submission.name], let command = bind(item)
            else { return nil }
            // Another identifier may have been replaced before, and the log may not have accepted the command then.
            var replacements = [temporary: replacement]
            for reference in item.submission.references where reference != temporary {
                replacements[reference] = machine.replacements[reference]
            }
            // A command that cannot be encoded is rewritten later, which reports the error.
            return try? rewritten(item, command, registration, replacements)
        }
    }

    private func rewritten(
        _ item: OutboxMachine.Item, _ outdated: BoundCommand, _ registration: OutboxRegistration, _ replacements: [String: String]
    ) throws -> OutboxEntry {
        let (command, payload) = try replaceIdentifiers(of: outdated, registration, replacements)
        let submission = submission(of: command, registration, payload, date: item.submission.date)
        latest = (submission.delivery, command)
        return OutboxEntry(id: item.id, lane: command.lane, fact: .replaced(submission))
    }

    /// Whether a pending command refers to a temporary identifier that was replaced.
    func isOutdated(_ item: OutboxMachine.Item) -> Bool {
        item.status == .pending && item.submission.references.contains { machine.replacements[$0] != nil }
    }

    /// Calls a function after the delay for a failed log, and carries out the actions.
    func later(_ body: @escaping @Sendable (isolated OutboxCore) -> Void) {
        let instant = time.now.advanced(by: policy.faultDelay)
        Task { [weak self, time] in
            // Nothing cancels this task.
            try? await time.sleep(until: instant)
            guard let self else { return }
            await body(self)
            await carryOut()
        }
    }
}

/// A change that waits until its entity has moved from a temporary key to its real key.
enum HeldChange: Sendable {
    /// The change of a command with a replaced identifier.
    case show(UUID)
    /// The change of a command that another process has delivered.
    case settle(OutboxMachine.Item)
}

struct PatchedContent: Hashable, Sendable {
    var engine: ObjectIdentifier
    // Compared before the keys, because those of contents and of elements have different types.
    var isOfElements: Bool
    var key: BoxedKey
}

extension BoundPatch {
    fileprivate var content: PatchedContent { PatchedContent(engine: ObjectIdentifier(engine), isOfElements: isIn != nil, key: key) }
}

private struct PatchGroups<Value> {
    private(set) var all: [(patch: BoundPatch, values: [Value])] = []
    private var positions: [PatchedContent: Int] = [:]

    mutating func add(_ value: Value, _ patch: BoundPatch) {
        if let position = positions[patch.content] {
            all[position].values.append(value)
        } else {
            positions[patch.content] = all.count
            all.append((patch, [value]))
        }
    }
}

extension OutboxMachine.Item {
    /// A stamp before that of the response, if a former process or another one has received it. The clock may have been set back since.
    fileprivate func stampBeforeResponse(_ now: Date) -> Stamp? {
        hasContent || submission.creates != nil ? min(submission.date, now).stamp : nil
    }
}

extension CommandMark {
    fileprivate init(_ item: OutboxMachine.Item) {
        self.init(id: item.id, order: item.order, isAttempted: item.isAttempted, submitted: item.submission.date)
    }
}

extension ShownCommand<BoxedContent> {
    fileprivate init(_ item: OutboxMachine.Item, _ patch: BoundPatch, of command: BoundCommand, at now: Date) {
        let isFirst = command.patches.first.map { patch.isSame(as: $0) } ?? true
        self.init(
            mark: CommandMark(item), isDelivered: item.status == .delivered, delivered: isFirst ? nil : item.stampBeforeResponse(now),
            elements: patch.elements, apply: patch.apply)
    }
}
