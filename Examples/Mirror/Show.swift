import Foundation
import StoreCore
import SyncEngine

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the mirror says: one moving line on a terminal, plain lines anywhere else, one object of JSON for scripts.
struct Show {
    let isLive: Bool
    let isJSON: Bool

    init(_ options: Options) {
        isJSON = options.isJSON
        isLive = !options.isPlain && !isJSON && isatty(STDOUT_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    }

    func line(_ text: String) {
        guard !isJSON else { return }
        write((isLive ? "\r\u{1B}[K" : "") + text + "\n")
    }

    static func complain(_ text: String) {
        FileHandle.standardError.write(Data("mirror: \(text)\n".utf8))
    }

    /// Shows progress until the task is cancelled.
    func follow(_ states: LoadingStateSequence<SyncReport>) async {
        var last: SyncStage?
        for await state in states {
            guard case .loading(let report) = state, let progress = report?.progress else { continue }
            if isLive {
                write("\r\u{1B}[K" + words(progress))
            } else if progress.stage != last, progress.stage == .contents || progress.stage == .removals {
                line("\(progress.stage): \(progress.totalItems) files")
            }
            last = progress.stage
        }
    }

    /// What the moving line says; empty where a stage has nothing to tell.
    private func words(_ progress: SyncProgress) -> String {
        var parts: [String]
        switch progress.stage {
        case .begin, .end: return ""
        case .sourceList: parts = ["reading the list"] + (progress.doneItems > 0 ? ["\(progress.doneItems) so far"] : [])
        case .localInventory: parts = ["looking at the directory"]
        case .plan, .safetyGate, .prepare: parts = ["comparing"]
        case .previews, .contents: parts = ["downloading", "\(progress.doneItems)/\(progress.totalItems)"]
        case .removals: parts = ["removing", "\(progress.doneItems)/\(progress.totalItems)"]
        }
        if progress.stage == .contents, progress.doneBytes > 0 {
            parts.append(
                progress.totalBytes.map { "\(Show.bytes(progress.doneBytes)) of \(Show.bytes($0))" } ?? Show.bytes(progress.doneBytes))
            parts.append("\(Show.bytes(Int64(progress.bytesPerSecond)))/s")
        }
        if let remaining = progress.remaining?.components.seconds, remaining > 0 {
            parts.append(remaining < 120 ? "\(remaining) s left" : "\(remaining / 60) min left")
        }
        // A line that the terminal breaks could not be written over.
        return String(parts.joined(separator: "  ").prefix(79))
    }

    func plan(_ plan: SyncPlan<ManifestFile>) throws {
        if isJSON {
            return try json(
                Plan(
                    additions: plan.additions.map(\.item.path), updates: plan.updates.map(\.item.path),
                    removals: plan.removals.map(\.local.key), refused: plan.refusals.map { "\($0.error)" }, unchanged: plan.unchangedCount,
                    bytes: plan.downloadBytes, gate: plan.gateRefusal?.message))
        }
        for download in plan.additions { line("add     \(download.item.path)") }
        for download in plan.updates { line("update  \(download.item.path)  (\(download.reason))") }
        for removal in plan.removals { line("remove  \(removal.local.key)  (\(removal.reason))") }
        for refusal in plan.refusals { line("refuse  \(refusal.error)") }
        if let gate = plan.gateRefusal { line("stop    \(gate.message)") }
        line(
            "\(plan.additions.count) to add, \(plan.updates.count) to update, \(plan.removals.count) to remove, \(plan.unchangedCount) unchanged"
        )
    }

    func report(_ report: SyncReport, error: SyncError?) throws {
        if isJSON {
            return try json(
                Summary(
                    added: report.addedCount, updated: report.updatedCount, removed: report.removedCount, unchanged: report.unchangedCount,
                    bytes: report.downloadedBytes, seconds: report.duration / .seconds(1), failures: report.failures.map(\.description),
                    error: error?.code.rawValue))
        }
        for failure in report.failures { line("failed  \(failure)") }
        if error?.code == .cancelled { line("stopped; the next run goes on from here") }
        line("\(report.summary)  (\(Show.bytes(report.downloadedBytes)) in \(String(format: "%.1f", report.duration / .seconds(1))) s)")
    }

    private struct Plan: Encodable {
        var additions, updates, removals, refused: [String]
        var unchanged: Int
        var bytes: Int64?
        var gate: String?
    }

    private struct Summary: Encodable {
        var added, updated, removed, unchanged: Int
        var bytes: Int64
        var seconds: Double
        var failures: [String]
        var error: String?
    }

    private func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        write(String(decoding: try encoder.encode(value), as: UTF8.self) + "\n")
    }

    private static func bytes(_ count: Int64) -> String {
        count < 10_000 ? "\(count) B" : count < 10_000_000 ? "\(count / 1000) kB" : "\(count / 1_000_000) MB"
    }

    private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
}
