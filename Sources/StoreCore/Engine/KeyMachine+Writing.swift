// Updates, clearing, and invalidation (C5).

/// What becomes of the page keys when content is replaced.
enum PageKeys: Hashable, Sendable {
    case kept
    case replaced(next: String?, prev: String?)
}

extension KeyMachine {
    /// Somebody has said what the content is; `nil` is the same as `cleared(_:)`.
    ///
    /// - Returns: The number of the new truth.
    @discardableResult
    mutating func updated(
        _ content: Content?, keys: PageKeys = .kept, as change: ContentChange = .set, _ turn: inout Turn
    ) -> Ticket {
        guard let content else { return cleared(&turn) }
        turn.isWriting = true
        let wasExplicit = dropFlight(&turn) || forcePending
        forgetPending()
        if keys == .kept { interruptPages(&turn) } else { supersedePages(&turn) }
        var record = CacheRecord(content: content, fetchedAt: turn.date, details: nil)
        if keys != .kept || held?.record.details != nil { record.fields = fields(after: content, keys) }
        let (wasRead, hadPendingKeys) = (isRead, pendingKeys != nil)
        isRead = true
        // A list keeps the keys that its record has, also where that record has still to be read.
        if keys != .kept || !rules.isList {
            if pendingKeys != nil { pendingKeys = nil }
        } else if !wasRead {
            pendingKeys = .adopt
            beginReading(&turn)
        }
        accept(record, change, &turn)
        // Nobody is looked at in vain: there may be thousands who wait for the cacher, or for a refresh, and as many updates.
        if fetchCallers > refreshCallers || !wasRead { answerAfterUpdate(&turn) }
        if wasExplicit || refreshCallers > 0 { restartIfWanted(explicit: true, &turn) }
        // Page requests that waited for the old keys go on, too.
        if !wasRead || (hadPendingKeys && pendingKeys == nil) { readmitCallers(&turn) }
        endTurn(&turn)
        return revision
    }

    /// Gives the content to callers that need not wait for a fetch any longer.
    mutating func answerAfterUpdate(_ turn: inout Turn) {
        let answer = content.map { CallerAnswer.content($0) }
        answerCallers(&turn) { need in
            switch need {
            case .content, .origin, .cached: answer
            case .freshness, .prefetch: .done
            case .pageAfterFetch: .page(.notLoadedYet)
            default: nil
            }
        }
    }

    /// What waited for the cache to be read has been overtaken.
    private mutating func forgetPending() {
        if forcePending { forcePending = false }
        if invalidatePending { invalidatePending = false }
    }

    /// What stays of the record's details when its content is set: the pages, and that the content must not be stored (RFC 9111 §5.2.2.5).
    func fields(after content: Content, _ keys: PageKeys) -> RecordDetails.Fields {
        var fields = RecordDetails.Fields()
        if let record = held?.record {
            let held = record.fields
            fields.pages = resized(held.pages, from: record.content, to: content)
            fields.freshness.storage = held.freshness.storage
            (fields.nextKey, fields.prevKey) = (held.nextKey, held.prevKey)
        }
        if case .replaced(let next, let prev) = keys { (fields.nextKey, fields.prevKey) = (next, prev) }
        return fields
    }

    /// The record whose keys an updated list is to keep has been read.
    mutating func adoptKeys(of record: CacheRecord<Content>?, _ turn: inout Turn) {
        let adopts = pendingKeys == .adopt
        pendingKeys = nil
        if adopts, let record, let content = held?.record.content {
            held?.record.fields.nextKey = record.nextKey
            held?.record.fields.prevKey = record.prevKey
            let pages = resized(record.fields.pages, from: record.content, to: content)
            held?.record.fields.pages = pages
            truthChanged(.derived, &turn)
        }
        readmitCallers(&turn)
    }

    /// Somebody wants the content forgotten, with everything that is known of it.
    ///
    /// - Parameter cacherIsCleared: Whether the whole cacher is being emptied, so that this key needs no removal of its own.
    /// - Returns: The number of the new truth.
    @discardableResult
    mutating func cleared(cacherIsCleared: Bool = false, _ turn: inout Turn) -> Ticket {
        turn.isWriting = true
        let wasExplicit = dropFlight(&turn) || forcePending || refreshCallers > 0
        // A prefetch is no reason to fetch cleared content again.
        if fetchCallers > refreshCallers { answerCallers(&turn) { $0 == .prefetch ? .done : nil } }
        forgetPending()
        let (wasRead, hadPendingKeys) = (isRead, pendingKeys != nil)
        pendingKeys = nil
        supersedePages(&turn)
        isRead = true
        if let old = held?.record.content { turn.discarded.append(old) }
        held = nil
        epoch = turn.tickets.next()
        owesFetch = false
        forgetFailures(into: &turn.leftovers)
        mergeIndex = nil
        discardPatches(&turn) { _ in true }
        refetchesAtDeadline = false
        truthChanged(.set, &turn)
        if cacherIsCleared { cacherIsEmptied(&turn) }
        restartIfWanted(explicit: wasExplicit, &turn)
        if !wasRead || hadPendingKeys { readmitCallers(&turn) }
        endTurn(&turn)
        return revision
    }

    /// Somebody knows that the content is out of date.
    mutating func invalidated(_ turn: inout Turn) {
        turn.isWriting = true
        if isRead {
            applyInvalidation(&turn)
        } else {
            invalidatePending = true
            beginReading(&turn)
        }
        endTurn(&turn)
    }

    mutating func applyInvalidation(_ turn: inout Turn) {
        let wasExplicit = dropFlight(&turn)
        epoch = turn.tickets.next()
        interruptPages(&turn)
        if held != nil {
            held?.invalidate()
            refetchesAtDeadline = false
            truthChanged(.invalidated, &turn)
        }
        restartIfWanted(explicit: wasExplicit, &turn)
    }

    /// Whoever waited for the old epoch's fetch waits for one of the new epoch.
    mutating func restartIfWanted(explicit: Bool, _ turn: inout Turn) {
        if isWanted { startFlight(explicit: explicit, &turn) }
    }
}
