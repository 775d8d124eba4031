import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// The ends of lists that a fetcher loads page by page.
struct OriginSourceTests {
    /// A list of forty items in pages of ten; its last page may be a guess.
    private struct Numbers: PaginationFetcher {
        var end: GuessedEnd?
        var key: String?

        func fetch(param: UnitParam) async throws -> Page<Thing> { page(0) }
        func fetchNext(nextKey: String, param: UnitParam) async throws -> Page<Thing> { page(Int(nextKey) ?? 0) }

        private func page(_ number: Int) -> Page<Thing> {
            let things = (number * 10..<number * 10 + 10).map { Thing($0) }
            return number < 2 ? Page(things, nextKey: "\(number + 1)") : Page(things, nextKey: key, guessedEnd: end)
        }
    }

    private static let local = Dictionary(uniqueKeysWithValues: (0..<40).map { ($0, 1) })

    private func sync(_ list: some SourceList<Thing>) async -> (error: SyncError?, left: Int) {
        let items = LocalItems(list, versions: Self.local)
        let synchronizer = OneWaySynchronizer(processor: items, options: SyncOptions(retry: .never))
        return (await syncError { try await synchronizer.sync() }, items.versions.current.count)
    }

    @Test(arguments: [GuessedEnd.shortPage, .emptyPage, .repeatedPage, .repeatedKey, GuessedEnd(rawValue: "own rule")])
    func `S2: a list with a guessed end removes nothing`(end: GuessedEnd) async throws {
        let (error, left) = await sync(OriginSource(Numbers(end: end)))
        #expect(error?.code == .incompleteList)
        #expect(error?.message.contains(end.rawValue) == true)
        #expect(left == 40)
    }

    /// An origin of its own kind.
    private struct Windowed: Origin {
        var prevKey: String?
        var guessedEnd: GuessedEnd?

        func respond(to request: OriginRequest<UnitParam>) async throws -> OriginResponse<[Thing]> {
            OriginResponse(.modified((0..<30).map { Thing($0) }), prevKey: prevKey, guessedEnd: guessedEnd)
        }
    }

    @Test func `S2: a list with a repeated page key, a page before its first page or a guessed end removes nothing`() async throws {
        for (error, left) in [
            await sync(OriginSource(Numbers(key: "2"))), await sync(OriginSource(Windowed(prevKey: "before"))),
            await sync(OriginSource(Windowed(guessedEnd: .shortPage))),
        ] {
            #expect(error?.code == .incompleteList)
            #expect(left == 40)
        }
    }

    @Test func `S2: a list with a stated end removes the items that it lacks`() async throws {
        for (error, left) in [await sync(OriginSource(Numbers())), await sync(OriginSource(Windowed(prevKey: "")))] {
            #expect(error == nil)
            #expect(left == 30)
        }
    }
}
