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

    /// Items in memory with the list of an origin.
    private struct Collection<List: SourceList<Thing>>: SyncProcessor {
        let list: List
        let local = WatchedState(OriginSourceTests.local)

        func sourceList() async throws -> List { list }
        func localInventory() async throws -> LocalInventory<Thing> { LocalInventory(versions: local.current) }
        func downloadContent(of thing: Thing) async throws { local.update { $0[thing.key] = thing.version } }
        func remove(_ keys: Set<Int>) async throws { local.update { local in for key in keys { local[key] = nil } } }
    }

    private func sync(_ list: some SourceList<Thing>) async -> (error: SyncError?, left: Int) {
        let collection = Collection(list: list)
        let synchronizer = OneWaySynchronizer(processor: collection, options: SyncOptions(retry: .never))
        return (await syncError { try await synchronizer.sync() }, collection.local.current.count)
    }

    @Test(arguments: [GuessedEnd.shortPage, .emptyPage, .repeatedPage, .repeatedKey, GuessedEnd(rawValue: "own rule")])
    func `S2: a list with a guessed end removes nothing`(end: GuessedEnd) async throws {
        let (error, left) = await sync(OriginSource(Numbers(end: end)))
        #expect(error?.code == .incompleteList)
        #expect(error?.message.contains(end.rawValue) == true)
        #expect(left == 40)
    }

    @Test func `S2: a list with a stated end removes the items that it lacks`() async throws {
        let (error, left) = await sync(OriginSource(Numbers()))
        #expect(error == nil)
        #expect(left == 30)
    }

    @Test func `S2: an origin that repeats a page key removes nothing`() async throws {
        let (error, left) = await sync(OriginSource(Numbers(key: "2")))
        #expect(error?.code == .incompleteList)
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

    @Test func `S2: a list with a page before its first page is not complete`() async throws {
        let (error, left) = await sync(OriginSource(Windowed(prevKey: "before")))
        #expect(error?.code == .incompleteList)
        #expect(left == 40)
        #expect(await sync(OriginSource(Windowed(prevKey: ""))).left == 30)
    }

    @Test func `S2: an origin without pages may guess its end, too`() async throws {
        let (error, left) = await sync(OriginSource(Windowed(guessedEnd: .shortPage)))
        #expect(error?.code == .incompleteList)
        #expect(left == 40)
    }
}
