internal import StoreFiles
internal import StorePlatform

/// The floors of all texts of a session, and the highest edition of a manifest; neither ever falls.
struct Floors: Hashable, Sendable {
    var texts: [String: Floor] = [:]
    var edition: Edition?

    /// Raises these floors to the maximum of both.
    mutating func formMaximum(_ other: Floors) {
        // Of equal ranks, the later floor has the wording that was shown last.
        if texts.isEmpty { texts = other.texts } else { texts.merge(other.texts) { $1.rank < $0.rank ? $0 : $1 } }
        if let seen = other.edition { edition = max(edition ?? seen, seen) }
    }

    /// Carries out the epoch and the rollbacks of the bundled manifest if they count, although no text was fetched.
    ///
    /// - Parameter active: The active places, which count as floors where the floors were lost.
    /// - Returns: The texts with changed floors.
    mutating func carryOut(_ manifest: VersionManifest, _ order: Edition, _ active: [String: Pointer.Place]) -> [String] {
        if let edition, order <= edition { return [] }
        var changed: [String] = []
        for (identifier, entry) in manifest.entries where entry.isRollback {
            let place = active[identifier].map { Floor(rank: $0.rank, withdrawn: texts[identifier]?.withdrawn, digest: $0.digest) }
            guard let old = [texts[identifier], place].compactMap({ $0 }).max(by: { $0.rank < $1.rank }), let version = old.rank.version,
                entry.version < version, order > old.rank.epoch
            else { continue }
            texts[identifier] = Floor(
                rank: Rank(epoch: order, version: entry.version), withdrawn: max(old.withdrawn ?? version, version), digest: old.digest)
            changed.append(identifier)
        }
        if order.epoch > edition?.epoch ?? 0 || !changed.isEmpty { edition = order }
        return changed
    }

    /// Raises the floor of a text that has become active. Returns the increase to report; `nil` if the version has not risen.
    mutating func activated(_ identifier: String, rank: Rank, digest: SHA256.Digest) -> VersionIncrease? {
        // An unversioned text needs no floor, because every later version is higher.
        guard let version = rank.version else { return nil }
        guard let old = texts[identifier] else {
            texts[identifier] = Floor(rank: rank, withdrawn: nil, digest: digest)
            return VersionIncrease(identifier: identifier, from: nil, to: version, textChanged: true, isFirstInstallation: true)
        }
        guard rank >= old.rank else { return nil }
        var floor = old
        floor.rank = rank
        floor.digest = digest
        defer { texts[identifier] = floor }
        if rank.epoch > old.rank.epoch {
            floor.withdrawn = [old.withdrawn, old.rank.version].compactMap { $0 }.max()
            return nil
        }
        guard rank > old.rank else { return nil }
        return VersionIncrease(
            identifier: identifier, from: old.rank.version, to: version, textChanged: old.digest != digest, isFirstInstallation: false)
    }
}

extension Floors {
    func bytes(of identifiers: some Collection<String>) -> [UInt8] {
        var writer = ByteWriter()
        writer.put(edition) { $0.put($1) }
        writer.put(table: identifiers.compactMap { identifier in texts[identifier].map { (identifier, $0) } }) { writer, floor in
            writer.put(floor.rank)
            writer.put(floor.withdrawn)
            writer.put(floor.digest)
        }
        return writer.bytes
    }

    init(reading bytes: UnsafeRawBufferPointer) throws(ByteReader.Foreign) {
        var reader = ByteReader(bytes)
        edition = try reader.optional { reader throws(ByteReader.Foreign) in try reader.edition() }
        texts = try reader.table { reader throws(ByteReader.Foreign) in
            let rank = try reader.rank(), withdrawn = try reader.version()
            return Floor(rank: rank, withdrawn: withdrawn, digest: try reader.digest())
        }
    }
}

extension ByteWriter {
    mutating func put(_ edition: Edition) {
        put(edition.epoch)
        put(edition.revision)
    }

    mutating func put(_ rank: Rank) {
        put(rank.epoch)
        put(rank.version)
    }
}

extension ByteReader {
    mutating func edition() throws(Foreign) -> Edition { Edition(epoch: try number(), revision: try number()) }

    mutating func rank() throws(Foreign) -> Rank { Rank(epoch: try edition(), version: try version()) }
}
