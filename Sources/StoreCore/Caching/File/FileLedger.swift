/// What a cacher knows of the sizes of its files: how many bytes there are, and when the directory must be looked through.
///
/// Pure: no lock, clock or file inside. The sum is known from the first scan on and kept right by the size of each file before and after
/// a change. Changes go on while a scan runs; which of them it has seen nobody can tell, so a change overrides what the scan found, and
/// one that is still on its way when the scan ends is told what was counted for it. Another process's changes are seen by the next scan.
struct FileLedger {
    typealias Name = SHA256.Digest

    /// What to do next.
    enum Action: Equatable {
        case none
        /// Look through the directory, sweep it, then report `scanEnded(found:freed:)` or `scanFailed()`.
        case scan
    }

    private enum Phase {
        case unscanned
        /// The sizes of all files that were changed since the scan began; `isVoid` where everything was removed meanwhile.
        case scanning(changed: [Name: Int], isVoid: Bool)
        case scanned
    }

    /// Changes of one file that have begun and not ended.
    private struct Flight {
        var count = 0
        /// What the sum holds for the file, where a scan ended meanwhile.
        var counted: Int?
    }

    private let limit: Int
    private var phase = Phase.unscanned
    private var flights: [Name: Flight] = [:]
    /// The sum beyond which the directory is scanned: the limit, or more where the last scan could not get below it.
    private var threshold: Int

    /// The bytes of all records, as far as known.
    private(set) var bytes = 0

    /// How many bytes a sweep leaves: nine tenths of the limit, so that it does not have to run again at once.
    var target: Int { limit / 10 * 9 }

    init(limit: Int) {
        self.limit = max(0, limit)
        threshold = self.limit
    }

    /// A file is about to be written or removed.
    mutating func changeBegan(_ name: Name) {
        flights[name, default: Flight()].count += 1
    }

    /// A file was written or removed, or an attempt at that failed.
    ///
    /// - Parameters:
    ///   - name: The file.
    ///   - old: Its size before, zero where there was none.
    ///   - new: Its size now, zero where there is none.
    mutating func changeEnded(_ name: Name, from old: Int, to new: Int) -> Action {
        var flight = flights.removeValue(forKey: name) ?? Flight(count: 1)
        let counted = flight.counted ?? old
        flight.count -= 1
        if flight.counted != nil { flight.counted = new }
        if flight.count > 0 { flights[name] = flight }

        switch phase {
        case .scanning(var changed, let isVoid):
            // The sum is made anew when the scan ends.
            phase = .unscanned
            changed[name] = new
            phase = .scanning(changed: changed, isVoid: isVoid)
            return .none
        case .unscanned:
            // Only a save is worth looking for room.
            guard new > 0 else { return .none }
            phase = .scanning(changed: [name: new], isVoid: false)
            return .scan
        case .scanned:
            // Never below zero, whatever other processes did.
            bytes = max(0, bytes.addingSaturated(new).addingSaturated(-counted))
            guard bytes > threshold else { return .none }
            phase = .scanning(changed: [name: new], isVoid: false)
            return .scan
        }
    }

    /// Every file was removed, or some of them where that failed: the next save scans again.
    mutating func allRemoved() {
        bytes = 0
        threshold = limit
        if case .scanning = phase { phase = .scanning(changed: [:], isVoid: true) } else { phase = .unscanned }
    }

    /// Whether a file was changed since the scan began, or is being changed: what the scan knows of it is out of date.
    func isChanged(_ name: Name) -> Bool {
        guard flights[name] == nil else { return true }
        guard case .scanning(let changed, _) = phase else { return false }
        return changed[name] != nil
    }

    /// Whether any file was changed since the scan began; what was changed last must not be swept.
    var hasChanges: Bool {
        guard case .scanning(let changed, _) = phase else { return false }
        return !changed.isEmpty
    }

    /// The sum of all files, of which a scan found these.
    func total(found: some Sequence<(name: Name, size: Int)>) -> Int {
        guard case .scanning(let changed, _) = phase else { return bytes }
        let unchanged = found.lazy.filter { changed[$0.name] == nil }.reduce(0) { $0.addingSaturated($1.size) }
        return changed.values.reduce(unchanged) { $0.addingSaturated($1) }
    }

    /// A scan and its sweep have ended.
    ///
    /// - Parameters:
    ///   - found: The files that are still there.
    ///   - freed: Whether any was removed.
    mutating func scanEnded(found: some Sequence<(name: Name, size: Int)>, freed: Bool) -> Action {
        guard case .scanning(let changed, let isVoid) = phase else { return .none }
        if isVoid {
            phase = .scanning(changed: changed, isVoid: false)
            return .scan
        }
        bytes = total(found: found)
        if !flights.isEmpty {
            for name in flights.keys { flights[name]?.counted = changed[name] ?? 0 }
            for (name, size) in found where changed[name] == nil { flights[name]?.counted = size }
        }
        phase = .scanned
        threshold = limit
        guard bytes > limit else { return .none }
        if freed {
            // Saves were faster than the sweep.
            phase = .scanning(changed: [:], isVoid: false)
            return .scan
        }
        // Nothing could be removed: not again for each save.
        threshold = bytes.addingSaturated(limit / 10)
        return .none
    }

    /// A scan failed; the sum stays what is known.
    mutating func scanFailed() {
        guard case .scanning(let changed, _) = phase else { return }
        bytes = changed.values.reduce(bytes) { $0.addingSaturated($1) }
        phase = .scanned
        threshold = max(limit, bytes.addingSaturated(limit / 10))
    }
}

extension Int {
    /// The sum, held at the ends of `Int`: a sparse file can be as large as its file system says it is.
    func addingSaturated(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other > 0 ? .max : .min
    }
}
