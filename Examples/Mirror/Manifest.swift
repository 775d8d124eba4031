import Foundation
import RemoteRouting
import StoreCore
import SyncEngine

/// The remote side: the manifest and its files over HTTP.
struct Origin: FileTransfer {
    let manifest: URL
    let retries: Int

    /// Files up to this size are requested at once; larger ones are worth resuming.
    private static let resumableSize: Int64 = 256 * 1024

    func list() -> StreamedSource<ListedFile> {
        StreamedSource { key in
            Show.complain("the manifest has the unknown key “\(key)”; see mirror --help")
        } _: {
            let (host, path) = try reach(manifest)
            let bytes = try await host.bytes(for: Route(path: path))
            return ListBytes(bytes, length: bytes.length)
        }
    }

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        let (host, path) = try reach(file)
        if let size = file.byteCount, size <= Self.resumableSize { return try part.append(try await host.data(for: Route(path: path))) }
        // The download keeps its own part beside the file, resumes from it, and hashes the bytes as they arrive. The target checks size and
        // digest.
        try await host.download(Route(path: path), to: try part.workingFile()) { progress in
            SyncProgress.reached(progress.bytes)
        } onDigest: { digest in
            part.adoptWorkingFile(sha256: digest)
        }
    }

    private func reach(_ file: ListedFile) throws -> (RemoteHost, RoutePath) {
        // A path is not a URL: its “%”, “?” and “#” are ordinary characters.
        guard let address = file.url else { return try reach(manifest.deletingLastPathComponent(), below: file.path) }
        guard let url = URL(string: address, relativeTo: manifest) else {
            throw Options.Mistake(description: "“\(address)” is not a valid URL")
        }
        return try reach(url.absoluteURL)
    }

    private func reach(_ url: URL, below path: String = "") throws -> (RemoteHost, RoutePath) {
        guard let name = url.host(), let scheme = url.scheme else {
            throw Options.Mistake(description: "\(url): a URL needs a scheme and a host")
        }
        guard url.query() == nil else { throw Options.Mistake(description: "\(url): URLs with a query are not supported") }
        let names = try Self.segments(of: url.path()).map { name in
            guard let text = name.removingPercentEncoding else { throw Options.Mistake(description: "\(url): the path is not valid UTF-8") }
            return text
        }
        let path: RoutePath = "/\(segments: names + Self.segments(of: path))"
        let host = RemoteHost(HostConfiguration(name, scheme: scheme == "http" ? .http : .https, port: url.port))
        return (host.with { $0.retry = .exponential(attempts: retries + 1) }, path)
    }

    /// The segments of a path, split by bytes, because a slash and a combining accent after it form one character.
    private static func segments(of path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
    }
}
