import Foundation
import RemoteRouting
import StoreCore
import SyncEngine

/// The remote side: the manifest and the files it names, over HTTP.
struct Origin: FileTransfer {
    let manifest: URL
    let retries: Int

    /// Up to this size a file comes in one piece; a larger one is worth resuming.
    private static let resumableSize: Int64 = 256 * 1024

    func list() -> StreamedSource<ListedFile> {
        StreamedSource { key in
            Show.complain("the manifest has the key “\(key)”, which mirror does not read; see mirror --help")
        } _: {
            let (host, path) = try reach(manifest)
            let bytes = try await host.bytes(for: Route(path: path))
            return ListBytes(bytes, length: bytes.length)
        }
    }

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        guard let url = URL(string: file.url ?? file.path, relativeTo: manifest) else {
            throw Options.Mistake(description: "“\(file.url ?? file.path)” is no address")
        }
        let (host, path) = try reach(url.absoluteURL)
        if let size = file.byteCount, size <= Self.resumableSize { return try part.append(try await host.data(for: Route(path: path))) }
        // The download keeps its own part beside the file, continues where that stopped, and hashes the bytes as they arrive. The target
        // checks size and digest.
        try await host.download(Route(path: path), to: try part.workingFile()) { progress in
            SyncProgress.reached(progress.bytes)
        } onDigest: { digest in
            part.adoptWorkingFile(sha256: digest)
        }
    }

    private func reach(_ url: URL) throws -> (RemoteHost, RoutePath) {
        guard let name = url.host(), let scheme = url.scheme else { throw Options.Mistake(description: "\(url): no address") }
        guard url.query() == nil else { throw Options.Mistake(description: "\(url): addresses with a query are not supported") }
        let path: RoutePath = "/\(segments: url.path(percentEncoded: false).split(separator: "/").map(String.init))"
        let host = RemoteHost(HostConfiguration(name, scheme: scheme == "http" ? .http : .https, port: url.port))
        return (host.with { $0.retry = .exponential(attempts: retries + 1) }, path)
    }
}
