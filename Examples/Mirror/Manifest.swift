import Foundation
import RemoteRouting
import StoreCore
import SyncEngine

/// A file of a manifest.
struct ManifestFile: FileItem, Codable {
    var path: String
    var size: Int64?
    var sha256: String?
    /// What tells a change where there is no digest.
    var tag: String?
    var url: String?

    private enum CodingKeys: String, CodingKey {
        case path, size, sha256, url
        case tag = "version"
    }

    var key: String { path }
    var version: String { tag ?? sha256 ?? "" }
    var byteCount: Int64? { size }
}

/// The remote side: the manifest and the files it names, over HTTP.
struct Origin: FileTransfer {
    let manifest: URL
    let retries: Int

    /// Up to this size a file comes in one piece; what is larger is worth to go on with where it broke off.
    private static let resumableSize: Int64 = 256 * 1024

    func list() async throws -> ListedSource<ManifestFile> {
        let (host, path) = try reach(manifest)
        return ListedSource(try Self.read(try await host.data(for: Route(path: path))))
    }

    /// An array, or one object on each line; a last line without its end was cut off.
    static func read(_ data: Data) throws -> [ManifestFile] {
        let files: [ManifestFile]
        do {
            files = try decode(data)
        } catch let error as DecodingError {
            throw Options.Mistake(description: "the manifest is no list of files, see mirror --help; nothing was changed: \(error)")
        }
        if let file = files.first(where: { $0.version.isEmpty }) {
            throw Options.Mistake(description: "the manifest says neither sha256 nor version of “\(file.path)”; nothing was changed")
        }
        return files
    }

    private static func decode(_ data: Data) throws -> [ManifestFile] {
        let decoder = JSONDecoder()
        if data.first(where: { $0 > 0x20 }) == UInt8(ascii: "[") {
            return try decoder.decode([ManifestFile].self, from: data)
        } else {
            guard data.isEmpty || data.last == UInt8(ascii: "\n") else {
                throw Options.Mistake(description: "the manifest's last line has no end: it was cut off; nothing was changed")
            }
            return try data.split(separator: UInt8(ascii: "\n")).map { try decoder.decode(ManifestFile.self, from: $0) }
        }
    }

    func transfer(_ file: ManifestFile, into part: FilePart) async throws {
        guard let url = URL(string: file.url ?? file.path, relativeTo: manifest) else {
            throw Options.Mistake(description: "“\(file.url ?? file.path)” is no address")
        }
        let (host, path) = try reach(url.absoluteURL)
        if let size = file.size, size <= Self.resumableSize { return try part.append(try await host.data(for: Route(path: path))) }
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
