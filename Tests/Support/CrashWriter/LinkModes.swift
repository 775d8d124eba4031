import Foundation
import StoreCore
internal import StoreFiles
import Trials

/// Changes entities that a list and a search show, each time in one of the three stores, until the process is killed.
enum LinkModes {
    private struct Item: Codable, Hashable, Identifiable, Sendable {
        var id: Int
        var number = 0
    }

    /// Prints each change that is saved: the key of the entity, and the number that it has got.
    static func run(_ directory: URL, from first: Int) async throws {
        func cacher<Content: Codable & Sendable>(_ name: String, of type: Content.Type) -> TieredCacher<FileCacher<Int, Content>> {
            TieredCacher(over: FileCacher(directory: directory.appending(path: name)))
        }
        let policy = StorePolicy(saveInterval: .milliseconds(1))
        let items = Store<Int, Item>(cacher: cacher("items", of: Item.self), policy: policy) { Item(id: $0) }
        let list = Store<Int, [Item]>(cacher: cacher("list", of: [Item].self), links: [.elements(of: items)], policy: policy) { _ in
            (0..<3).map { Item(id: $0) }
        }
        let search = Store<Int, [Item]>(
            cacher: cacher("search", of: [Item].self), links: [.elements(of: items, id: \.id, fields: (\.number, \.number))], policy: policy
        ) { _ in (0..<3).map { Item(id: $0) } }
        for id in 0..<3 { _ = try await items[id].requireData() }
        for lists in [list, search] { _ = try await lists[0].requireData() }
        let observers = [list, search].map { lists in Task { for await _ in lists[0].publish() {} } }
        defer { for observer in observers { observer.cancel() } }
        for number in first... {
            let id = number % 3
            switch number % 4 {
            case 0: await list[0].update { $0[id].number = number }
            case 1: await search[0].update { $0[id].number = number }
            default: await items[id].update(Item(id: id, number: number))
            }
            try await items.waitUntilSaved()
            say("\(id) \(number)")
        }
    }
}
