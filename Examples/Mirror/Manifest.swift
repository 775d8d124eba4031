import Foundation
import RemoteHTTP
import RemoteRouting
import StoreCore
import SyncEngine

/// The remote side: the manifest and its files over HTTP.
struct Origin: FileTransfer {
    let manifest: URL
    let retries: Int
    var rate: TransferRate?
    /// Fields of requests to the origin of the manifest.
    var fields: [(name: String, value: String)] = []

    /// Files up to this size are requested at once; larger ones are worth resuming.
    private static let resumableSize: Int64 = 256 * 1024

    func list() -> StreamedSource<ListedFile> {
        StreamedSource { key in
            Show.complain("the manifest has the unknown key “\(key)”; see mirror --help")
        } _: {
            let (host, route) = try reach(manifest.absoluteString)
            let bytes = try await host.bytes(for: route)
            return ListBytes(bytes, length: bytes.length)
        }
    }

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        let (host, route) = try reach(file.url ?? Self.address(of: file.path))
        if let rate { return try await stream(host, route, into: part, canResume: file.byteCount != nil, rate) }
        if let size = file.byteCount, size <= Self.resumableSize { return try part.append(try await host.data(for: route)) }
        // The download keeps its own part beside the file, resumes from it, and hashes the bytes as they arrive. The target checks size and
        // digest.
        try await host.download(route, to: try part.workingFile()) { progress in
            SyncProgress.reached(progress.bytes)
        } onDigest: { digest in
            part.adoptWorkingFile(sha256: digest)
        }
    }

    /// Downloads a file piece by piece, each as soon as the rate allows it.
    private func stream(_ host: RemoteHost, _ whole: Route, into part: FilePart, canResume: Bool, _ rate: TransferRate) async throws {
        var route = whole
        let point = canResume ? part.resumePoint : nil
        if let point {
            route.headers.append("Range", "bytes=\(point.offset)-")
            route.headers.append("If-Range", point.validator)
        }
        let bytes = try await host.bytes(for: route)
        let (isPartial, stated) = (bytes.response.status == 206, bytes.response.fields["ETag"])
        if isPartial, bytes.response.fields["Content-Range"]?.hasPrefix("bytes \(point?.offset ?? 0)-") != true {
            throw Options.Mistake(description: "the server sent another part of the file than was requested")
        }
        // A server that ignores `If-Range` sends the rest of a file that has changed.
        if isPartial, let point, let stated, stated != point.validator {
            return try await stream(host, whole, into: part, canResume: false, rate)
        }
        // A weak validator does not prove that the bytes are the same (RFC 9110 §8.8.1).
        let tag = stated.flatMap { $0.hasPrefix("W/") ? nil : $0 }
        try part.begin(at: isPartial ? point?.offset ?? 0 : 0, validator: tag)
        for try await piece in bytes {
            try await rate.take(piece.count)
            try part.append(piece)
        }
    }

    /// Resolves an address of the manifest (RFC 3986 §5.2), and returns its host and the route that requests it as it is.
    private func reach(_ address: String) throws -> (RemoteHost, Route) {
        guard !address.isEmpty, !address.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { throw Self.invalid(address) }
        // The route escapes the address later, byte by byte. Foundation would escape existing escapes again if it has an illegal character.
        var reference = URIReference(address)
        // Both spellings of a dot are equal (RFC 3986 §6.2.2.2).
        reference.path = reference.path.replacing("%2e", with: ".").replacing("%2E", with: ".")
        guard let resolved = reference.resolved(against: URIReference(manifest.absoluteString)), let scheme = resolved.scheme?.lowercased(),
            ["http", "https"].contains(scheme), let authority = resolved.authority, let base = URL(string: "\(scheme)://\(authority)/"),
            let name = base.host()
        else { throw Self.invalid(address) }
        var route = Route(path: "/")
        do { route.options.target = .page(try OriginReference(chosen: resolved)) } catch { throw Self.invalid(address) }
        // Another host must not see the secrets of this one.
        if let own = manifest.scheme?.lowercased(), scheme == own, base.host() == manifest.host(), base.port == manifest.port {
            for field in fields { route.headers.append(field.name, field.value) }
        }
        let host = RemoteHost(HostConfiguration(name, scheme: scheme == "http" ? .http : .https, port: base.port))
        return (host.with { $0.retry = .exponential(attempts: retries + 1) }, route)
    }

    private static func invalid(_ address: String) -> Options.Mistake {
        Options.Mistake(description: "“\(address)” is not an http or https URL")
    }

    /// The address of a file that the manifest gives none: a path is not a URL, so its “%”, “?” and “#” are ordinary characters.
    private static func address(of path: String) -> String {
        // Encoded by bytes, because a slash and a combining accent after it form one character. The first part could look like a scheme.
        "./"
            + path.utf8.map { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/"):
                    String(Unicode.Scalar(byte))
                default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
                }
            }.joined()
    }
}
