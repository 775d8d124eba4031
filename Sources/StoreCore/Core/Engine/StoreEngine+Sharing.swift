internal import Synchronization

// A shared cacher: the changes of other users, saves that they may supersede, and fetches that only one user runs (D1 to D5).

extension StoreEngine {
    /// Follows the changes of others; the cacher begins to deliver them at its first load or save.
    func observeChanges() {
        guard rules.isShared, let backing else { return }
        let changes = backing.observeChanges { [weak self] change in self?.changed(change) }
        state.withLock { $0.changes = changes }
    }

    private func changed(_ change: CacherChange<BoxedKey>) {
        let unread = withEffects { state, effects -> BoxedKey? in
            switch change {
            case .changed(let param, let revision):
                if let drop = front?.remove(param) { effects.leftovers.append(drop) }
                if !state.watches.isEmpty { state.note(.elsewhere, of: param) }
                guard let key = state.live[param] else { return clocks.own.isFollowed.load(ordering: .acquiring) ? param : nil }
                take(key, &state, &effects) { key, transition in key.machine.changedElsewhere(revision, &transition) }
            case .removedAll(let revision):
                forgetFront(&state, &effects)
                state.noteChangeOfAllKeys()
                for key in state.live.values {
                    take(key, &state, &effects) { key, transition in key.machine.clearedElsewhere(revision, &transition) }
                }
            case .gap:
                forgetFront(&state, &effects)
                state.noteChangeOfAllKeys()
                for key in state.live.values {
                    take(key, &state, &effects) { key, transition in key.machine.changedElsewhere(SharedKey.gap, &transition) }
                }
                if let forgotten = state.links?.log.forgetAll() {
                    clocks.own.count()
                    effects.leftovers.append(forgotten)
                    effects.marks.append(LinkMark(engine: self, key: nil, isRead: true))
                }
            }
            return nil
        }
        // Content of other stores may show the entity of an idle key.
        if let unread { readLater(unread) }
    }

    /// Saves or removes a record; with a base, only if no other user of the shared cacher has changed the key since.
    static func write(
        _ record: CacheRecord<BoxedContent>?, _ param: BoxedKey, to backing: any EngineCacher, over base: Revision?
    ) async throws -> SaveOutcome<BoxedContent> {
        if let base, backing.isShared {
            if let record { return try await backing.save(record, param: param, over: base) }
            return try await backing.remove(param: param, over: base)
        }
        if let record { try await backing.save(record, param: param) } else { try await backing.remove(param: param) }
        return .saved(.none)
    }

    // MARK: Leases

    /// Fetches content when this store has the lease of the key. While another user has the lease, waits for that user's record.
    func leasedFetch(
        _ ticket: Ticket, _ order: FetchOrder, _ param: BoxedKey, _ scope: FetchScope, at start: MonotonicInstant?
    ) -> FetchStarter.Work {
        let keeper = rules.policy.unwantedFetch == .complete ? self : nil
        let report = reporter(for: param)
        return { [weak self, backing, fetches, duration = rules.policy.leaseDuration] in
            defer { scope.work.end() }
            var lease: Lease?
            do {
                let outcome = try await FetchTurn.$key.withValue(scope.key) { try await backing?.lease(param, for: duration) }
                switch outcome {
                case .granted(let granted):
                    // The store may have been released, or the fetch dropped.
                    guard (keeper ?? self)?.leaseGranted(ticket, param, at: granted.position) == true else {
                        return granted.end(.abandoned)
                    }
                    lease = granted
                case .failed(let failure):
                    (keeper ?? self)?.fetchFinished(ticket, order, param, .failure(failure), nil)
                    return
                case .notNeeded, nil: break
                }
            } catch {
                // If the store has dropped the fetch, it has canceled this task. Otherwise the store fetches without a lease.
                if Task.isCancelled { return }
                (keeper ?? self)?.report(.cacherFault(.lease, error), param)
            }
            let result = await withTaskCancellationHandler {
                await scope.run { await fetches.run(order, param, report, at: start) }
            } onCancel: { [lease] in
                // The result of a dropped fetch is not accepted. A fetcher that ignores the cancellation would keep all others waiting.
                lease?.end(.abandoned)
            }
            (keeper ?? self)?.fetchFinished(ticket, order, param, result, lease)
        }
    }

    private func leaseGranted(_ ticket: Ticket, _ param: BoxedKey, at position: Revision) -> Bool {
        state.withLock { state in state.live[param]?.value.machine.leaseGranted(ticket, at: position) ?? false }
    }

    /// Ends a lease with the result of its fetch, or keeps it until the result is saved. A refused fetch has no result.
    func settle(_ lease: Lease, of key: inout Key, _ result: Fetches.Outcome, isAccepted: Bool) {
        // Ending a lease only notifies the cacher, which must return quickly, so it may happen under the lock.
        switch result {
        case .failure(let error) where isAccepted && (error as? any FailureAdvising)?.isRefusal != true:
            lease.end(.failed(FetchFailedElsewhere(error)))
        case .success where isAccepted:
            key.lease = (lease, key.machine.book.revision)
            endLease(of: &key)
        default: lease.end(.abandoned)
        }
    }

    /// Ends the lease of a key whose content is saved, or cannot be.
    func endLease(of key: inout Key) {
        guard let (lease, revision) = key.lease else { return }
        if key.machine.book.held?.record.freshness.storage == .forbidden || key.machine.saving.failure != nil {
            lease.end(.notStored)
        } else if key.machine.saving.tried >= revision {
            lease.end(.saved)
        } else {
            return
        }
        key.lease = nil
    }
}
