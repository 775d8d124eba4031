internal import Foundation
internal import StoreCore

/// A decoder that works only when the reader requests bytes, so that the source never waits and an idle reader causes no work.
final class BodyDecoder: Sendable {
    #if os(Linux)
    private let limit: Int
    /// The lock is uncontended, because a body has one reader at a time.
    private let inflater: Lock<Inflater>

    private init?(_ coding: ContentCoding, limit: Int) {
        guard let inflater = Inflater(coding) else { return nil }
        self.limit = limit
        self.inflater = Lock(inflater)
    }

    /// Returns the decoder for a body; `nil` if the body is not encoded. Throws if its coding cannot be decoded.
    static func decoder(for head: HTTPResponse, limit: Int) throws(TransportFailure) -> BodyDecoder? {
        let codings = head.fields.contentCodings
        if codings.isEmpty { return nil }
        guard let coding = ContentCoding(of: codings), let decoder = BodyDecoder(coding, limit: limit) else {
            throw TransportFailure(
                .protocolViolation, "the response has a content coding that cannot be decoded; request another one, or check the server")
        }
        return decoder
    }

    var decodedBytes: Int64 { inflater.withLock { Int64($0.decodedBytes) } }

    func push(_ data: Data) { inflater.withLock { $0.push(data) } }

    func next() throws(TransportFailure) -> Data? {
        try inflater.withLock { inflater throws(TransportFailure) -> Data? in
            guard let data = try inflater.next() else { return nil }
            guard inflater.decodedBytes <= limit else { throw TransportFailure.tooLarge(limit) }
            return data
        }
    }

    /// Marks the input as complete; throws if the encoded body is truncated.
    func finish() throws(TransportFailure) {
        try inflater.withLock { inflater throws(TransportFailure) in try inflater.finish() }
    }

    func decodeAll(_ data: Data) throws(TransportFailure) -> Data {
        push(data)
        var whole = Data()
        while let piece = try next() { whole.append(piece) }
        try finish()
        return whole
    }
    #else
    /// Returns `nil`, because other platforms decode bodies themselves.
    static func decoder(for head: HTTPResponse, limit: Int) throws(TransportFailure) -> BodyDecoder? { nil }

    var decodedBytes: Int64 { 0 }
    func push(_ data: Data) {}
    func next() throws(TransportFailure) -> Data? { nil }
    func finish() throws(TransportFailure) {}
    func decodeAll(_ data: Data) throws(TransportFailure) -> Data { data }
    #endif
}

extension HTTPFields {
    /// The codings of a body in their order, in lower case (RFC 9110 §8.4).
    ///
    /// Ignores names that are not content codings. Servers copy them from a request, or write the coding of text or of a transfer.
    package var contentCodings: [String] {
        // Most responses have none.
        guard let field = self["Content-Encoding"] else { return [] }
        return field.lowercased().split(separator: ",").map(\.withoutBlanksAtEnds).filter { HTTPFields.codings.contains($0) }
    }

    /// The registered content codings, except `identity` (RFC 9110 §18.6).
    private static let codings: Set<String> = [
        "gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "dcb", "dcz", "aes128gcm", "exi", "pack200-gzip",
    ]
}
