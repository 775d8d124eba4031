#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// The lanes of entities that get their real key. A lane gets its new name with the entry that replaces the temporary key, before the payloads
// of its commands are rewritten and without their types. Therefore no later command overtakes them (O3).

extension OutboxMachine {
    /// The number of replaced identifiers that a new process remembers beside those that commands refer to.
    static let longestMemory = 10_000

    /// A lane and a submission under the keys that have replaced temporary ones.
    mutating func renamed(
        _ lane: OutboxLane, _ submission: OutboxEntry.Submission
    ) -> (lane: OutboxLane, submission: OutboxEntry.Submission) {
        var submission = submission
        submission.subject = submission.subject.replaced(replacements)
        if !submission.subject.key.isEmpty { storeNames.insert(submission.subject.name) }
        return (lane.replaced(replacements), submission)
    }

    /// A temporary identifier was replaced: its contents and their lanes get the new key.
    mutating func rename(_ temporary: String, to replacement: String) {
        // The origin may have kept the key.
        guard temporary != replacement else { return }
        for name in storeNames {
            let (old, new) = (OutboxLane(name: name, key: temporary), OutboxLane(name: name, key: replacement))
            if heldLanes.remove(old) != nil { heldLanes.insert(new) }
            guard let ids = bySubject.removeValue(forKey: old) else { continue }
            bySubject[new, default: []] += ids
            let waiting = lanes[old]?.ids ?? []
            lanes[old]?.ids = []
            for id in ids {
                items[id]?.submission.subject = new
                if items[id]?.lane == old { items[id]?.lane = new }
            }
            for id in waiting { move(id, from: old, to: new) }
            if let lane = lanes[old], lane.active == nil, !lane.isQueued { lanes[old] = nil }
            review(new)
        }
    }

    private mutating func move(_ id: UUID, from old: OutboxLane, to new: OutboxLane) {
        guard let item = items[id] else { return }
        insert(id, item.order, into: new)
        guard running[id] == old else { return }
        // The command does not refer to the identifier, although its key is the temporary one.
        running[id] = new
        if lanes[old]?.active == id { lanes[old]?.active = nil }
        if lanes[new]?.active == nil { lanes[new]?.active = id }
    }

    /// Forgets the oldest replaced identifiers of earlier processes, except those that commands refer to.
    mutating func forgetOldReplacements(keeping limit: Int = longestMemory) {
        let excess = replacementOrder.count - limit
        guard excess > 0 else { return }
        let named = Set(items.values.flatMap(\.submission.references))
        let forgotten = Set(replacementOrder.prefix(excess)).subtracting(named)
        replacementOrder.removeAll { forgotten.contains($0) }
        for temporary in forgotten { replacements[temporary] = nil }
    }
}
