import Foundation
import StoreCore
import Testing
import Trials

@Suite(.timeLimit(.minutes(30)))
struct HistoryTests {
    /// The number of histories; `STOREHOUSE_SEEDS=100000` for a long run, `STOREHOUSE_SEED=7` for a single one.
    private static let usual: UInt64 = 500

    @Test(arguments: Backing.allCases)
    func `C1-C16: the store follows a simple model through random histories`(_ backing: Backing) async throws {
        for seed in seeds(Self.usual) {
            var history = History(seed: seed, backing)
            do {
                try await history.run()
            } catch {
                Issue.record("seed \(seed), \(backing): \(error)\n\(history.steps.joined(separator: "\n"))")
                break
            }
            // Lets other tests run.
            await Task.yield()
        }
    }

    @Test(arguments: Backing.allCases)
    func `L1-L7: the store follows a simple model through random histories of an origin that pushes`(_ backing: Backing) async throws {
        for seed in seeds(Self.usual) {
            var history = LiveHistory(seed: seed, backing)
            do {
                try await history.run()
            } catch {
                Issue.record("seed \(seed), \(backing): \(error)\n\(history.steps.joined(separator: "\n"))")
                break
            }
            await Task.yield()
        }
    }
}
