import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import RemoteRouting

/// Lists in objects, pages with numbers, and pages of other formats.
@Suite(.timeLimit(.minutes(10)))
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

    private func store(_ fetcher: RoutePageFetcher<Int, Int>, _ cacher: MemoryCacher<Int, [Int]> = MemoryCacher()) -> PaginationStore<
        Int, Int
    > {
        PaginationStore(cacher: cacher, fetcher: fetcher, time: time)
    }

    private func host(_ bench: Bench) -> RemoteHost { bench.host(time: time) { $0.retry = .never } }

    /// The value of a query item.
    private static func number(_ asked: Asked, _ name: String = "page") -> Int? {
        asked.query.split(separator: "&").first { $0.hasPrefix("\(name)=") }.flatMap { Int($0.dropFirst(name.count + 1)) }
    }

    // MARK: Links

    @Test(arguments: RealTransport.available)
    func `H9: links lead through lists that are wrapped in an object`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/hits") { asked in
            let page = Self.number(asked) ?? 2
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
    func `H10: a wrapped list without its list is an error that says so`(_ body: String) async throws {
        let bench = try Bench()
        bench.on("GET", "/hits") { _ in .json(literal: body) }
        let hits = store(host(bench).pages(in: Hits.self, elements: { $0.items }) { (_: Int) in Route(path: "/hits") })
        let error = try await remoteError { _ = try await hits[1].requireData() }
        #expect(error.code == .undecodable && error.underlyingError is DecodingError)
        #expect(error.body == Data(body.utf8))
    }

    @Test func `H17: elements that cannot be had fail their page alone`() async throws {
        let bench = try Bench()
        bench.on("GET", "/hits") { asked in
            switch Self.number(asked) {
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
            Issue.record("the page was taken")
            return
        }
        #expect(error.stage == .decode && error.underlyingError is Sparse.NoList)
        #expect(await hits[1].requestNextData() == .loaded)
        #expect(try await hits[1].requireData() == [1, 2])
    }

    // MARK: Numbers

    enum Ending: CaseIterable, Sendable { case empty, short, repeated, ignored }

    @Test(arguments: RealTransport.available, Ending.allCases)
    func `H9: pages with numbers end`(_ transport: RealTransport, _ ending: Ending) async throws {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/items") { asked in
            let page = Self.number(asked) ?? 0
            return switch ending {
            case .empty: .json(page <= 3 ? [page * 2, page * 2 + 1] : [])
            case .short: .json(page < 3 ? [page * 2, page * 2 + 1] : [page * 2])
            // The last page for every higher number.
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
    }

    @Test func `H9: a server that always has another page is asked once for each page that a caller wants`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/items") { asked in .json(Hits(total: .max, items: [Self.number(asked) ?? -1])) }
        let items = store(
            host(bench).pages(in: Hits.self, elements: { $0.items }, numberedFrom: 0, size: 1) { (_: Int, number: Int) in
                Route(path: "/items", query: ["page": number])
            })
        #expect(try await items[1].requireData() == [0])
        for _ in 1...50 { #expect(await items[1].requestNextData() == .loaded) }
        #expect(bench.asked.count == 51)
        #expect(try await items[1].requireData() == Array(0...50))
    }

    @Test func `H9, C13: pages with numbers are fetched again in order`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/items") { asked in .json([Self.number(asked) ?? -1]).setting("Cache-Control", to: "max-age=60") }
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
        // Another store: the keys come from its cacher.
        let second = items()
        #expect(try await second[1].requireData() == [1, 2, 3])
        #expect(await second[1].requestNextData() == .loaded)
        #expect(bench.asked.map { Self.number($0) } == [1, 2, 3, 1, 2, 3, 4])
    }

    @Test(arguments: ["", "2", "x.y", "2.a.b", ".a", "99999999999999999999.a", "/items?page=2", "2,a", "\(Int.max).a"])
    func `H9: a saved key that is no page number is refused before anything is sent`(_ key: String) async throws {
        let bench = try Bench()
        bench.on("GET", "/items") { _ in .json([1]) }
        let cacher = MemoryCacher<Int, [Int]>()
        await cacher.save(CacheRecord(content: [1], fetchedAt: time.date, nextKey: key), param: 1)
        let items = store(
            host(bench).pages(of: Int.self, numberedFrom: 1) { (_: Int, number: Int) in Route(path: "/items", query: ["page": number]) },
            cacher)
        let request = await items[1].requestNextData()
        switch key {
        case "": #expect(request == .noPage)
        // The highest number there is has no page behind it.
        case "\(Int.max).a":
            #expect(request == .loaded)
            #expect(await items[1].requestNextData() == .noPage)
        default:
            guard case .failed(let error as RemoteError) = request else {
                Issue.record("the key was taken")
                return
            }
            #expect(error.code == .invalidRoute)
            #expect(bench.asked.isEmpty)
        }
    }

    // MARK: Keys that lead in circles

    @Test func `H9: a page that names itself as the next one ends the list`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/linked") { asked in .json([Self.number(asked) ?? 1]).setting("Link", to: "<?page=2>; rel=next") }
        bench.on("GET", "/cursors") { _ in .json(["again": "c"]) }
        let linked = store(host(bench).pages(of: Int.self) { (_: Int) in Route(path: "/linked") })
        let cursors = store(
            host(bench).pages(in: [String: String].self, elements: { [$0.count] }, next: { $0["again"] }) { (_: Int, cursor: PageCursor?) in
                Route(path: "/cursors", query: ["c": cursor?.next])
            })
        for list in [linked, cursors] {
            #expect(try await list[1].requireData() == [1])
            #expect(await list[1].requestNextData() == .loaded)
            #expect(await list[1].requestNextData() == .noPage)
        }
    }

    // MARK: Other formats

    @Test(arguments: RealTransport.available)
    func `H9, H17: pages of any format may have their cursors in fields`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/log") { asked in
            let from = Self.number(asked, "from") ?? 1
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
        // What the response says of lifetime and version is the page's.
        guard case .modified(_, let freshness, let validator) = try await fetcher.respond(to: .content(1, revalidating: nil)).result else {
            return
        }
        #expect(freshness == .fresh(for: .seconds(60)) && validator?.entityTag == "\"1\"")
    }

    @Test func `H9: a freshness and a validator that a page sets replace the response's`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/log") { _ in .text("1").setting("Cache-Control", to: "max-age=60").tagged("a") }
        let fetcher = host(bench).pages(parsing: { _ in
            Page([1], freshness: .fresh(for: .seconds(5)), validator: Validator(entityTag: "\"own\""))
        }) { (_: Int, _: PageCursor?) in Route(path: "/log") }
        let result = try await fetcher.respond(to: .content(1, revalidating: nil)).result
        #expect(result == .modified([1], .fresh(for: .seconds(5)), Validator(entityTag: "\"own\"")))
    }
}
