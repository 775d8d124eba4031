import StoreCore
import StoreCoreTesting
import Testing
import Trials
@testable import SyncEngine

/// The engine under random calls, cancellations and failures: every caller gets one result, and every begin has its end.
struct ExactlyOnceTests {
    /// The result of a call.
    private enum Ending: Sendable {
        case report(pass: Int)
        case failed(SyncError)
        case left
    }

    private struct Call: Sendable {
        var task: Task<Ending, any Error>
        var isCancelled = false
    }

    @Test func `S1, S6, S7: every caller gets one result of a pass that began after its call`() async throws {
        for seed in seeds(400, quick: 100, sanitized: 100) {
            var chance = SplitMix(seed: seed)
            let failing = Int.random(in: 0..<4, using: &chance) == 0
            let slowness = Int.random(in: 0...6, using: &chance)
            let bench = Bench(
                source: (1...3).map { Thing($0) }, local: [2: 0, 7: 1],
                act: { call in
                    for _ in 0..<slowness { await Task.yield() }
                    if failing, call == .content(2) { throw Trouble.lasting }
                })
            let options = SyncOptions(concurrency: 2, downloadsPreviews: Bool.random(using: &chance), retry: .never)
            let synchronizer = OneWaySynchronizer(processor: bench, options: options, time: ManualTime())
            var calls: [Call] = []
            var observers: [RecordingObserver<SyncReport>] = []
            var hasCancelled = false
            for _ in 0..<Int.random(in: 3...14, using: &chance) {
                switch Int.random(in: 0..<10, using: &chance) {
                case 0..<5: calls.append(Call(task: Task { try await Self.call(synchronizer, bench, seed) }))
                case 5..<7:
                    guard let index = calls.indices.randomElement(using: &chance) else { continue }
                    calls[index].isCancelled = true
                    calls[index].task.cancel()
                case 7:
                    hasCancelled = true
                    synchronizer.cancel()
                case 8: observers.append(RecordingObserver(synchronizer.publish()))
                default: observers.popLast()?.stop()
                }
                for _ in 0..<Int.random(in: 0...8, using: &chance) { await Task.yield() }
            }
            for call in calls {
                switch try await call.task.value {
                case .report: #expect(!failing || bench.local[2] == 1, "seed \(seed)")
                case .left: #expect(call.isCancelled, "seed \(seed)")
                case .failed(let error):
                    if error.code == .cancelled {
                        #expect(hasCancelled, "seed \(seed)")
                    } else {
                        #expect(failing && error.code == .incomplete, "seed \(seed): \(error)")
                    }
                }
            }
            for observer in observers { observer.stop() }
            try await until("the run and its observers have ended") { !synchronizer.isSyncing && synchronizer.snapshot().observers == 0 }
            let state = bench.state.current
            #expect(synchronizer.snapshot().callers == 0, "seed \(seed)")
            #expect(state.begun == state.ended && state.running == 0, "seed \(seed): \(state.begun) begun, \(state.ended) ended")
            #expect(Set(state.reports.map(\.pass)).count == state.ended, "seed \(seed): a pass had two ends")
            #expect(!failing || state.local[7] == 1, "seed \(seed): removed although a download failed")
        }
    }

    private static func call(_ synchronizer: OneWaySynchronizer<Bench>, _ bench: Bench, _ seed: Int) async throws -> Ending {
        let begun = bench.state.read { $0.begun }
        do {
            let report = try await synchronizer.sync()
            #expect(report.pass > begun, "seed \(seed)")
            return .report(pass: report.pass)
        } catch let error as SyncError {
            if let report = error.report, error.code != .cancelled { #expect(report.pass > begun, "seed \(seed)") }
            return .failed(error)
        } catch is CancellationError {
            return .left
        }
    }
}
