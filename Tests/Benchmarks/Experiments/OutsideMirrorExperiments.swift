internal import Foundation
internal import RemoteRouting
internal import SyncEngine

#if os(macOS) || os(Linux)

/// Mirrors of an origin in another process, compared with programs that do the same.
extension Experiment {
    static var outsideMirrors: [Experiment] {
        [smallFiles, unchanged(10_000, "mirror-unchanged"), unchanged(100_000, "mirror-unchanged-100k"), bigFile]
    }

    /// Compares with rclone, which neither verifies digests nor synchronizes the files to disk. Each has a process of its own, so that
    /// neither has memory, threads, or connections of earlier rows.
    private static let smallFiles = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror-outside", title: "each of 10 000 files of 4 KB, 16 wide, compared with rclone", unit: .nanoseconds),
            Figure(name: "mirror-outside-cpu", title: "processor time of the same", unit: .nanoseconds),
        ]
    ) { scale in
        let count = scale.times(10_000, quick: 1_000)
        let origin = try OriginProcess(.files(count))
        let place = BenchmarkDirectory()
        var contestants: [Entrant] = [
            .storehouse {
                let arguments = [MirrorCommand.argument, origin.url.absoluteString, try place.makeDirectory()]
                return Array(try ranOutside(count, "/proc/self/exe", arguments).prefix(2))
            }
        ]
        if let rclone = program("rclone") {
            contestants.append(
                .floor {
                    let options = [
                        "copy", "--config", "", "--transfers", "16", "--checkers", "16", "--http-url", origin.url.absoluteString + "/",
                    ]
                    return Array(try ranOutside(count, rclone, options + [":http:", try place.makeDirectory()]).prefix(2))
                })
        }
        return contestants
    }

    /// Compares with rsync, which compares two directories on one disk. The mirror reads the list from an origin in another process.
    private static func unchanged(_ count: Int, _ name: String) -> Experiment {
        Experiment(
            section: .sync,
            figures: [
                Figure(name: name, title: "all of \(count) unchanged files, compared with rsync", unit: .nanoseconds),
                Figure(name: name + "-cpu", title: "processor time of the same", unit: .nanoseconds),
            ],
            rounds: count > 10_000 ? 3 : 11
        ) { scale in
            let count = scale.times(count, quick: count / 10)
            let origin = try OriginProcess(.files(count))
            let place = BenchmarkDirectory()
            let (mirrored, copied) = (try place.makeDirectory(), try place.makeDirectory())
            try ListedFiles.write(count, into: mirrored)
            // The first pass takes over the files that have the listed content.
            let arguments = [MirrorCommand.argument, origin.url.absoluteString, mirrored]
            _ = try ranOutside(1, "/proc/self/exe", arguments)
            var contestants: [Entrant] = [
                .storehouse {
                    defer { withExtendedLifetime(origin) {} }
                    return Array(try ranOutside(1, "/proc/self/exe", arguments).prefix(2))
                }
            ]
            if let rsync = program("rsync") {
                let arguments = ["-a", "--exclude=/.storehouse", mirrored + "/", copied]
                _ = try ranOutside(1, rsync, arguments)
                contestants.append(.floor { Array(try ranOutside(1, rsync, arguments).prefix(2)) })
            } else {
                write("benchmarks: \(name) is compared with nothing, because rsync is not installed\n", to: .errors)
            }
            return contestants
        }
    }

    /// Both contestants receive, write, and hash the file concurrently.
    private static let bigFile = Experiment(
        section: .sync,
        figures: [
            Figure(name: "mirror-big", title: "one file of 2 GB, compared with curl and sha256sum", unit: .nanoseconds),
            Figure(name: "mirror-big-cpu", title: "processor time of the same", unit: .nanoseconds),
        ],
        rounds: 3
    ) { scale in
        let size = scale.times(2_048, quick: 256)
        let origin = try OriginProcess(.big(mebibytes: size))
        let place = BenchmarkDirectory()
        let host = host(of: origin.url)
        let file = ListedFile(path: "big", sha256: OriginCommand.digest(ofBig: size), byteCount: Int64(size) << 20)
        var contestants: [Entrant] = [
            .storehouse {
                defer { withExtendedLifetime(origin) {} }
                let path = try place.makeDirectory()
                defer { place.remove(path) }
                let transfer = HostTransfer(host: host)
                let target = DirectoryTarget(directory: URL(filePath: path, directoryHint: .isDirectory), transfer: transfer) {
                    ListedSource([file])
                }
                return try await spent(1) { try await OneWaySynchronizer(processor: target).sync() }
            }
        ]
        if program("curl") != nil, program("sha256sum") != nil {
            contestants.append(
                .floor {
                    let path = try place.makeDirectory()
                    defer { place.remove(path) }
                    let script = "cd \"$1\" && curl -sf \"$2\" | tee big | sha256sum | grep -q \"$3\""
                    let arguments = [path, origin.url.appending(path: "big").absoluteString, file.sha256 ?? ""]
                    return Array(try ranOutside(1, "/bin/sh", ["-c", script, "sh"] + arguments).prefix(2))
                })
        }
        return contestants
    }

    fileprivate static func host(of origin: URL) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: origin.port))
    }

    private static func program(_ name: String) -> String? {
        ["/usr/bin/", "/usr/local/bin/"].map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Measures wall time and this process's processor time per item.
    private static func spent(_ count: Int, _ body: () async throws -> Void) async throws -> [Double] {
        let (watch, before) = (Stopwatch(), processTime())
        try await body()
        return [watch.nanoseconds / Double(count), (processTime() - before) / Double(count)]
    }
}

/// A mirror of the files of an origin, in a process of its own.
struct MirrorCommand {
    static let argument = "--mirror"

    let origin: URL
    let path: String

    init?(_ arguments: some Collection<String>) {
        guard let origin = arguments.first.flatMap({ URL(string: $0) }), let path = arguments.dropFirst().first else { return nil }
        (self.origin, self.path) = (origin, path)
    }

    func run() async throws { try await Experiment.synchronizer(Experiment.host(of: origin), path).sync() }
}

#endif
