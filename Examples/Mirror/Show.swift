import Console
import Foundation
import RemoteRouting
import StoreCore
import SyncEngine

/// The output of the mirror: one moving line on a terminal, plain lines elsewhere, one JSON object for scripts.
struct Show {
    private let console: Console
    private let isJSON: Bool

    init(_ options: Options) {
        isJSON = options.isJSON
        console = Console(isPlain: options.isPlain || isJSON)
    }

    func line(_ text: String) {
        guard !isJSON else { return }
        // Names come from the manifest and from the disk, and must not act on the terminal.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).escapedForDisplay() }
        write((console.isLive ? "\r\u{1B}[K" : "") + console.wrapped(lines.joined(separator: "\n")) + "\n")
    }

    static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("mirror: \(text.escapedForDisplay())\n".utf8))
    }

    /// Shows progress until the task is canceled.
    func follow(_ states: LoadingStateSequence<SyncReport>) async {
        var last: SyncStage?
        for await state in states {
            guard case .loading(let report) = state, let progress = report?.progress else { continue }
            if console.isLive {
                write("\r\u{1B}[K" + console.fitted(words(progress)))
            } else if progress.stage != last, progress.stage == .contents || progress.stage == .removals {
                line("\(progress.stage): \(Show.files(progress.totalItems.count))")
            }
            last = progress.stage
        }
    }

    /// The text of the moving line; empty for a stage without progress.
    private func words(_ progress: SyncProgress) -> String {
        var parts: [String]
        switch progress.stage {
        case .begin, .end: return ""
        case .sourceList: parts = ["reading the list"] + (progress.doneItems > 0 ? ["\(progress.doneItems) so far"] : [])
        case .localInventory: parts = ["scanning the directory"]
        case .plan, .safetyGate, .prepare: parts = ["comparing"]
        case .moves: parts = ["moving", "\(progress.doneItems)/\(progress.totalItems)"]
        case .previews, .contents: parts = ["downloading", "\(progress.doneItems)/\(progress.totalItems)"]
        case .removals: parts = ["removing", "\(progress.doneItems)/\(progress.totalItems)"]
        case .metadata: parts = ["metadata", "\(progress.doneItems)/\(progress.totalItems)"]
        }
        if progress.stage == .contents, progress.doneBytes > 0 {
            parts.append(
                progress.totalBytes.map { "\(Show.bytes(progress.doneBytes)) of \(Show.bytes($0))" } ?? Show.bytes(progress.doneBytes))
            parts.append("\(Show.bytes(Int64(progress.bytesPerSecond)))/s")
        }
        if let remaining = progress.remaining?.components.seconds, remaining > 0 {
            parts.append(remaining < 120 ? "\(remaining) s left" : "\(remaining / 60) min left")
        }
        return parts.joined(separator: "  ")
    }

    func plan(_ plan: SyncPlan<ListedFile>) throws {
        if isJSON {
            return try json(
                Plan(
                    additions: plan.additions.map(\.item.path), updates: plan.updates.map(\.item.path),
                    moves: plan.moves.map { [$0.from.key.path, $0.item.path] },
                    metadata: plan.metadata.map { [$0.key.path, $0.summary] }, removals: plan.removals.map(\.local.key.path),
                    refused: plan.refusals.map { "\($0.error)" },
                    skipped: plan.skipped.map(\.key.path), unchanged: plan.unchangedCount,
                    bytes: plan.downloadBytes, gate: plan.gateRefusal?.message))
        }
        for download in plan.additions { line("add     \(download.item.path)") }
        for download in plan.updates { line("update  \(download.item.path)  (\(download.reason.words))") }
        for move in plan.moves { line("move    \(move.from.key.path) → \(move.item.path)") }
        for removal in plan.removals { line("remove  \(removal.local.key.path.escapedForDisplay())  (\(removal.reason.words))") }
        for change in plan.metadata { line("set     \(change.key.path)  (\(change.summary))") }
        for refusal in plan.refusals { line("refuse  \(refusal.error)") }
        for skip in plan.skipped { line("skip    \(skip.error)") }
        if let gate = plan.gateRefusal { line("stop    \(Show.words(of: gate))") }
        var counts = ["\(plan.additions.count) to add", "\(plan.updates.count) to update", "\(plan.removals.count) to remove"]
        if !plan.moves.isEmpty { counts.append("\(plan.moves.count) to move") }
        if !plan.metadata.isEmpty { counts.append("\(plan.metadata.count) with new metadata") }
        counts.append("\(plan.unchangedCount) unchanged")
        if plan.excludedCount > 0 { counts.append("\(plan.excludedCount) excluded") }
        line(counts.joined(separator: ", "))
    }

    /// Returns the reason of an error, with the remedy on the command line.
    static func words(of error: SyncError) -> String {
        switch error.code {
        case .emptySource: "\(reason(of: error)); if the manifest really is empty, use --allow-empty"
        case .removalLimit: "\(reason(of: error)); check with --dry-run, then use --max-delete <count>"
        case .updateLimit: "\(reason(of: error)); check with --dry-run, then use --max-update <count>"
        case .sharedContent: "\(reason(of: error)); if the manifest is right, use --allow-same-content"
        case .everythingChanged: "\(reason(of: error)); check with --dry-run, then use --allow-all-changed"
        case .everythingExcluded: "\(reason(of: error)); correct --exclude, or use --allow-empty"
        case .noSpace: "\(reason(of: error)); free space, or lower --keep-free"
        case .listLimit: "\(reason(of: error)); correct the manifest, or use --max-files <count>"
        case .stageFailed:
            "the stage “\(error.stage?.description ?? "begin")” failed, and later stages were skipped: \(error.underlyingError ?? error)"
        default: error.description
        }
    }

    /// The failed operation and its counts, without the remedy for programs.
    private static func reason(of error: SyncError) -> String {
        error.message.components(separatedBy: "; ").prefix(2).joined(separator: "; ")
    }

    /// The number of failures that are shown in full.
    private static let mostFailures = 10

    /// The remaining failures in one line, by their reasons.
    private static func summary(of failures: ArraySlice<SyncFailure>) -> String {
        let reasons = failures.map {
            ($0.error as? SyncError)?.code.rawValue ?? ($0.error as? RemoteError)?.code.rawValue ?? "other"
        }
        let counts = Dictionary(grouping: reasons) { $0 }.mapValues(\.count).sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return "failed  and \(failures.count) more: " + counts.map { "\($0.value) × \($0.key)" }.joined(separator: ", ")
            + "; all with --json"
    }

    /// What a check of all contents has found.
    struct Check {
        /// Files with other content than was installed.
        var damaged: [String]
        /// Files of the list that do not exist.
        var missing: [String] = []
        /// Files that were written since, so that their right content is unknown.
        var edited: [String] = []
        /// Files and directories that cannot be read.
        var skipped: [SyncRefusal<PathKey>]

        /// Whether a run keeps the edited files.
        var keepsEdits = false

        /// Whether a run with `--repair` downloads any of the files.
        var isRepairable: Bool { !damaged.isEmpty || !missing.isEmpty || !edited.isEmpty && !keepsEdits }
        var isFine: Bool { damaged.isEmpty && missing.isEmpty && edited.isEmpty && skipped.isEmpty }
    }

    /// Shows what a check of all contents has found.
    func check(_ check: Check) throws {
        let groups = [("damaged", check.damaged), ("missing", check.missing), ("edited", check.edited)]
        if isJSON {
            return try json(Dictionary(uniqueKeysWithValues: groups + [("skipped", check.skipped.map(\.key.path))]))
        }
        for (word, paths) in groups { for path in paths { line(word.padding(toLength: 8, withPad: " ", startingAt: 0) + path) } }
        for skip in check.skipped { line("skip    \(skip.error)") }
        let found = groups.filter { !$0.1.isEmpty }.map { "\($0.1.count) \($0.0)" }
        if !found.isEmpty {
            return line(found.joined(separator: ", ") + (check.isRepairable ? "; use --repair to download them again" : ""))
        }
        line(check.skipped.isEmpty ? "every installed file has its content" : "every installed file that can be read has its content")
    }

    func report(_ report: SyncReport, error: SyncError?) throws {
        if isJSON {
            return try json(
                Summary(
                    added: report.addedCount, updated: report.updatedCount, removed: report.removedCount, moved: report.movedCount,
                    metadata: report.metadataCount,
                    unchanged: report.unchangedCount, excluded: report.excludedCount,
                    foreign: report.foreignCount, editedLocally: report.localEdits.map(\.description),
                    bytes: report.downloadedBytes, seconds: report.duration / .seconds(1), failures: report.failures.map(\.description),
                    skipped: report.skipped.map(\.description),
                    error: error?.code.rawValue))
        }
        // A refused run changes nothing, so its error is the whole report.
        guard error == nil || error?.code == .incomplete || error?.code == .cancelled else { return }
        for failure in report.failures.prefix(Self.mostFailures) { line("failed  \(failure)") }
        if report.failures.count > Self.mostFailures { line(Self.summary(of: report.failures[Self.mostFailures...])) }
        for skip in report.skipped { line("skipped \(skip)") }
        if error?.code == .cancelled { line("stopped; the next run resumes here") }
        line("\(report.summary)  (\(Show.bytes(report.downloadedBytes)) in \(String(format: "%.1f", report.duration / .seconds(1))) s)")
    }

    private struct Plan: Encodable {
        var additions, updates: [String]
        var moves, metadata: [[String]]
        var removals, refused, skipped: [String]
        var unchanged: Int
        var bytes: Int64?
        var gate: String?
    }

    private struct Summary: Encodable {
        var added, updated, removed, moved, metadata, unchanged, excluded, foreign: Int
        var editedLocally: [String]
        var bytes: Int64
        var seconds: Double
        var failures, skipped: [String]
        var error: String?
    }

    private func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        // JSON allows these characters to be escaped within strings.
        let text = String(decoding: try encoder.encode(value), as: UTF8.self).unicodeScalars.map { scalar in
            scalar.actsOnDisplay ? String(format: "\\u%04x", scalar.value) : String(scalar)
        }
        write(text.joined() + "\n")
    }

    static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

    static func bytes(_ count: Int64) -> String {
        count < 10_000 ? "\(count) B" : count < 10_000_000 ? "\(count / 1000) kB" : "\(count / 1_000_000) MB"
    }

    private func write(_ text: String) { try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8)) }
}

extension SyncPlan.DownloadReason {
    fileprivate var words: String {
        switch self {
        case .missing: "missing"
        case .changed: "changed"
        case .unknownVersion: "unknown version"
        case .editedLocally: "edited locally"
        }
    }
}

extension SyncPlan.RemovalReason {
    fileprivate var words: String {
        switch self {
        case .notInSource: "not in the manifest"
        case .editedLocally: "not in the manifest, edited locally"
        }
    }
}
