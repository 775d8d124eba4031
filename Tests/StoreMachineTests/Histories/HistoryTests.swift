import StoreTrials
import Testing
import Trials

/// `STOREHOUSE_SEEDS=100000` plays that many histories, `STOREHOUSE_SEED=7` a single one.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HistoryTests {
    private func play<Played: RandomHistory>(_: Played.Type, _ backing: Backing) async {
        for seed in seeds(500 as UInt64, quick: 6, sanitized: 50) {
            var history = Played(seed: seed, backing)
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
    func `C1-C16, C18, C25: the store follows a simple model through random histories`(_ backing: Backing) async {
        await play(History.self, backing)
    }

    @Test(arguments: Backing.allCases)
    func `L1-L7: the store follows a simple model through random histories of an origin that pushes`(_ backing: Backing) async {
        await play(LiveHistory.self, backing)
    }
}
