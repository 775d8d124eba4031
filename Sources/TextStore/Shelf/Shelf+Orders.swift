internal import StorePlatform

/// The orders of the app's own bundle (T16).
extension Shelf {
    /// Carries out the epoch and the rollbacks of the bundled manifest, which is part of the app and needs no verification.
    ///
    /// The order counts if its edition is above every accepted one: an older app, or a bundle older than the origin's manifest, orders
    /// nothing. A bundle without a higher epoch and without an effective rollback changes nothing, so the origin's manifests of its epoch
    /// remain acceptable. The session learns of the new floors by the next ``publish(_:_:_:)``.
    ///
    /// - Parameter manifest: The bundled manifest.
    /// - Returns: The registered texts whose floors have changed, and the events.
    func carryOut(_ manifest: VersionManifest) -> (changed: [String], Outcome) {
        guard let edition = manifest.edition, edition.epoch > 0 || manifest.entries.contains(where: { $0.value.isRollback }) else {
            return ([], Outcome())
        }
        let seen: Edition?, changed: [String]
        do throws(TextStoreError) {
            try directory.make(options)
            (seen, changed) = try locked { () throws(TextStoreError) in
                catchUp()
                let (seen, changed) = (floors.edition, floors.carryOut(manifest, edition, pointer.active))
                if floors.edition != seen { saveFloors(changed) }
                return (seen, changed)
            }
        } catch {
            // The order counts in memory, and the same bundle repeats it at the next start.
            faults.append(error)
            (seen, changed) = (floors.edition, floors.carryOut(manifest, edition, pointer.active))
        }
        let events = seen == floors.edition ? [] : Self.events(from: seen, to: edition, .max)
        return (changed.filter(registered.contains), Outcome(events: events))
    }
}
