import StoreCore
import StoreCoreTesting
import Testing
import Trials

// Pages that arrive too late.

extension PaginationTests {
    /// The content in the cache, valid or not.
    private func known(_ list: PaginationStoreFlowable<Int, Int>) async -> [Int]? {
        do { return try await list.requireData(from: .cache) } catch { return (error as? StoreError)?.staleContent as? [Int] }
    }

    enum Superseding: CaseIterable, Sendable { case refresh, update, updateWithKeys, inPlace, clear, storeClear, invalidate, mutate }

    @Test(arguments: Superseding.allCases, [false, true])
    func `C13: a page of an older list or epoch is never appended`(_ change: Superseding, _ isObserved: Bool) async throws {
        for direction in PageDirection.allCases { try await supersede(change, direction, isObserved) }
    }

    private func supersede(_ change: Superseding, _ direction: PageDirection, _ isObserved: Bool) async throws {
        let fetcher = Fetcher(.page([1], nextKey: "n", prevKey: "p"), cancellation: .ignored)
        let lists = store(fetcher, policy: StorePolicy(unwantedFetch: .complete))
        let list = lists[1]
        _ = try await list.requireData()
        let observer = isObserved ? RecordingObserver(list.publish()) : nil
        _ = try await observer?.states(count: 1)
        fetcher.hold()
        let page = request(list, direction)
        try await fetcher.started(count: 2)
        try await until("the request waits") { lists.waiting(1) == 1 }
        if change == .invalidate {
            // The page fetch is unwanted but still returns a page.
            page.cancel()
            _ = await page.value
        }
        var refresh: Task<Void, Never>?
        switch change {
        case .refresh: refresh = Task { await list.refresh() }
        case .update: await list.update([7])
        case .updateWithKeys: await list.update([7], nextKey: "m", prevKey: nil)
        case .inPlace: await list.update { $0 = [7] }
        case .clear: await list.clear()
        case .storeClear: try await lists.clear()
        case .invalidate: await list.invalidate()
        case .mutate: try await list.mutate(optimistically: { $0 = [7] }) {}
        }
        if change == .refresh { try await fetcher.started(count: 3) }
        try await fetcher.answer(2, with: .page([-1]))
        try await fetcher.ended(count: 2)
        for _ in 0..<3 { fetcher.enqueue(.page([7], nextKey: "n", prevKey: "p")) }
        fetcher.release()
        switch change {
        case .refresh, .updateWithKeys, .clear, .storeClear: #expect(await page.value == "superseded")
        // These changes interrupt the page, and it is requested again.
        case .update, .inPlace, .mutate: #expect(await page.value == "loaded")
        case .invalidate: break
        }
        await refresh?.value
        try await observer?.stopAndLeave()
        try await until("the list is idle") { lists.liveKeys == 0 }
        #expect(await known(list)?.contains(-1) != true)
        #expect(observer?.states.contains { $0.content?.contains(-1) == true } != true)
    }
}
