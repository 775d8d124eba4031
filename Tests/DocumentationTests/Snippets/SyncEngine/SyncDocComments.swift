internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import SyncEngine

// The examples of SyncEngine's doc comments, compiled.

private enum Photos {
    //: SyncItem.swift

    //: SyncProcessor.swift

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
            //: ListedSource.swift
            return list
        }
        func paged() -> any SourceList {
            //: PagedSource.swift
            return list
        }
        func fetched(_ photoFetcher: ClosureFetcher<Int, [Photo]>, album: Int) -> any SourceList {
            //: OriginSource.swift
            return list
        }
        return [counted(), paged(), fetched(ClosureFetcher { _ in [] }, album: 1)]
    }

    static func inventory() -> LocalInventory<Photo> {
        //: LocalInventory.swift
    }

    static func passes(api: PhotoAPI, album: PhotoAlbum) async throws {
        //: OneWaySynchronizer.swift
        //: SyncPlan.swift
        for failure in report.failures {
            //: SyncFailure.swift
            print(number as Any)
        }
    }

    static func options() -> SyncOptions {
        //: SyncOptions.swift: var options = SyncOptions
        //: SyncOptions.swift: options.order
        return options
    }

    static func store(photoListFetcher: ClosureFetcher<Int, [Photo]>, album: Int, photos: Store<Int, Photo>) async throws {
        //: SyncEngine.docc/GettingStarted.md: let processor
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

//: FileTransfer.swift

private func streamed(host: RemoteHost) -> StreamedSource<ListedFile> {
    //: StreamedSource.swift
    return list
}

private func mirror(url: URL, api: FileClient, digest: String) async throws {
    //: ListedFile.swift
    //: DirectoryTarget.swift
    //: FileModes.swift
    print(file, report, shared)
}

private struct ChangesAPI: Sendable {
    func allFiles() async throws -> (files: [ListedFile], token: String) { ([], "1") }
    func changes(since token: String) async throws -> ListChanges<ListedFile>? { nil }
}

private func changing(directory: URL, stateFile: URL, api: ChangesAPI, transfer: HTTPTransfer) -> [any SourceList] {
    //: DeltaSource.swift
    //: ChangesSinceAToken.md
    print(target.directory)
    return [list]
}

private func rated(client: FileClient, part: FilePart) async throws {
    let response = try await client.get("films/7.mp4", range: nil)
    //: LimitsBackupsAndChecks.md: let rate = try
}

private func filtered() -> [FileFilter] {
    //: FileFilter.swift
    //: MirrorLayers.swift
    return [filter, layers.filter]
}

private func keys() {
    //: PathKey.swift
}
