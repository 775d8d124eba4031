import StoreCore
import Testing
@testable import SyncEngine

/// The number of workers that transfer items.
struct WorkerSlotsTests {
    @Test func `a returned slot goes to a waiting worker`() async throws {
        let slots = WorkerSlots(2)
        #expect(await slots.take())
        #expect(await slots.take())
        let third = Task { await slots.take() }
        for _ in 0..<50 { await Task.yield() }
        slots.giveBack()
        #expect(await third.value)
        slots.giveBack()
        #expect(await slots.take(), "a slot returned without waiting workers stays free")
    }

    @Test func `a canceled worker stops waiting and takes no slot`() async throws {
        let slots = WorkerSlots(1)
        #expect(await slots.take())
        let waiting = Task { await slots.take() }
        for _ in 0..<50 { await Task.yield() }
        waiting.cancel()
        #expect(await !waiting.value)
        slots.giveBack()
        #expect(await slots.take())
    }

    @Test func `the end of the items resumes all waiting workers`() async throws {
        let slots = WorkerSlots(1)
        #expect(await slots.take())
        let waiting = (0..<5).map { _ in Task { await slots.take() } }
        for _ in 0..<50 { await Task.yield() }
        slots.end()
        for task in waiting { #expect(await !task.value) }
        #expect(await !slots.take())
    }

    @Test func `S5: items without a slot leave room for the standby workers, and transfers stay limited`()
        async throws
    {
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
        try await state.wait { $0.waiting == 3 + WorkerSlots.standbyCount ? () : nil }
        for _ in 0..<200 { await Task.yield() }
        #expect(state.read { $0.waiting } == 3 + WorkerSlots.standbyCount)
        state.update { $0.isOpen = true }
        #expect(try await run.value.addedCount == count)
        #expect(state.read { $0.most } <= 3)
    }

    @Test(arguments: [-5, 1, 1_024, 1_025, Int.max - 64, .max], [false, true])
    func `any concurrency processes all items, with at most 1 024 at a time`(concurrency: Int, early: Bool)
        async throws
    {
        #expect((1...1_024).contains(ItemWorkers.count(concurrency)))
        let bench = Bench(source: (0..<10).map { Thing($0) })
        let options = SyncOptions(concurrency: concurrency, startsEarly: early)
        #expect(try await OneWaySynchronizer(processor: bench, options: options).sync().addedCount == 10)
    }
}
