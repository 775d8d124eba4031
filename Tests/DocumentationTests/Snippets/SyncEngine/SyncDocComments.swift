internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import SyncEngine

// The examples of SyncEngine's doc comments, compiled.

private enum Photos {
    struct Photo: SyncItem {
        var id: Int
        var revision: Int
        var size: Int64

        var key: Int { id }
        var version: Int { revision }
        var byteCount: Int64? { size }
    }

    struct PhotoProcessor: SyncProcessor {
        let api: PhotoAPI
        let album: PhotoAlbum

        func sourceList() async throws -> ListedSource<Photo> {
            ListedSource(try await api.photos())
        }
        func localInventory() async throws -> LocalInventory<Photo> {
            LocalInventory(versions: await album.versions)
        }
        func downloadContent(of photo: Photo) async throws {
            await album.add(try await api.image(of: photo), for: photo)
        }
        func remove(_ keys: Set<Photo.Key>) async throws {
            await album.remove(keys)
        }
    }

    struct PhotoAPI: Sendable {
        struct Page {
            var photos: [Photo]
            var isLast: Bool
            var total: Int
            var cursor: String
        }

        func photos() async throws -> [Photo] { [] }
        func photos(after cursor: String?) async throws -> Page { Page(photos: [], isLast: true, total: 0, cursor: "") }
        func image(of photo: Photo) async throws -> Data { Data() }
    }

    actor PhotoAlbum {
        var versions: [Int: Int] = [:]

        func add(_ image: Data, for photo: Photo) {}
        func remove(_ keys: Set<Int>) {}
    }

    static func lists(api: PhotoAPI, photos: [Photo], response: PhotoAPI.Page) -> [any SourceList] {
        func counted() -> any SourceList {
            let list = ListedSource(photos, expectedCount: response.total)
            return list
        }
        func paged() -> any SourceList {
            let list = PagedSource { (cursor: String?) in
                let page = try await api.photos(after: cursor)
                let end = SourceEnd.complete(count: page.total)
                return PagedSource.Step(
                    page.photos, then: page.isLast ? .end(end) : .page(page.cursor))
            }
            return list
        }
        func fetched(_ photoFetcher: ClosureFetcher<Int, [Photo]>, album: Int) -> any SourceList {
            let list = OriginSource(photoFetcher, param: album)
            return list
        }
        return [counted(), paged(), fetched(ClosureFetcher { _ in [] }, album: 1)]
    }

    static func inventory() -> LocalInventory<Photo> {
        LocalInventory(versions: [1: 7, 2: 4])
    }

    static func passes(api: PhotoAPI, album: PhotoAlbum) async throws {
        let synchronizer = OneWaySynchronizer(
            processor: PhotoProcessor(api: api, album: album))
        let report = try await synchronizer.sync()
        let plan = try await synchronizer.plan()
        for update in plan.updates { print("\(update.item.key): \(update.reason)") }
        for failure in report.failures {
            let number = failure.key.value(as: Int.self)
            print(number as Any)
        }
    }

    static func options() -> SyncOptions {
        var options = SyncOptions()
        options.downloadsPreviews = true
        options.stopsOnError = false
        options.order = .by { (photo: Photo) in photo.revision }
        return options
    }

    static func store(photoListFetcher: ClosureFetcher<Int, [Photo]>, album: Int, photos: Store<Int, Photo>) async throws {
        let processor = StoreSyncProcessor(
            list: OriginSource(photoListFetcher, param: album), store: photos,
            version: { $0.revision })
        try await OneWaySynchronizer(processor: processor).sync()
    }
}

struct FileClient: Sendable {
    struct Response: Sendable {
        var firstByte: Int64
        var entityTag: String?
        var body: AsyncStream<[UInt8]>
    }

    func get(_ path: String, range: ResumePoint?) async throws -> Response {
        Response(firstByte: range?.offset ?? 0, entityTag: nil, body: AsyncStream { $0.finish() })
    }

    func files() async throws -> [ListedFile] { [] }
}

private let client = FileClient()

struct HTTPTransfer: FileTransfer {
    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        // Range: bytes=offset-, If-Range: validator
        let response = try await client.get(file.path, range: part.resumePoint)
        try part.begin(at: response.firstByte, validator: response.entityTag)
        for try await piece in response.body { try part.append(piece) }
    }
}

private func streamed(host: RemoteHost) -> StreamedSource<ListedFile> {
    let list = StreamedSource<ListedFile> {
        let bytes = try await host.bytes(for: Route(path: "/films.ndjson"))
        return ListBytes(bytes, length: bytes.length)
    }
    return list
}

private func mirror(url: URL, api: FileClient, digest: String) async throws {
    let file = ListedFile(
        path: "films/7.mp4", sha256: digest, byteCount: 73_400_320)
    let target = DirectoryTarget(directory: url, transfer: HTTPTransfer()) {
        ListedSource(try await api.files())
    }
    let report = try await OneWaySynchronizer(processor: target).sync()
    let shared = FileModes(files: 0o664, directories: 0o2775)
    print(file, report, shared)
}

private struct ChangesAPI: Sendable {
    func allFiles() async throws -> (files: [ListedFile], token: String) { ([], "1") }
    func changes(since token: String) async throws -> ListChanges<ListedFile>? { nil }
}

private func changing(directory: URL, stateFile: URL, api: ChangesAPI, transfer: HTTPTransfer) -> [any SourceList] {
    let list = DeltaSource(saving: stateFile) {
        let answer = try await api.allFiles()
        return (ListedSource(answer.files), token: answer.token)
    } changes: { token in
        try await api.changes(since: token)
    }
    let target = DirectoryTarget(directory: directory, transfer: transfer) {
        DeltaSource(saving: stateFile) {
            let answer = try await api.allFiles()
            return (ListedSource(answer.files), token: answer.token)
        } changes: { token in
            try await api.changes(since: token)
        }
    }
    print(target.directory)
    return [list]
}

private func rated(client: FileClient, part: FilePart) async throws {
    let response = try await client.get("films/7.mp4", range: nil)
    let rate = try TransferRate(bytesPerSecond: 500_000)
    for try await piece in response.body {
        try await rate.take(piece.count)
        try part.append(piece)
    }
}

private func filtered() -> [FileFilter] {
    let filter = FileFilter(["*.tmp", "/cache/", "!keep.tmp"])
    var layers = MirrorLayers()
    layers.filter = FileFilter(["*.tmp"])
    layers.backup = URL(filePath: "/var/backups/films")
    return [filter, layers.filter]
}

private func keys() {
    let key: PathKey = "films/1927/metropolis.mp4"
    print(key.path)
}
