internal import SyncEngine

/// A handwritten comparison of two paged lists, without the other work of a synchronizer.
enum HandwrittenSync {
    struct Changes {
        var additions: [Row] = []
        var updates: [Row] = []
        var removals: [Int] = []

        var count: Int { additions.count + updates.count + removals.count }
    }

    /// Merges two sorted sides page by page.
    static func merge(_ rows: Rows) -> Changes {
        var changes = Changes()
        var (source, local) = (rows.sourcePages(), rows.localPages())
        var (item, entry) = (source.next(), local.next())
        while let present = item, let held = entry {
            if present.key == held.key {
                if present.version != held.version { changes.updates.append(present) }
                (item, entry) = (source.next(), local.next())
            } else if present.key < held.key {
                changes.additions.append(present)
                item = source.next()
            } else {
                changes.removals.append(held.key)
                entry = local.next()
            }
        }
        while let present = item {
            changes.additions.append(present)
            item = source.next()
        }
        while let held = entry {
            changes.removals.append(held.key)
            entry = local.next()
        }
        return changes
    }

    /// Compares two sides in any order with a dictionary.
    static func hash(_ rows: Rows) -> Changes {
        var changes = Changes()
        var versions: [Int: Int] = [:]
        for row in IteratorSequence(rows.localPages()) { versions[row.key] = row.version }
        for row in IteratorSequence(rows.sourcePages()) {
            switch versions.removeValue(forKey: row.key) {
            case nil: changes.additions.append(row)
            case row.version: break
            default: changes.updates.append(row)
            }
        }
        changes.removals = Array(versions.keys)
        return changes
    }
}

/// An item of a long list.
struct Row: SyncItem {
    var key: Int
    var version: Int
}

/// A list and its local side, generated page by page during reading; the differing rows are evenly spread.
struct Rows: Sendable {
    static let pageSize = 1_000

    var count: Int
    var changes: Int

    func sourcePage(at start: Int) -> [Row] {
        let distance = changes > 0 ? count / changes : .max
        return (start..<min(start + Self.pageSize, count)).map { Row(key: $0, version: $0 % distance == distance - 1 ? 2 : 1) }
    }

    func localPage(at start: Int) -> [Row] { (start..<min(start + Self.pageSize, count)).map { Row(key: $0, version: 1) } }

    func sourcePages() -> Pages { Pages(count: count, page: sourcePage) }
    func localPages() -> Pages { Pages(count: count, page: localPage) }

    /// Iterates over the rows of all pages.
    struct Pages: IteratorProtocol {
        let count: Int
        let page: (Int) -> [Row]
        private var rows: [Row] = []
        private var index = 0
        private var start = 0

        init(count: Int, page: @escaping (Int) -> [Row]) {
            self.count = count
            self.page = page
        }

        mutating func next() -> Row? {
            if index == rows.count {
                guard start < count else { return nil }
                rows = page(start)
                start += rows.count
                index = 0
            }
            defer { index += 1 }
            return rows[index]
        }
    }
}
