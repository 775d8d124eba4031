internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import Synchronization
internal import SyncEngine

extension Experiment {
    static var mirroring: [Experiment] { [mirror, mirrorAgain, mirrorRenames] }

    static let width = 16

    /// Mirrors into a fresh directory in each round. The origin shares the process with both contestants, and so does its work.
    private static let mirror = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror", title: "each of 10 000 files of 4 KB over loopback, 16 wide", unit: .nanoseconds),
            Figure(name: "mirror-cpu", title: "processor time of the same, including the origin's", unit: .nanoseconds),
            Figure(name: "mirror-requests", title: "requests beyond one per file", unit: .count),
        ],
        peers: peers
    ) { scale in
        let files = ListedFiles(count: scale.times(10_000, quick: 1_000))
        let origin = try LoopbackOrigin(files)
        let place = BenchmarkDirectory()
        let bare = BareMirror(session: BareSession(), origin: origin.url)
        let host = RemoteHost(origin)
        return [
            .mutex {
                let path = try place.makeDirectory()
                return try await measure(files, origin) { try await bare.run(into: path, width: width) }
            },
            .storehouse {
                let path = try place.makeDirectory()
                return try await measure(files, origin) { _ = try await synchronizer(host, path).sync() }
            },
        ]
    }

    private static let mirrorAgain = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror-again", title: "the same again without changes, all 10 000", unit: .nanoseconds),
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
            .storehouse {
                origin.forget()
                let watch = Stopwatch()
                try await synchronizer(host, path).sync()
                return [watch.nanoseconds, Double(origin.requests.count)]
            }
        ]
    }

    /// Each round renames the files that the round before has renamed back.
    private static let mirrorRenames = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror-renames", title: "300 of 10 000 files renamed", unit: .nanoseconds),
            Figure(name: "mirror-renames-requests", title: "files requested for that", unit: .count),
        ]
    ) { scale in
        let files = ListedFiles(count: scale.times(10_000, quick: 1_000))
        let renamed = files.renamed(300)
        let lists = [renamed, files.files].map { LoopbackOrigin.Response.json($0) }
        let passes = Mutex(0)
        let origin = try LoopbackOrigin(files) { passes.withLock { lists[$0 % 2] } }
        let place = BenchmarkDirectory()
        let path = try place.makeDirectory()
        let host = RemoteHost(origin)
        passes.withLock { $0 = 1 }
        try await synchronizer(host, path).sync()
        return [
            .storehouse {
                passes.withLock { $0 += 1 }
                origin.forget()
                let watch = Stopwatch()
                try await synchronizer(host, path).sync()
                return [watch.nanoseconds, Double(origin.requests.count - 1)]
            }
        ]
    }

    /// Fetches each file once with other programs, for at most a minute.
    @Sendable private static func peers(_ scale: Scale) async throws -> [Peer] {
        let files = ListedFiles(count: scale.times(10_000, quick: 1_000))
        let origin = try LoopbackOrigin(files)
        defer { origin.stop() }
        let place = BenchmarkDirectory()
        let addresses = try place.makeDirectory() + "addresses"
        try files.files.map { origin.url.absoluteString + "/" + $0.path + "\n" }.joined().write(
            toFile: addresses, atomically: true, encoding: .utf8)
        let curl = addresses + ".curl"
        try files.files.map { "url = \(origin.url.absoluteString)/\($0.path)\noutput = \($0.path)\n" }.joined()
            .write(toFile: curl, atomically: true, encoding: .utf8)
        let perFile = Double(files.files.count)
        let fetches = [
            ("curl -Z", ["curl"], "exec timeout 60 curl -sZ --parallel-max 16 --create-dirs -K \"$1.curl\""),
            ("aria2c", ["aria2c"], "exec timeout 60 aria2c -q -j 16 -i \"$1\""),
            ("wget2", ["wget2"], "exec timeout 60 wget2 -q --max-threads=16 -x -i \"$1\""),
            ("rclone", ["rclone"], "exec timeout 60 rclone copy --transfers 16 --checkers 16 --http-url \"$2\" :http: ."),
        ]
        var peers: [Peer] = []
        for (name, programs, script) in fetches {
            let arguments = [addresses, origin.url.absoluteString + "/", try place.makeDirectory()]
            if let peer = try await Peer.time("mirror", name, needs: programs + ["timeout"], "cd \"$3\" && " + script, arguments) {
                peers.append(Peer(figure: peer.figure, name: peer.name, nanoseconds: peer.nanoseconds / perFile))
            }
        }
        return peers
    }

    /// Reads the list as `mirror` does.
    static func synchronizer(
        _ host: RemoteHost, _ path: String
    ) -> OneWaySynchronizer<DirectoryTarget<StreamedSource<ListedFile>, HostTransfer>> {
        let target = DirectoryTarget(directory: URL(filePath: path, directoryHint: .isDirectory), transfer: HostTransfer(host: host)) {
            StreamedSource<ListedFile> {
                let bytes = try await host.bytes(for: Route(path: "/list.json"))
                return ListBytes(bytes, length: bytes.length)
            }
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
    /// Serves the list and each file by its path, as cheaply as possible, because every figure includes that cost.
    convenience init(_ files: ListedFiles, list: (@Sendable () -> Response)? = nil) throws {
        let whole = Response.json(files.files)
        let contents = files.contents.mapValues { Response.data($0).tagged() }
        // Pages of links serve the programs that find files by links.
        let pages = Dictionary(grouping: files.files.map { $0.path.split(separator: "/", maxSplits: 1) }, by: { "/\($0[0])/" })
            .mapValues { Response.html($0.map { "<a href=\"\($0[1])\">\($0[1])</a>" }.joined(separator: "\n")) }
        let root = Response.html(pages.keys.sorted().map { "<a href=\"\($0.dropFirst())\">\($0)</a>" }.joined(separator: "\n"))
        try self.init { request in
            if request.path == "/list.json" { return list?() ?? whole }
            return contents[request.path] ?? (request.path == "/" ? root : pages[request.path]) ?? .notFound(for: request)
        }
    }
}

extension RemoteHost {
    fileprivate init(_ origin: LoopbackOrigin) { self.init(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port))) }
}
