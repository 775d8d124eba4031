internal import Foundation
internal import StoreCore
internal import StoreOutbox
internal import SyncEngine
internal import TextStore

final class TextSubject: Subject {
    let id: Int
    let kind = "texts"
    let name: String
    let columns = [
        Column(title: "Text"), Column(title: "State", kind: .phase), Column(title: "Version"), Column(title: "Source"),
        Column(title: "Floor"), Column(title: "Listed"), Column(title: "Waiting"), Column(title: "Accepted"),
        Column(title: "Observers", kind: .number),
    ]
    private weak let texts: TextStore?
    var object: AnyObject? { texts }
    private let numbers = KeyNumbers<String>()

    init(_ texts: TextStore, id: Int, name: String) { (self.id, self.name, self.texts) = (id, name, texts) }

    func summary() async -> Summary? {
        guard let texts else { return nil }
        let count = texts.registeredCount
        return Summary(count: count, note: count == 1 ? "1 text" : "\(count) texts")
    }

    func rows(_ query: RowQuery) async -> Rows {
        guard let texts else { return Rows() }
        // Texts are few, and all of them are in memory.
        let all = await texts.snapshot(matching: query.text, limit: 10_000)
        return Rows(
            total: all.count,
            rows: all.dropFirst(query.from).prefix(query.count).map { text in
                (
                    numbers.add(text.identifier),
                    [
                        .string(text.identifier), .string(Self.state(of: text)), .string(Self.word(text.version)),
                        .string(text.origin?.rawValue ?? "–"),
                        .string(Self.word(text.floor)), .string(Self.word(text.listed)),
                        .string(text.waiting.map(\.description).joined(separator: ", ")),
                        .string(Self.acceptance(of: text)), .int(text.observers),
                    ]
                )
            })
    }

    func item(_ row: Int) async -> Item? {
        guard let identifier = numbers.key(row),
            let text = await texts?.snapshot(matching: identifier, limit: 10_000).first(where: { $0.identifier == identifier })
        else { return nil }
        return Item(
            title: identifier,
            facts: [
                ("state", .string(Self.state(of: text))), ("version", .string(Self.word(text.version))),
                ("source", .string(text.origin?.rawValue ?? "–")),
                ("floor", .string(Self.word(text.floor))), ("listed", .string(Self.word(text.listed))),
                ("accepted", .string(Self.acceptance(of: text))), ("verified", .string(text.isVerified ? "yes" : "no")),
                ("observers", .int(text.observers)),
            ], record: text.text?.short(20_000))
    }

    private static func state(of text: TextSnapshot) -> String {
        text.origin == nil ? "empty" : text.isBelowFloor ? "failed" : text.isStale ? "stale" : "completed"
    }

    private static func acceptance(of text: TextSnapshot) -> String {
        text.isAccepted ? text.accepted?.description ?? "unversioned" : "–"
    }

    private static func word(_ version: SemanticVersion?) -> String { version?.description ?? "–" }
}

final class SyncSubject<Processor: SyncProcessor>: Subject {
    let id: Int
    let kind = "sync"
    let name: String
    let columns = [Column(title: "Pass"), Column(title: "State", kind: .phase), Column(title: "Value")]
    private weak let synchronizer: OneWaySynchronizer<Processor>?
    var object: AnyObject? { synchronizer }

    init(_ synchronizer: OneWaySynchronizer<Processor>, id: Int, name: String) {
        (self.id, self.name, self.synchronizer) = (id, name, synchronizer)
    }

    func summary() async -> Summary? {
        guard let snapshot = synchronizer?.snapshot() else { return nil }
        guard let report = snapshot.report else { return Summary(count: 0, note: "no pass yet") }
        let progress = report.progress
        let note =
            snapshot.isSyncing
            ? "\(progress.stage): \(progress.doneItems) of \(progress.totalItems)"
            : snapshot.error == nil ? "pass \(report.pass) complete" : "pass \(report.pass) failed"
        return Summary(count: report.pass, note: note, isBusy: snapshot.isSyncing)
    }

