import StoreCore
import Testing
@testable import SyncEngine

/// The number of workers that transfer items.
struct WorkerTests {
    @Test func `S5: standby workers take over from items that gave up their slot, and transfers stay limited`() async throws {
        let state = WatchedState((transferring: 0, most: 0, waiting: 0, isOpen: false))
        let count = 200
        let bench = Bench(
            source: (0..<count).map { Thing($0) },
            act: { call in
                guard case .content = call else { return }
                state.update { state in
                    state.transferring += 1
                    state.most = max(state.most, state.transferring)
                }
                await Task.yield()
                state.update { state in
                    state.transferring -= 1
                    state.waiting += 1
                }
                ItemMeter.current?.giveUpSlot()
                try await state.wait { $0.isOpen ? () : nil }
            })
        let options = SyncOptions(concurrency: 3, retry: .never)
        let run = Task { try await OneWaySynchronizer(processor: bench, options: options).sync() }
        try await state.wait { $0.waiting == 3 + ItemWorkers.standbyCount ? () : nil }
        for _ in 0..<200 { await Task.yield() }
        #expect(state.read { $0.waiting } == 3 + ItemWorkers.standbyCount)
        state.update { $0.isOpen = true }
        #expect(try await run.value.addedCount == count)
        #expect(state.read { $0.most } <= 3)
    }

    @Test(arguments: [-5, 1, 1_024, 1_025, Int.max - 64, .max])
    func `every concurrency setting processes all items, with at most 1 024 workers`(concurrency: Int) async throws {
        #expect((1...1_024).contains(ItemWorkers.count(concurrency)))
        let bench = Bench(source: (0..<10).map { Thing($0) })
        let options = SyncOptions(concurrency: concurrency)
        #expect(try await OneWaySynchronizer(processor: bench, options: options).sync().addedCount == 10)
    }
}
