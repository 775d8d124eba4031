internal import Foundation

/// The floors of all texts of a session, and the highest revision of a manifest: what only ever rises.
struct Floors: Hashable, Codable, Sendable {
    var texts: [String: Floor] = [:]
    var revision: UInt64?

    /// The highest of both.
    mutating func formMaximum(_ other: Floors) {
        texts.merge(other.texts) { $0.rank < $1.rank ? $1 : $0 }
        if let seen = other.revision { revision = max(revision ?? 0, seen) }
    }

    /// A text has become the active one.
    ///
    /// - Returns: What is to be told; `nil` where the version has not risen.
    mutating func activated(_ identifier: String, rank: Rank, digest: String) -> VersionIncrease? {
        // An unversioned text has nothing that a later one could fall below.
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

/// Which files are the texts of a session: the one place that says so, and writing it is what switches a set.
struct Pointer: Codable, Sendable {
    /// A file, and what is in it as far as order goes.
    struct Place: Codable, Hashable, Sendable {
        var file: String
        var rank: Rank
    }

    /// The active files, by text.
    var active: [String: Place] = [:]
    /// Those that were active before.
    var previous: [String: Place] = [:]
    /// Sets that are here and wait to be activated, by set and text.
    var pending: [String: [String: Place]] = [:]
    /// When an unversioned text was last found unchanged.
    var checked: [String: Date] = [:]

    /// All files that something refers to.
    var files: Set<String> {
        var files = Set(active.values.map(\.file))
        files.formUnion(previous.values.map(\.file))
        for set in pending.values { files.formUnion(set.values.map(\.file)) }
        return files
    }

    /// Makes files the active ones, all of them at once.
    mutating func activate(_ places: [String: Place]) {
        for (identifier, place) in places {
            if let old = active[identifier], old.file != place.file { previous[identifier] = old }
            active[identifier] = place
            checked[identifier] = nil
        }
    }
}
