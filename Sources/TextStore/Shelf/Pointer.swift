internal import Foundation
internal import StoreFiles
internal import StorePlatform

/// The files that hold the texts of a session. Writing one change of the pointer switches a set.
struct Pointer: Sendable {
    /// A file with the rank and digest of its text.
    struct Place: Hashable, Sendable {
        var file: RecordName
        var rank: Rank
        /// The SHA-256 of the text's UTF-8.
        var digest: SHA256.Digest
    }

    /// The active files, by the identifiers of their texts.
    private(set) var active: [String: Place] = [:]
    /// The previously active files, by text.
    private(set) var previous: [String: Place] = [:]
    /// The waiting sets, by set and text.
    private(set) var pending: [String: [String: Place]] = [:]
    /// The times at which unversioned texts were last found unchanged.
    private(set) var checked: [String: Date] = [:]
    /// The active texts that were switched as one group, by the group's key.
    private(set) var groups: [String: [String: Rank]] = [:]
    /// The group's key of each of these texts.
    private(set) var groupsByText: [String: String] = [:]
    /// The waiting set that contains a text, by text.
    private var setByText: [String: String] = [:]

    /// Returns the waiting file of a text.
    func waiting(_ identifier: String) -> Place? { setByText[identifier].flatMap { pending[$0]?[identifier] } }

    /// A step from one pointer to the next; the journal saves the steps in order.
    enum Change: Sendable {
        /// Replaces the whole pointer: the first entry of a journal without history.
        case whole(Pointer)
        /// Removes waiting sets and activates files, all in one step.
        case switched(dropped: [String], activated: [String: Place])
        /// Adds a set that waits for its activation.
        case waits(set: String, [String: Place])
        /// Records that unversioned texts were found unchanged.
        case confirmed([String], Date)
    }

    /// The files that any part of the pointer names; all others may be removed.
    var files: Set<RecordName> {
        var files = Set(active.values.map(\.file))
        files.formUnion(previous.values.map(\.file))
        for set in pending.values { files.formUnion(set.values.map(\.file)) }
        return files
    }

    /// Applies a step, at a cost of its size only. Returns the files that have lost their last reference.
    @discardableResult
    mutating func take(_ change: Change) -> Set<RecordName> {
        var released: Set<RecordName> = []
        switch change {
        case .whole(let pointer):
            let old = files
            released = old.isEmpty ? [] : old.subtracting(pointer.files)
            self = pointer
        case .switched(let dropped, let activated):
            for (identifier, place) in activated {
                // A single dropped set is the activated one, even if it never waited.
                let set = dropped.count == 1 ? dropped[0] : dropped.first { pending[$0]?[identifier] == place }
                join(identifier, set, place.rank)
            }
            for set in dropped { released.formUnion(replace(set, by: nil)) }
            for (identifier, place) in activated {
                if let old = active[identifier], old.file != place.file {
                    if let oldest = previous.updateValue(old, forKey: identifier) { released.insert(oldest.file) }
                    released.remove(old.file)
                }
                active[identifier] = place
                released.remove(place.file)
                checked[identifier] = nil
            }
            for set in dropped { released.formUnion(keepPrevious(of: set, beside: activated)) }
        case .waits(let set, let places):
            // Another waiting set with older records of these texts would tear this one apart, so it is removed whole.
            for other in Set(places.keys.compactMap { setByText[$0] }) where other != set { released.formUnion(replace(other, by: nil)) }
            released.formUnion(replace(set, by: places))
            released.subtract(places.values.map(\.file))
        case .confirmed(let identifiers, let date):
            for identifier in identifiers { checked[identifier] = date }
        }
        return released
    }

    /// Adds the members that a switch leaves unchanged to their group's previous set, and returns the files without a reference.
    private mutating func keepPrevious(of set: String, beside activated: [String: Place]) -> Set<RecordName> {
        guard let members = groups[set]?.keys, members.contains(where: { activated[$0] != nil }) else { return [] }
        var released: Set<RecordName> = []
        for identifier in members where activated[identifier] == nil {
            guard let place = active[identifier], let oldest = previous.updateValue(place, forKey: identifier) else { continue }
            if oldest.file != place.file { released.insert(oldest.file) }
        }
        return released
    }

    private mutating func join(_ identifier: String, _ set: String?, _ rank: Rank) {
        let group = set.flatMap { $0.isGroup ? $0 : nil }
        if let old = groupsByText.removeValue(forKey: identifier), old != group {
            groups[old]?[identifier] = nil
            if groups[old]?.isEmpty == true { groups[old] = nil }
        }
        guard let group else { return }
        groupsByText[identifier] = group
        groups[group, default: [:]][identifier] = rank
    }

    /// Replaces or removes a waiting set, and returns its files.
    private mutating func replace(_ set: String, by places: [String: Place]?) -> Set<RecordName> {
        let old = pending[set] ?? [:]
        for identifier in old.keys { setByText[identifier] = nil }
        pending[set] = places
        for identifier in (places ?? [:]).keys { setByText[identifier] = set }
        return Set(old.values.map(\.file))
    }
}

extension Pointer.Change {
    var bytes: [UInt8] {
        var writer = ByteWriter()
        switch self {
        case .whole(let pointer):
            writer.put(0)
            writer.put(pointer.active)
            writer.put(pointer.previous)
            writer.put(table: pointer.pending) { $0.put($1) }
            writer.put(table: pointer.checked) { $0.put($1) }
            writer.put(table: pointer.groups) { $0.put(texts: $1.keys) }
        case .switched(let dropped, let activated):
            writer.put(1)
            writer.put(texts: dropped)
            writer.put(activated)
        case .waits(let set, let places):
            writer.put(2)
            writer.put(set)
            writer.put(places)
        case .confirmed(let identifiers, let date):
            writer.put(3)
            writer.put(texts: identifiers)
            writer.put(date)
        }
        return writer.bytes
    }

    init(reading bytes: UnsafeRawBufferPointer) throws(ByteReader.Foreign) {
        var reader = ByteReader(bytes)
        switch try reader.number() {
        case 0: self = .whole(try Pointer(reading: &reader))
        case 1: self = .switched(dropped: try reader.texts(), activated: try reader.places())
        case 2: self = .waits(set: try reader.text(), try reader.places())
        case 3: self = .confirmed(try reader.texts(), try reader.date())
        default: throw ByteReader.Foreign()
        }
    }
}

extension Pointer {
    fileprivate init(reading reader: inout ByteReader) throws(ByteReader.Foreign) {
        active = try reader.places()
        previous = try reader.places()
        let pending = try reader.table { reader throws(ByteReader.Foreign) in try reader.places() }
        checked = try reader.table { reader throws(ByteReader.Foreign) in try reader.date() }
        for (set, places) in pending { _ = replace(set, by: places) }
        try reader.all { reader throws(ByteReader.Foreign) in
            let group = try reader.text()
            for identifier in try reader.texts() { if let place = active[identifier] { join(identifier, group, place.rank) } }
        }
    }
}

extension ByteWriter {
    fileprivate mutating func put(_ places: [String: Pointer.Place]) {
        put(table: places) { writer, place in
            writer.put(place.file.text)
            writer.put(place.rank)
            writer.put(place.digest)
        }
    }
}

extension ByteReader {
    fileprivate mutating func places() throws(Foreign) -> [String: Pointer.Place] {
        try table { reader throws(Foreign) in
            guard let file = RecordName(utf8: try reader.raw()) else { throw Foreign() }
            let rank = try reader.rank()
            return Pointer.Place(file: file, rank: rank, digest: try reader.digest())
        }
    }
}
