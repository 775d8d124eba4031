internal import StorePlatform

/// The space of a cacher's files: the sum in bytes, and the decision when to scan the directory.
///
/// Pure: it contains no lock, clock or file. The first scan computes the sum, and the size of each file before and after a change updates
/// it. Changes continue while a scan runs, and it is unknown which of them the scan has seen. Therefore a change overrides the size that
/// the scan found. A change that is still running when the scan ends uses the size that the scan counted. The next scan sees the changes of
/// other processes.
struct FileLedger {
    typealias Name = SHA256.Digest

    enum Action: Equatable {
        case none
        /// Scan the directory, sweep it, then report `scanEnded(found:freed:)` or `scanFailed()`.
        case scan
    }

    private enum Phase {
        case unscanned
        /// A scan is running; `changed` has the sizes of all files changed since it began, and `isVoid` is set if all files were removed.
        case scanning(changed: [Name: Int], isVoid: Bool)
        case scanned
    }

    private struct Flight {
        var count = 0
        /// The size counted for the file, if a scan ended during the change.
        var counted: Int?
    }

    private let limit: Int
    private var phase = Phase.unscanned
    private var flights: [Name: Flight] = [:]
    /// The sum that triggers a scan: the limit, or more if the last scan could not get below the limit.
    private var threshold: Int

    private(set) var bytes = 0

    /// The bytes that a sweep leaves: nine tenths of the limit, so that the next save does not cause another sweep.
    var target: Int { limit / 10 * 9 }

    init(limit: Int) {
        self.limit = max(0, limit)
        threshold = self.limit
    }

    mutating func changeBegan(_ name: Name) {
        flights[name, default: Flight()].count += 1
    }

    /// Records the end of a write or removal of a file, successful or not. The size of a file that does not exist is zero.
    mutating func changeEnded(_ name: Name, from old: Int, to new: Int) -> Action {
        var flight = flights.removeValue(forKey: name) ?? Flight(count: 1)
        let counted = flight.counted ?? old
        flight.count -= 1
        if flight.counted != nil { flight.counted = new }
        if flight.count > 0 { flights[name] = flight }

        switch phase {
        case .scanning(var changed, let isVoid):
            // The end of the scan computes the sum again.
            phase = .unscanned
            changed[name] = new
            phase = .scanning(changed: changed, isVoid: isVoid)
            return .none
        case .unscanned:
            // Only a save can exceed the limit.
            guard new > 0 else { return .none }
            phase = .scanning(changed: [name: new], isVoid: false)
            return .scan
        case .scanned:
            // Other processes may have changed the files, so the sum must be kept from falling below zero.
            bytes = max(0, bytes.addingSaturated(new).addingSaturated(-counted))
            guard bytes > threshold else { return .none }
            phase = .scanning(changed: [name: new], isVoid: false)
            return .scan
        }
    }

    /// Requests a scan below the limit too, unless one is running or the next save begins one.
    mutating func scanAgain() -> Action {
        guard case .scanned = phase else { return .none }
        phase = .scanning(changed: [:], isVoid: false)
        return .scan
    }

    /// Records the removal of all files, or of some if the removal failed; the next save scans again.
    mutating func allRemoved() {
        bytes = 0
        threshold = limit
        if case .scanning = phase { phase = .scanning(changed: [:], isVoid: true) } else { phase = .unscanned }
    }

    /// Returns whether a file is being changed or was changed since the scan began, so that the scan's size of it is outdated.
    func isChanged(_ name: Name) -> Bool {
        guard flights[name] == nil else { return true }
        guard case .scanning(let changed, _) = phase else { return false }
        return changed[name] != nil
    }

    /// Whether any file was changed since the scan began; the most recent change must not be swept.
    var hasChanges: Bool {
        guard case .scanning(let changed, _) = phase else { return false }
        return !changed.isEmpty
    }

    /// The sum of all files, given the files that a scan found.
    func total(found: some Sequence<(name: Name, size: Int)>) -> Int {
        guard case .scanning(let changed, _) = phase else { return bytes }
        let unchanged = found.lazy.filter { changed[$0.name] == nil }.reduce(0) { $0.addingSaturated($1.size) }
        return changed.values.reduce(unchanged) { $0.addingSaturated($1) }
    }

    /// Records the end of a scan and its sweep, with the remaining files, and whether any file was removed.
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
        // No file could be removed, so raise the threshold instead of scanning at each save.
        threshold = bytes.addingSaturated(limit / 10)
        return .none
    }

    /// Records a failed scan; the sum keeps the known sizes.
    mutating func scanFailed() {
        guard case .scanning(let changed, _) = phase else { return }
        bytes = changed.values.reduce(bytes) { $0.addingSaturated($1) }
        phase = .scanned
        threshold = max(limit, bytes.addingSaturated(limit / 10))
    }
}

extension Int {
    /// Returns the sum, clamped to the range of `Int`: a sparse file can be as large as its file system allows.
    func addingSaturated(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other > 0 ? .max : .min
    }
}
