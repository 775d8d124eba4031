internal import Foundation
internal import StoreCore

/// The subjects of an inspector, their recent fetches, and the actions that its pages hold in force.
final class Board: Sendable {
    let timeline: Timeline
    let controls = Controls()
    let redactor: Redactor
    let policy: Inspector.Policy

    private struct Page {
        var connections = 0
        /// The connections so far, so that a check after a while notices one in between.
        var visits = 0
    }

    private struct State {
        var subjects: [any Subject] = []
        var lastID = 0
        var isClosed = false
        var pages: [String: Page] = [:]
    }

    private let state = Lock(State())

    init(secretNames: Set<String>, policy: Inspector.Policy) {
        redactor = Redactor(names: secretNames)
        timeline = Timeline(capacity: policy.spans)
        self.policy = policy
    }

    /// Adds a subject, in place of an earlier one of the same object, and forgets the oldest objects that are gone.
    @discardableResult
    func add<Added: Subject>(_ make: (_ id: Int) -> Added) -> Added {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let subject = make(id)
        let all = state.withLock { state -> [any Subject] in
            if !state.isClosed { state.subjects.append(subject) }
            return state.subjects
        }
        guard !all.isEmpty else {
            subject.leave()
            return subject
        }
        // Outside the lock, because an object may be released here. Of several calls for one object at once, the last to look sees all.
        let (object, gone) = (subject.object, all.filter { $0.object == nil }.dropLast(policy.gone))
        let same = all.filter { $0.object === object }.map { $0.id }
        let outdated = Set(same).subtracting([same.max() ?? id]).union(gone.map { $0.id })
        let left = state.withLock { state -> [any Subject] in
            let left = state.subjects.filter { outdated.contains($0.id) }
            state.subjects.removeAll { outdated.contains($0.id) }
            return left
        }
        for subject in left { subject.leave() }
        return subject
    }

    func subject(_ id: Int) -> (any Subject)? { state.withLock { state in state.subjects.first { $0.id == id } } }

    /// Leaves all subjects, and undoes all actions.
    func close() {
        let subjects = state.withLock { state in
            state.isClosed = true
            defer { state.subjects = [] }
            return state.subjects
        }
        for subject in subjects { subject.leave() }
        controls.undoAll()
    }

    /// The list of the subjects, and the actions in force, as a page sees them.
    func overview(for page: String) async -> JSON {
        var list: [JSON] = []
        for subject in state.withLock(\.subjects) {
            let summary = await subject.summary()
            list.append(
                .object([
                    ("id", .int(subject.id)), ("kind", .string(subject.kind)), ("name", .string(subject.name)),
                    ("gone", .bool(summary == nil)), ("count", .int(summary?.count ?? 0)), ("note", .string(summary?.note ?? "gone")),
                    ("busy", .bool(summary?.isBusy ?? false)),
                ]))
        }
        return .object([("subjects", .array(list)), ("controls", controls.summary(for: page))])
    }

    // MARK: Pages

    /// A page follows the events; returns whether there is room for it.
    func pageOpened(_ page: String) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.pages[page] != nil || state.pages.count < policy.pages else { return false }
            state.pages[page, default: Page()].connections += 1
            state.pages[page]?.visits += 1
            return true
        }
    }

    /// A connection of a page has ended: the page closes unless it connects again in time.
    func pageLeft(_ page: String) {
        let visits = state.withLock { state -> Int? in
            state.pages[page]?.connections -= 1
            return state.pages[page]?.connections == 0 ? state.pages[page]?.visits : nil
        }
        guard let visits else { return }
        Task.detached { [weak self, grace = policy.grace] in
            // Nothing cancels this task.
            try? await Task.sleep(for: grace)
            self?.closeIfUnconnected(page, since: visits)
        }
    }

    /// Closes a page that has had no connection since the end of one.
    func closeIfUnconnected(_ page: String, since visits: Int) {
        let isClosed = state.withLock { state in
            guard let known = state.pages[page], known.connections == 0, known.visits == visits else { return false }
            state.pages[page] = nil
            return true
        }
        if isClosed { controls.undo(page) }
    }

    /// Changes the controls for an open page; returns whether it is open. A page that closes meanwhile undoes the change afterward.
    func control(_ page: String, _ change: (Controls) -> Void) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.pages[page] != nil else { return false }
            change(controls)
            return true
        }
    }
}

/// A store, host, text store, synchronizer or outbox on the page.
protocol Subject: AnyObject, Sendable {
    var id: Int { get }
    /// The kind: `store`, `host`, `texts`, `sync` or `outbox`.
    var kind: String { get }
    var name: String { get }
    /// The shown object; `nil` once it has been released.
    var object: AnyObject? { get }
    var columns: [Column] { get }
    /// The numbers beside the name; `nil` once the subject has been released.
    func summary() async -> Summary?
    /// A part of the table.
    func rows(_ query: RowQuery) async -> Rows
    /// Everything about one row; `nil` if it is gone.
    func item(_ row: Int) async -> Item?
    /// Performs an action on a row, or on all of them; returns whether there is such an action.
    func perform(_ action: String, row: Int?) async -> Bool
    /// The inspector leaves the subject.
    func leave()
}

extension Subject {
    func perform(_ action: String, row: Int?) async -> Bool { false }
    func item(_ row: Int) async -> Item? { nil }
    func leave() {}
}

struct Summary: Sendable {
    var count: Int
    var note: String
    var isBusy = false
}

/// A column of a table; its kind decides how the page formats and aligns it.
struct Column: Sendable {
    enum Kind: String { case text, number, age, phase }
    var title: String
    var kind = Kind.text
}

struct RowQuery: Sendable {
    var from = 0
    var count = 50
    var text = ""
    var filter = KeyFilter.all
}

struct Rows: Sendable {
    var total = 0
    var rows: [(id: Int, cells: [JSON])] = []
}

struct Item: Sendable {
    var title: String
    var facts: [(String, JSON)] = []
    /// The record as formatted JSON, or its description.
    var record: String?
    var isJSON = false
    var links: [KeyLinks] = []
    var actions: [String] = []
}

/// JSON that is written, never read.
indirect enum JSON: Sendable {
    case null
    case bool(Bool)
    case int(Int)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])

    /// A duration in whole milliseconds, clamped to 292 years; `nil` is null.
    static func milliseconds(_ duration: Duration?) -> JSON {
        duration.map { .int(Int($0.saturatedNanoseconds / 1_000_000)) } ?? .null
    }

    var text: String {
        var text = ""
        write(to: &text)
        return text
    }

    private func write(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .int(let value): text += "\(value)"
        case .string(let value): Self.write(value, to: &text)
        case .array(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.write(to: &text)
            }
            text += "]"
        case .object(let members):
            text += "{"
            for (index, member) in members.enumerated() {
                if index > 0 { text += "," }
                Self.write(member.0, to: &text)
                text += ":"
                member.1.write(to: &text)
            }
            text += "}"
        }
    }

    private static func write(_ string: String, to text: inout String) {
        text += "\""
        defer { text += "\"" }
        // Most strings need no escapes, and are copied at once.
        if string.utf8.allSatisfy({ (0x20..<0x80).contains($0) && $0 != 0x22 && $0 != 0x3C && $0 != 0x5C }) { return text += string }
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            // Controls, and the characters that end a script or a line of the event stream.
            case _ where scalar.value < 0x20 || scalar == "<" || scalar.value == 0x2028 || scalar.value == 0x2029:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
