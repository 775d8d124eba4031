import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import SyncEngine

/// A one-way synchronization with progress, an item that fails once, and a refused empty list.
struct SyncChapter {
    let stage: Stage
    let bookshop: Bookshop

    func run() async throws {
        stage.chapter("A one-way sync with progress, one failure, and a refused empty list")
        bookshop.publishCovers(count: 40)
        let album = Album()
        let synchronizer = synchronizer(of: album)
        let watcher = Task {
            var seen = 0
            for await state in synchronizer.publish() {
                guard let report = state.content else { continue }
                let progress = report.progress
                if state.isLoading, progress.stage == .contents, progress.doneItems >= seen + 10 {
                    seen = progress.doneItems
                    stage.note("\(progress.doneItems) of \(progress.totalItems.count) covers")
                }
                if !state.isLoading { return }
            }
        }
        let report = try await synchronizer.sync()
        await watcher.value
        stage.check("\(report.summary); cover 7 failed once, and a retry delivered it", report.addedCount == 40)
        bookshop.publishCovers(count: 0)
        do {
            try await synchronizer.sync()
            stage.check("an empty list is refused", false)
        } catch let error as SyncError {
            let count = await album.versions.count
            stage.check("an empty list is refused, and all \(count) covers stay", error.code == .emptySource && count == 40)
        }
    }
}

extension SyncChapter {
    func synchronizer(of album: Album) -> OneWaySynchronizer<CoverProcessor> {
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(bookshop.origin.port))).with { $0.retry = .never }
        let options = SyncOptions(concurrency: 4, retry: .exponential(attempts: 3, base: .milliseconds(20)))
        return OneWaySynchronizer(processor: CoverProcessor(shop: shop, album: album), options: options)
    }
}

/// A cover in the source list.
struct Cover: SyncItem, Codable {
    var id: Int
    var revision: Int

    var key: Int { id }
    var version: Int { revision }
}

/// The local covers.
actor Album {
    private var covers: [Int: (revision: Int, image: Data)] = [:]

    var versions: [Int: Int] { covers.mapValues(\.revision) }

    func put(_ cover: Cover, _ image: Data) { covers[cover.id] = (cover.revision, image) }

    func remove(_ ids: Set<Int>) { for id in ids { covers[id] = nil } }
}

struct CoverProcessor: SyncProcessor {
    let shop: RemoteHost
    let album: Album

    func sourceList() async throws -> ListedSource<Cover> { ListedSource(try await shop.send("/covers")) }
    func localInventory() async throws -> LocalInventory<Cover> { LocalInventory(versions: await album.versions) }
    func downloadContent(of cover: Cover) async throws {
        await album.put(cover, try await shop.data(for: Route(path: "/covers/\(cover.id)")))
    }
    func remove(_ keys: Set<Int>) async throws { await album.remove(keys) }
}
