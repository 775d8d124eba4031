import Console
import Dispatch
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

/// `swift run mirror`: makes a directory equal to a manifest over HTTP.
@main
struct Mirror {
    static func main() async {
        do {
            let options = try Options(CommandLine.arguments.dropFirst())
            if options.helps { return print(Options.usage) }
            if let directory = options.made { return try Make.run(directory, options) }
            guard let manifest = options.manifest, let directory = options.directory else { exit(try await Demo.run(options)) }
            exit(try await run(options, manifest: manifest, directory: directory))
        } catch let mistake as Options.Mistake {
            Show.complain("\(mistake); see mirror --help")
            exit(64)
        } catch {
            Show.complain(Console.reason(ofFileError: error) ?? "\(error)")
            exit(3)
        }
    }

    /// Creates the synchronizer that makes a directory equal to a manifest.
    static func synchronizer(
        _ options: Options, manifest: URL, directory: URL
    ) -> OneWaySynchronizer<some SyncProcessor<ListedFile>> {
        let origin = Origin(manifest: manifest, retries: options.retries, rate: options.rate, fields: options.fields)
        let target = DirectoryTarget(directory: directory, transfer: origin, layers: options.layers) { origin.list() }
        return OneWaySynchronizer(
            processor: target,
            options: SyncOptions(
                concurrency: options.concurrency, stopsOnError: false, removalCondition: options.removalCondition,
                removalLimit: options.maxDelete.map { .count($0) } ?? .share(0.5),
                updateLimit: options.maxUpdate.map { .count($0) } ?? .share(0.5), listLimit: options.maxFiles ?? 1_000_000,
                retry: .exponential(attempts: options.retries + 1), localEdits: options.localEdits))
    }

    /// Runs a pass.
    ///
    /// - Returns: The exit code.
    static func run(_ options: Options, manifest: URL, directory: URL) async throws -> Int32 {
        let show = Show(options)
        let synchronizer = synchronizer(options, manifest: manifest, directory: directory)
        if options.verifies {
            let plan = try await synchronizer.plan()
            // A run may move a file to its place instead of downloading it.
            let downloads = plan.additions + plan.updates + plan.moves.map(\.download)
            func paths(_ reason: SyncPlan<ListedFile>.DownloadReason) -> [String] {
                downloads.filter { $0.reason == reason }.map(\.item.path)
            }
            // A damaged file may have left the manifest, too.
            let removals = plan.removals.map(\.local).filter { $0.version == nil }
            var check = Show.Check(damaged: paths(.unknownVersion) + removals.map(\.key.path), skipped: plan.skipped)
            check.missing = paths(.missing)
            check.edited = paths(.editedLocally) + plan.keptEdits.map(\.path)
            check.edited += plan.removals.filter { $0.reason == .editedLocally }.map(\.local.key.path)
            check.keepsEdits = !plan.keptEdits.isEmpty
            try show.check(check)
            return check.isFine ? 0 : 1
        }
        if options.isDryRun {
            try show.plan(try await synchronizer.plan())
            return 0
        }
        // Replaces the default action, so that ctrl-C cancels the run instead of killing the process.
        signal(SIGINT, SIG_IGN)
        let interrupt = DispatchSource.makeSignalSource(signal: SIGINT)
        interrupt.setEventHandler {
            // A second ctrl-C kills the process without waiting for transfers in flight.
            signal(SIGINT, SIG_DFL)
            synchronizer.cancel()
        }
        interrupt.resume()
        let following = Task { await show.follow(synchronizer.publish()) }
        // Ends before the report is shown, so that no progress appears below it.
        func stopFollowing() async {
            following.cancel()
            await following.value
        }
        defer { interrupt.cancel() }
        do {
            let report = try await synchronizer.sync(overriding: options.overrides)
            await stopFollowing()
            try show.report(report, error: nil)
            return 0
        } catch let error as SyncError {
            // A canceled call throws at once, but the run still has to store transfers in flight.
            let report = error.code == .cancelled ? await lastReport(of: synchronizer) : error.report
            await stopFollowing()
            if let report { try show.report(report, error: error) }
            switch error.code {
            case .incomplete: return 1
            case .cancelled: return 130
            default: break
            }
            Show.complain(Show.words(of: error))
            let refusals: Set<SyncError.Code> = [
                .emptySource, .removalLimit, .updateLimit, .everythingChanged, .sharedContent, .everythingExcluded, .noSpace,
            ]
            return refusals.contains(error.code) ? 2 : 3
        }
    }

    /// Waits for the end of the run and returns its report.
    private static func lastReport(of synchronizer: OneWaySynchronizer<some SyncProcessor>) async -> SyncReport? {
        for await state in synchronizer.publish() {
            if case .loading = state { continue }
            return state.content
        }
        return nil
    }
}
