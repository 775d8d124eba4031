internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import SyncEngine

extension Experiment {
    static var mirroring: [Experiment] { [mirror, mirrorAgain] }

    private static let width = 16

    /// Each round into a fresh directory. The origin shares the process with both, and so does its work.
    private static let mirror = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror", title: "each of 10 000 files of 4 KB over loopback, 16 wide", unit: .nanoseconds),
            Figure(name: "mirror-cpu", title: "processor time of the same, the origin's included", unit: .nanoseconds),
            Figure(name: "mirror-requests", title: "requests beyond one for each file", unit: .count),
        ]
    ) { scale in
        let files = ListedFiles(count: scale.times(10_000, quick: 1_000))
        let origin = try LoopbackOrigin(files)
        let place = BenchmarkDirectory()
        let bare = BareMirror(session: BareSession(), origin: origin.url)
        let host = RemoteHost(origin)
        return [
            (
                .mutex,
                {
                    let path = try place.makeDirectory()
                    return try await measure(files, origin) { try await bare.run(into: path, width: width) }
                }
            ),
            (
                .storehouse,
                {
                    let path = try place.makeDirectory()
                    return try await measure(files, origin) { _ = try await synchronizer(host, path).sync() }
                }
            ),
        ]
    }

    private static let mirrorAgain = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror-again", title: "the same again with nothing to do, all 10 000", unit: .nanoseconds),
            Figure(name: "mirror-again-requests", title: "requests for that", unit: .count),
        ]
    ) { scale in
        let files = ListedFiles(count: scale.times(10_000, quick: 1_000))
        let origin = try LoopbackOrigin(files)
        let place = BenchmarkDirectory()
        let path = try place.makeDirectory()
        let host = RemoteHost(origin)
        try await synchronizer(host, path).sync()
        return [
            (
                .storehouse,
                {
                    defer { withExtendedLifetime(place) {} }
                    origin.forget()
                    let watch = Stopwatch()
                    try await synchronizer(host, path).sync()
                    return [watch.nanoseconds, Double(origin.requests.count)]
                }
            )
        ]
    }

    private static func synchronizer(
        _ host: RemoteHost, _ path: String
    ) -> OneWaySynchronizer<DirectoryTarget<ListedSource<ListedFile>, HostTransfer>> {
        let transfer = HostTransfer(host: host)
        let target = DirectoryTarget(directory: URL(filePath: path, directoryHint: .isDirectory), transfer: transfer) {
            try await transfer.list()
        }
        return OneWaySynchronizer(processor: target, options: SyncOptions(concurrency: width))
    }

    private static func measure(_ files: ListedFiles, _ origin: LoopbackOrigin, _ body: () async throws -> Void) async throws -> [Double] {
        origin.forget()
        let count = Double(files.files.count)
        let (watch, processor) = (Stopwatch(), processTime())
        try await body()
        return [watch.nanoseconds / count, (processTime() - processor) / count, Double(origin.requests.count) - count]
    }
}

extension LoopbackOrigin {
    /// Gives the list, and each file by its path; as cheap as it gets, since what it costs is in every figure.
    fileprivate convenience init(_ files: ListedFiles) throws {
        let list = Response.json(files.files)
        let contents = files.contents.mapValues { Response.data($0).tagged() }
        try self.init { request in request.path == "/list.json" ? list : contents[request.path] ?? .notFound(for: request) }
    }
}

extension RemoteHost {
    fileprivate init(_ origin: LoopbackOrigin) {
        self.init(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)))
    }
}
