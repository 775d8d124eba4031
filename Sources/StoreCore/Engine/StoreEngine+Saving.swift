// Waiting until the cacher has what was accepted: every write does so for its own key, and whoever is about to end for all of them (C6).

extension StoreEngine {
    /// Waits until the cacher has all that was accepted before: of one key, or of all of them.
    ///
    /// - Parameter param: The key; `nil` for all.
    /// - Throws: ``StoreError/Code/cacherFailed`` where the cacher failed, after everything else is saved; `CancellationError`.
    func waitUntilSaved(_ param: BoxedKey? = nil) async throws {
        try Task.checkCancellation()
        let (saves, clearing) = beginWaiting(param)
        var (faults, isCancelled): ([any Error], Bool) = ([], false)
        if let clearing {
            do {
                try await cleared(clearing.id, clearing.reply).get()
            } catch is CancellationError {
                isCancelled = true
            } catch {
                faults.append(error)
            }
        }
        // One after the other is as good as all at once: the last one to be saved ends it. Nor does cancellation take longer.
        for save in saves {
            switch await save.reply.value(onCancel: { release(save.id, of: save.param) }) {
            case .failure(let error): faults.append(error)
            case .cancelled: isCancelled = true
            case .content, .done, .page, .outdated: break
            }
        }
        if isCancelled { throw CancellationError() }
        guard let fault = faults.first else { return }
        let message =
            "waiting until everything is saved: the cacher failed \(faults.count == 1 ? "once" : "\(faults.count) times"); what it did not "
            + "take stays in the store, so see to the cause and wait again"
        throw StoreError(.cacherFailed, message, underlyingError: fault)
    }

    /// Somebody who waits for the record of one key.
    private struct Save: Sendable {
        let param: BoxedKey
        let id: CallerID
        let reply: Reply<CallerAnswer<BoxedContent>>
    }

    private struct Clearing: Sendable {
        let id: CallerID
        let reply: CacherLane.ClearReply
    }

    /// Registers a caller at each key of which the cacher does not know everything, and tells it once more what it failed to take.
    private func beginWaiting(_ param: BoxedKey?) -> (saves: [Save], clearing: Clearing?) {
        var effects = Effects()
        let waiting = state.withLock { state -> ([Save], Clearing?) in
            let keys = param.map { [state.live[$0]].compactMap { $0 } } ?? state.live.all
            let saves = keys.compactMap { key in take(key, &state, &effects) { key, turn in beginWaiting(&key, &turn) } }
            guard state.lane.isBarred else { return (saves, nil) }
            let clearing = Clearing(id: nextID(), reply: CacherLane.ClearReply())
            state.lane.awaitClearing(clearing.id, clearing.reply)
            return (saves, clearing)
        }
        effects.deliver(onEvent)
        return waiting
    }

    /// - Returns: `nil` where everything is saved.
    private func beginWaiting(_ key: inout Key, _ turn: inout Turn) -> Save? {
        let id = nextID()
        let answer = key.machine.callerArrived(id, needing: .allSaved, &turn)
        if case .done = answer { return nil }
        let save = Save(param: key.param, id: id, reply: Reply())
        if let answer { save.reply.put(answer) } else { key.callers.put(save.reply, at: id) }
        return save
    }
}
