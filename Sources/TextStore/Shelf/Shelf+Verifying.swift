/// Verification of records before the session shows them.
///
/// Verification is asynchronous and the shelf's methods never suspend, so the store verifies between two calls: it takes the records
/// without a verdict, and returns the verdicts. A refused record counts as a damaged one.
extension Shelf {
    /// Keeps a record that was read from its file. Returns `nil` if the verifier has refused it or has not seen it yet.
    func count(_ record: TextRecord, _ file: RecordName) -> TextRecord? {
        guard verifies else {
            loaded[file] = record
            return record
        }
        switch verdicts[file] {
        case nil: unverified[file] = record
        case true?: loaded[file] = record.verified
        case false?: break
        }
        return loaded[file]
    }

    /// Reads the records of some or all registered texts that the session would show, and returns those without a verdict.
    ///
    /// - Parameter withPending: Whether to include the waiting sets, registered or not.
    func recordsToVerify(_ identifiers: [String]?, withPending: Bool = false) -> [RecordName: TextRecord] {
        guard verifies else { return [:] }
        catchUp()
        let identifiers = identifiers ?? Array(registered), hadDamage = !damaged.isEmpty
        held(identifiers)
        // The session lacks the previous records of the other texts, and needs them to restore the previous set.
        if hadDamage != !damaged.isEmpty { isForeign = true }
        // Previous records, including those of a whole set, may be shown instead of refused ones.
        if !damaged.isEmpty { held(identifiers + registered) }
        var wanted = Set(identifiers).union(damaged.isEmpty ? [] : registered)
        if withPending || !isOpen {
            for (identifier, place) in pointer.pending.values.joined() {
                _ = record(place, of: identifier)
                if awaitsVerdict(place, of: identifier) { wanted.insert(identifier) }
            }
        }
        return unverified.filter { wanted.contains($0.value.identifier) }
    }

    /// Returns whether a record needs the verifier's verdict before its set may switch.
    ///
    /// A copy of a bundled text needs none before its registration, because the store does not know the bundle's file earlier. The copy is
    /// verified at registration, before the session shows it.
    func awaitsVerdict(_ place: Pointer.Place, of identifier: String) -> Bool {
        guard let record = unverified[place.file] else { return false }
        return record.facts.url != nil || registered.contains(identifier)
    }

    /// The groups in which the active record of a registered text has no verdict yet.
    var groupsAwaitingVerdict: Set<String> {
        guard !unverified.isEmpty else { return [] }
        let registered = registered
        let waiting = unverified.filter { file, record in
            registered.contains(record.identifier) && pointer.active[record.identifier]?.file == file
        }
        return Set(waiting.values.compactMap { pointer.groupsByText[$0.identifier] })
    }

    /// Takes over the verifier's verdicts: a good record counts as verified from now on, and a refused one as damaged.
    func take(_ verdicts: [RecordName: Bool]) {
        for (file, isGood) in verdicts {
            guard let record = unverified.removeValue(forKey: file) else { continue }
            self.verdicts[file] = isGood
            if isGood { loaded[file] = record.verified }
        }
    }

    /// Publishes all registered texts to the session again.
    func lookAgain() -> Outcome {
        isForeign = true
        return publish([], Outcome(isForeign: true))
    }
}

extension TextRecord {
    fileprivate var verified: TextRecord {
        var facts = facts
        facts.isVerified = true
        return TextRecord(identifier: identifier, text: text, facts: facts, headers: headers)
    }
}