    /// The lines of the table: name, state and value.
    private var lines: [(String, String, String)] {
        guard let snapshot = synchronizer?.snapshot(), let report = snapshot.report else { return [] }
        let progress = report.progress
        let state = snapshot.isSyncing ? "loading" : snapshot.error == nil ? "completed" : "failed"
        var lines: [(String, String, String)] = [
            ("pass \(report.pass)", state, snapshot.error.map { errorText($0, 500) } ?? report.summary),
            ("stage", "", "\(progress.stage), \(progress.doneItems) of \(progress.totalItems) items"),
            (
                "plan", "",
                "\(report.planned.additions) additions, \(report.planned.updates) updates, \(report.planned.removals) removals"
            ),
            ("sides", "", "\(report.sourceCount) remote, \(report.localCount) local, \(report.unchangedCount) unchanged"),
            ("bytes", "", "\(progress.doneBytes)" + (progress.totalBytes.map { " of \($0)" } ?? "")),
            ("duration", "", report.duration.inWords),
            ("waiting", "", "\(snapshot.callers) callers, \(snapshot.observers) observers"),
        ]
        for failure in report.failures.prefix(1_000) {
            lines.append(("failure", "failed", "\(failure.stage), \(failure.key): \(errorText(failure.error, 500))".short(500)))
        }
        return lines
    }

    func rows(_ query: RowQuery) async -> Rows {
        let text = query.text.lowercased()
        let matching = lines.enumerated().filter { text.isEmpty || "\($0.element)".lowercased().contains(text) }
        return Rows(
            total: matching.count,
            rows: matching.dropFirst(query.from).prefix(query.count).map { number, line in
                (number, [.string(line.0), .string(line.1), .string(line.2)])
            })
    }

    func item(_ row: Int) async -> Item? {
        let lines = lines
        return lines.indices.contains(row) ? Item(title: lines[row].0, record: lines[row].2) : nil
    }
}

final class OutboxSubject: Subject {
    let id: Int
    let kind = "outbox"
    let name: String
    let columns = [
        Column(title: "Command"), Column(title: "State", kind: .phase), Column(title: "Lane"), Column(title: "Attempts", kind: .number),
        Column(title: "Submitted", kind: .age), Column(title: "Last error"),
    ]
    private weak let outbox: Outbox?
    var object: AnyObject? { outbox }
    private let redactor: Redactor
    private let numbers = KeyNumbers<UUID>()

    init(_ outbox: Outbox, id: Int, name: String, redactor: Redactor) {
        (self.id, self.name, self.outbox, self.redactor) = (id, name, outbox, redactor)
    }

    func summary() async -> Summary? {
        guard let state = await outbox?.snapshot() else { return nil }
        var note = "\(state.pendingCount) pending"
        if state.failedCount > 0 { note += ", \(state.failedCount) failed" }
        if state.isStopped { note += ", stopped" }
        return Summary(count: state.pendingCount + state.failedCount, note: note, isBusy: state.deliveringCount > 0)
    }

    func rows(_ query: RowQuery) async -> Rows {
        guard let outbox else { return Rows() }
        let text = query.text.lowercased()
        let commands = await outbox.commands(limit: 10_000).filter {
            text.isEmpty || "\($0.name) \($0.lane)".lowercased().contains(text)
        }
        return Rows(
            total: commands.count,
            rows: commands.dropFirst(query.from).prefix(query.count).map { command in
                (
                    numbers.add(command.id),
                    [
                        .string(command.name), .string(Self.state(of: command.status)), .string(command.lane.short(200)),
                        .int(command.attempts),
                        .milliseconds(.seconds(Date().timeIntervalSince(command.submittedAt))),
                        .string(command.lastError.map { errorText($0, 500) } ?? ""),
                    ]
                )
            })
    }

    func item(_ row: Int) async -> Item? {
        guard let id = numbers.key(row),
            let command = await outbox?.commands(limit: 10_000).first(where: { $0.id == id })
        else { return nil }
        let payload = redactor.text(ofJSON: command.payload)
        return Item(
            title: command.name,
            facts: [
                ("state", .string(Self.state(of: command.status))), ("lane", .string(command.lane)), ("attempts", .int(command.attempts)),
                ("last error", command.lastError.map { .string(errorText($0, 2_000)) } ?? .null),
            ], record: payload ?? "\(command.payload.count) bytes that are not JSON", isJSON: payload != nil)
    }

    private static func state(of status: OutboxCommand.Status) -> String {
        switch status {
        case .pending: "pending"
        case .delivering: "loading"
        case .failed, .undecodable: "failed"
        }
    }
}
