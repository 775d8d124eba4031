internal import StoreCore

// Moves come between the preparation and the downloads. All contents are held before the first item is replaced, and the old items are
// removed after the last one is in place, each under the usual checks.

extension SyncPass {
    /// Carries out the moves of a plan; a move becomes a download if its content cannot be held.
    func move(_ plan: inout SyncPlan<Item>) async throws {
        guard !plan.moves.isEmpty, !board.mustStop else { return }
        board.enter(.moves, items: .exactly(plan.moves.count))
        var held: [SyncPlan<Item>.Move] = []
        for move in plan.moves { if try await isHeld(move) { held.append(move) } }
        let givenUp = plan.moves.count - held.count
        plan.keep(held)
        board.change { $0.pendingDownloadCount += givenUp }
        let moved = Lock<[SyncPlan<Item>.Move]>([])
        await workers.run(plan.moves, stage: .moves, key: \.item.key) { [processor] move in
            guard try await processor.isUnchanged(move.item.key, since: move.local) else { throw SyncError.changedLocally(.moves) }
            try await processor.move(move)
        } done: { move, report in
            moved.withLock { $0.append(move) }
            report.movedCount += 1
        }
        try Task.checkCancellation()
        let left = moved.withLock { $0 }.compactMap(\.removal).sorted { $0.local.key < $1.local.key }
        try await removeAll(left[...], in: .moves)
    }

    /// Returns whether the processor holds the content of a move; throws only errors that end the pass.
    private func isHeld(_ move: SyncPlan<Item>.Move) async throws -> Bool {
        try Task.checkCancellation()
        do {
            // An old item that has changed stays, because its removal checks it once more.
            guard try await processor.isUnchanged(move.from.key, since: move.from) else { return false }
            return try await processor.holdContent(of: move)
        } catch {
            guard FailureKind(judging: error) != .fatal else { throw StageFailure(stage: .moves, error: error) }
            return false
        }
    }
}

extension SyncPlan {
    /// Takes over the moves that a processor has found; ignores moves of items that the plan does not download or that stay as they are.
    mutating func take(_ found: [Move]) {
        guard !found.isEmpty else { return }
        var removals = Dictionary(removals.lazy.map { ($0.local.key, $0) }, uniquingKeysWith: { first, _ in first })
        var open = Set([additions, updates].joined().lazy.map(\.item.key))
        var replaced = Set(updates.lazy.map(\.item.key))
        for var move in found where move.item.key != move.from.key && open.contains(move.item.key) {
            let removal = removals.removeValue(forKey: move.from.key)
            guard removal != nil || replaced.remove(move.from.key) != nil else { continue }
            open.remove(move.item.key)
            move.removal = removal
            moves.append(move)
        }
        additions.removeAll { !open.contains($0.item.key) }
        updates.removeAll { !open.contains($0.item.key) }
        self.removals.removeAll { removals[$0.local.key] == nil }
    }

    /// Keeps the moves that are held, and turns the others back into downloads and removals.
    fileprivate mutating func keep(_ held: [Move]) {
        guard held.count < moves.count else { return }
        let keys = Set(held.lazy.map(\.item.key))
        let others = moves.filter { !keys.contains($0.item.key) }
        moves = held
        additions += others.lazy.filter { $0.local == nil }.map(\.download)
        updates += others.lazy.filter { $0.local != nil }.map(\.download)
        downloads += others.lazy.map(\.download)
        removals += others.compactMap(\.removal)
    }

    /// The downloads of moves that replace content which no other move keeps; they count as updates for the safety gate.
    var replacingMoves: [Download] {
        guard !moves.isEmpty else { return [] }
        let kept = Set(moves.lazy.map(\.from.key))
        return moves.lazy.map(\.download).filter { download in download.local.map { !kept.contains($0.key) } ?? false }
    }
}
