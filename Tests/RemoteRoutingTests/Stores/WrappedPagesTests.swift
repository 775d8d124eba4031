import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// Lists wrapped in objects, numbered pages, and pages of other formats.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct WrappedPagesTests {
    private struct Hits: Codable, Sendable {
        var total: Int
        var items: [Int]
    }

    private struct Sparse: Codable, Sendable {
        struct NoList: Error {}
        var items: [Int]?
    }

    private let time = ManualTime(date: Date())

    private typealias Lists = MemoryCacher<Int, [Int]>

    private func store(_ fetcher: RoutePageFetcher<Int, Int>, _ cacher: Lists = Lists()) -> PaginationStore<Int, Int> {
        PaginationStore(cacher: cacher, fetcher: fetcher, time: time)
    }

    private func host(_ bench: Bench) -> RemoteHost { bench.host(time: time) { $0.retry = .never } }

    private static func number(_ request: Asked, _ name: String = "page") -> Int? {
        request.query.split(separator: "&").first { $0.hasPrefix("\(name)=") }.flatMap { Int($0.dropFirst(name.count + 1)) }
    }

    @Test(arguments: RealTransport.available)
    func `H9: links of lists that are wrapped in an object are followed`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/hits") { request in
            let page = Self.number(request) ?? 2
            let links = [page > 1 ? "<?page=\(page - 1)>; rel=prev" : "", page < 3 ? "<?page=\(page + 1)>; rel=next" : ""]
            return .json(Hits(total: 3, items: [page])).tagged("\(page)").setting("Cache-Control", to: "max-age=60")
                .setting("Link", to: links.filter { !$0.isEmpty }.joined(separator: ", "))
        }
        let hits = store(host(bench).pages(in: Hits.self, elements: { $0.items }) { (_: Int) in Route(path: "/hits") })
        #expect(try await hits[1].requireData() == [2])
        #expect(await hits[1].requestNextData() == .loaded)
        #expect(await hits[1].requestPrevData() == .loaded)
        #expect(await hits[1].requestNextData() == .noPage)
        #expect(await hits[1].requestPrevData() == .noPage)
        #expect(try await hits[1].requireData() == [1, 2, 3])
    }

    @Test(arguments: [#"{"total":1}"#, #"{"total":1,"items":null}"#, #"{"total":1,"items":{}}"#, "[1]", "null"])
    func `H10: a wrapped page without its list is a decoding error`(_ body: String) async throws {
        let bench = try Bench(on: "GET", "/hits") { _ in .json(literal: body) }
        let hits = store(host(bench).pages(in: Hits.self, elements: { $0.items }) { (_: Int) in Route(path: "/hits") })
        let error = try await remoteError { _ = try await hits[1].requireData() }
        #expect(error.code == .undecodable && error.underlyingError is DecodingError)
        #expect(error.body == Data(body.utf8))
    }

    @Test func `H17: an error of the elements function fails only its page`() async throws {
        let bench = try Bench()
        bench.on("GET", "/hits") { request in
            switch Self.number(request) {
            case nil: .json(Sparse(items: [1])).setting("Link", to: "<?page=2>; rel=next")
            default: bench.asked.count == 2 ? .json(Sparse()) : .json(Sparse(items: [2]))
            }
        }
        let hits = store(
            host(bench).pages(
                in: Sparse.self,
                elements: {
                    guard let items = $0.items else { throw Sparse.NoList() }
                    return items
                }
            ) { (_: Int) in Route(path: "/hits") })
        #expect(try await hits[1].requireData() == [1])
        guard case .failed(let error as RemoteError) = await hits[1].requestNextData() else {
            Issue.record("the page was accepted")
            return
        }
        #expect(error.stage == .decode && error.underlyingError is Sparse.NoList)
        #expect(await hits[1].requestNextData() == .loaded)
        #expect(try await hits[1].requireData() == [1, 2])
    }

    enum Ending: CaseIterable, Sendable { case empty, short, repeated, ignored }

    @Test(arguments: RealTransport.available, Ending.allCases)
    func `C25, H9: a list of numbered pages ends at an empty, short or repeated page, as a guess`(
        _ transport: RealTransport, _ ending: Ending
    ) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/items") { request in
            let page = Self.number(request) ?? 0
            return switch ending {
            case .empty: .json(page <= 3 ? [page * 2, page * 2 + 1] : [])
            case .short: .json(page < 3 ? [page * 2, page * 2 + 1] : [page * 2])
            // Repeats the last page for every higher number.
            case .repeated: .json([min(page, 3) * 2, min(page, 3) * 2 + 1])
            case .ignored: .json([2, 3])
            }
        }
        let items = store(
            host(bench).pages(of: Int.self, numberedFrom: 1, size: ending == .short ? 2 : nil) { (_: Int, number: Int) in
                Route(path: "/items", query: ["page": number])
            })
        var loaded = 0
        #expect(try await items[1].requireData() == [2, 3])
        while await items[1].requestNextData() == .loaded, loaded < 10 { loaded += 1 }
        let (elements, requests) =
            switch ending {
            case .empty, .repeated: ([2, 3, 4, 5, 6, 7], 4)
            case .short: ([2, 3, 4, 5, 6], 3)
            case .ignored: ([2, 3], 2)
            }
        #expect(try await items[1].requireData() == elements)
        #expect(bench.asked.map { Self.number($0) } == Array(1...requests))
        #expect(await items[1].requestNextData() == .noPage)
        let guess: GuessedEnd =
            switch ending {
            case .empty: .emptyPage
            case .short: .shortPage
            case .repeated, .ignored: .repeatedPage
            }
        #expect(items[1].guessedEnd == guess)
    }

    @Test func `H9: a server that always has another page gets a single request per requested page`() async throws {
        let bench = try Bench(.memory, on: "GET", "/items") { request in .json(Hits(total: .max, items: [Self.number(request) ?? -1])) }
        let items = store(
            host(bench).pages(in: Hits.self, elements: { $0.items }, numberedFrom: 0, size: 1) { (_: Int, number: Int) in
                Route(path: "/items", query: ["page": number])
            })
        #expect(try await items[1].requireData() == [0])
        for _ in 1...50 { #expect(await items[1].requestNextData() == .loaded) }
        #expect(bench.asked.count == 51)
        #expect(try await items[1].requireData() == Array(0...50))
    }

    @Test func `C13, H9: numbered pages are fetched again in order`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/items") { request in .json([Self.number(request) ?? -1]).setting("Cache-Control", to: "max-age=60") }
        let cacher = MemoryCacher<Int, [Int]>()
        func items() -> PaginationStore<Int, Int> {
            store(
                host(bench).pages(of: Int.self, numberedFrom: 1) { (_: Int, number: Int) in Route(path: "/items", query: ["page": number])
                },
                cacher)
        }
        let first = items()
        _ = try await first[1].requireData()
        for _ in 2...3 { #expect(await first[1].requestNextData() == .loaded) }
        time.advance(by: .seconds(61))
        // Another store loads the keys from the cacher.
        let second = items()
        #expect(try await second[1].requireData() == [1, 2, 3])
        #expect(await second[1].requestNextData() == .loaded)
        #expect(bench.asked.map { Self.number($0) } == [1, 2, 3, 1, 2, 3, 4])
    }

    @Test(arguments: ["", "2", "x.y", "2.a.b", "2..a", ".a", "99999999999999999999.a", "/items?page=2", "2,a", "\(Int.max).a"])
    func `H9: a saved key that is not a page number is refused before anything is sent`(_ key: String) async throws {
        let bench = try Bench(on: "GET", "/items") { _ in .json([1]) }
        let cacher = MemoryCacher<Int, [Int]>()
        await cacher.save(CacheRecord(content: [1], fetchedAt: time.date, nextKey: key), param: 1)
        let items = store(
            host(bench).pages(of: Int.self, numberedFrom: 1) { (_: Int, number: Int) in Route(path: "/items", query: ["page": number]) },
            cacher)
        let request = await items[1].requestNextData()
        switch key {
        case "": #expect(request == .noPage)
        // The largest page number has no next page.
        case "\(Int.max).a":
            #expect(request == .loaded)
            #expect(await items[1].requestNextData() == .noPage)
            #expect(items[1].guessedEnd?.rawValue == "largestNumber")
        default:
            guard case .failed(let error as RemoteError) = request else {
                Issue.record("the key was accepted")
                return
            }
            #expect(error.code == .invalidRoute && bench.asked.isEmpty, "\(error)")
        }
    }

    private func cursors(_ bench: Bench) -> RoutePageFetcher<Int, Int> {
        host(bench).pages(in: [String: String].self, elements: { [$0.count] }, next: { $0["again"] }) { (_: Int, cursor: PageCursor?) in
            Route(path: "/cursors", query: ["c": cursor?.next])
        }
    }

    @Test func `C25, H9: a page that links to itself as the next page ends the list, as a guess`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/linked") { request in .json([Self.number(request) ?? 1]).setting("Link", to: "<?page=2>; rel=next") }
        bench.on("GET", "/cursors") { _ in .json(["again": "c"]) }
        let linked = store(host(bench).pages(of: Int.self) { (_: Int) in Route(path: "/linked") })
        for list in [linked, store(cursors(bench))] {
            #expect(try await list[1].requireData() == [1])
            #expect(await list[1].requestNextData() == .loaded)
            #expect(await list[1].requestNextData() == .noPage)
            #expect(list[1].guessedEnd == .repeatedKey)
        }
    }

    @Test(arguments: [
        ("?page=2; rel=next", true), ("<?page=2", true), (#"<?page=2>; rel="next"#, true), ("<?page=2> rel=next", true),
        ("<?page=1>; rel=first, ?page=2; rel=next", true), ("<?page=1>; rel=first; title=a b", false), (", <?page=1>; rel=first,", false),
    ])
    func `C25, H9: a page with a malformed link and no next one ends the list, as a guess`(links: String, isGuess: Bool) async throws {
        let bench = try Bench(.memory, on: "GET", "/linked") { _ in .json([1]).setting("Link", to: links) }
        let list = store(host(bench).pages(of: Int.self) { (_: Int) in Route(path: "/linked") })
        #expect(try await list[1].requireData() == [1])
        #expect(await list[1].requestNextData() == .noPage)
        #expect(list[1].guessedEnd?.rawValue == (isGuess ? "malformedLink" : nil))
    }

    @Test(arguments: [("<?page=2>; rel=next", 200, true), ("<?page=1>; rel=prev", 200, false), ("", 206, true), ("", 200, false)])
    func `C25, H9: a list that is requested without its pages has a guessed end if the response is a part`(
        links: String, status: Int, isPart: Bool
    ) async throws {
        let bench = try Bench(.memory, on: "GET", "/list") { _ in
            let response = Bench.Response.json(literal: "[1]", status: status)
            return links.isEmpty ? response : response.setting("Link", to: links)
        }
        let fetcher = host(bench).fetcher(of: [Int].self) { (_: Int) in Route(path: "/list") }
        #expect(try await fetcher.respond(to: .content(1, revalidating: nil)).guessedEnd?.rawValue == (isPart ? "partOfList" : nil))
    }

    @Test func `C25: a page that is fetched without a store names its guess, and the end that a server states is none`() async throws {
        let bench = try Bench(
            .memory, on: "GET", "/cursors", inTurn: .json(["again": "c"]), .json(["again": "c"]), .json(["last": "c"]))
        let fetcher = cursors(bench)
        #expect(try await fetcher.fetch(param: 1).nextKey == "c")
        let page = try await fetcher.fetchNext(nextKey: "c", param: 1)
        #expect(page.nextKey == nil && page.guessedEnd == .repeatedKey)
        #expect(try await fetcher.fetch(param: 1).guessedEnd == nil)
        let list = store(fetcher)
        #expect(try await list[1].requireData() == [1])
        #expect(list[1].guessedEnd == nil)
    }

    @Test(arguments: RealTransport.available)
    func `H9, H17: pages of any format can have their cursors in header fields`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/log") { request in
            let from = Self.number(request, "from") ?? 1
            let page = Bench.Response.text("\(from)\n\(from + 1)\n").setting("Cache-Control", to: "max-age=60").tagged("\(from)")
            return from < 5 ? page.setting("X-Next", to: "\(from + 2)") : page
        }
        let fetcher = host(bench).pages(parsing: { response in
            Page(
                String(decoding: response.value, as: UTF8.self).split(separator: "\n").compactMap { Int($0) },
                nextKey: response.fields["X-Next"])
        }) { (_: Int, cursor: PageCursor?) in
            Route(path: "/log", query: ["from": cursor?.next], options: RouteOptions(accept: .plainText))
        }
        let log = store(fetcher)
        #expect(try await log[1].requireData() == [1, 2])
        for expected in [PageRequest.loaded, .loaded, .noPage] { #expect(await log[1].requestNextData() == expected) }
        #expect(try await log[1].requireData() == [1, 2, 3, 4, 5, 6])
        #expect(bench.asked.allSatisfy { $0["Accept"] == "text/plain; charset=utf-8" })
        // The page has the freshness and the validator of its response.
        guard case .modified(_, let freshness, let validator) = try await fetcher.respond(to: .content(1, revalidating: nil)).result else {
            throw TestError()
        }
        #expect(freshness == .fresh(for: .seconds(60)) && validator?.entityTag == "\"1\"")
    }

    @Test func `H9: a page's own freshness and validator replace the response's`() async throws {
        let bench = try Bench(.memory, on: "GET", "/log") { _ in .text("1").setting("Cache-Control", to: "max-age=60").tagged("a") }
        let fetcher = host(bench).pages(parsing: { _ in
            Page([1], freshness: .fresh(for: .seconds(5)), validator: Validator(entityTag: "\"own\""))
        }) { (_: Int, _: PageCursor?) in Route(path: "/log") }
        let result = try await fetcher.respond(to: .content(1, revalidating: nil)).result
        #expect(result == .modified([1], .fresh(for: .seconds(5)), Validator(entityTag: "\"own\"")))
    }
}
