import Foundation
import StoreFiles
import Testing
import Trials

@testable import StoreCore

#if os(macOS) || os(Linux)

/// Tests linked stores of processes that are killed.
@Suite(.serialized, .timeLimit(.minutes(hangMinutes)))
struct LinkedCrashTests {
    private struct Item: Codable, Hashable, Identifiable, Sendable {
        var id: Int
        var number = 0
    }

    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func cacher<Content: Codable & Sendable>(_ name: String, of type: Content.Type) -> TieredCacher<FileCacher<Int, Content>> {
        TieredCacher(over: FileCacher(directory: place.url.appending(path: name)))
    }

    @Test func `E8: after kill -9 at a random moment, list, search and detail agree, and have each acknowledged change`() async throws {
        let program = try ChildProcess.path(of: "CrashWriter")
        var (first, acknowledged) = (1, [Int: Int]())
        for _ in 0..<rounds(50, quick: 3) {
            let child = try ChildProcess(program, ["links", place.url.path(percentEncoded: false), "\(first)"])
            func note(_ line: String) {
                let numbers = line.split(separator: " ").compactMap { Int($0) }
                guard numbers.count == 2 else { return }
                (acknowledged[numbers[0]], first) = (numbers[1], numbers[1] + 1)
            }
            for _ in 0..<Int.random(in: 1...40) {
                guard let line = try await child.nextLine() else { break }
                note(line)
            }
            child.kill()
            while let line = try await child.nextLine() { note(line) }
            _ = try await child.ending()

            let items = Store<Int, Item>(cacher: cacher("items", of: Item.self)) { Item(id: $0) }
            let list = Store<Int, [Item]>(cacher: cacher("list", of: [Item].self), links: [.elements(of: items)]) { _ in [] }
            let search = Store<Int, [Item]>(
                cacher: cacher("search", of: [Item].self), links: [.elements(of: items, id: \.id, fields: (\.number, \.number))]
            ) { _ in [] }
            for lists in [list, search] { #expect(try await lists[0].requireData().count == 3) }
            for (id, number) in acknowledged {
                let shown = try await items[id].requireData().number
                #expect(shown >= number)
                for lists in [list, search] { #expect(try await lists[0].requireData()[id].number == shown) }
            }
            for lists in [list, search] { try await lists.waitUntilSaved() }
            try await items.waitUntilSaved()
        }
    }
}
#endif
