#if os(Linux)
internal import CurlShim
package import Foundation

/// A content coding that the transport decodes if the system has its library.
package enum ContentCoding: String, CaseIterable, Sendable {
    /// RFC 1952, with zlib.
    case gzip
    /// RFC 7932, with libbrotlidec.
    case br
    /// RFC 8878, with libzstd, in windows of at most 8 MiB (RFC 9659).
    case zstd

    /// Returns the coding of a body with these codings; `nil` if the transport does not know it.
    init?(of codings: [String]) {
        guard codings.count == 1, let name = codings.first else { return nil }
        self.init(rawValue: name == "x-gzip" ? "gzip" : name)
    }

    package var isAvailable: Bool { wire_inflater_is_available(rawValue) != 0 }

    /// The value of `Accept-Encoding`: the available codings, or `identity` if there is none.
    package static let offer: String = {
        let names = ContentCoding.allCases.filter(\.isAvailable).map(\.rawValue)
        return names.isEmpty ? "identity" : names.joined(separator: ", ")
    }()
}

/// A decoder of all members of a body with a content coding, with a library of the process or a loaded one.
///
/// libcurl accepts a truncated gzip stream, so its own decoding stays off.
package final class Inflater {
    private let coding: ContentCoding
    private let inflater: OpaquePointer
    private(set) var decodedBytes = 0
    private var input = Data()
    private var scratch = [UInt8](repeating: 0, count: 65_536)
    /// Whether the input so far is empty or ends with a complete member.
    private var isAtEnd = true
    /// Whether the library filled the scratch buffer and may have more output without further input.
    private var mayHoldMore = false

    package init?(_ coding: ContentCoding) {
        guard let inflater = wire_inflater_make(coding.rawValue) else { return nil }
        self.coding = coding
        self.inflater = inflater
    }

    deinit { wire_inflater_free(inflater) }

    package func push(_ data: Data) {
        if input.isEmpty { input = data } else { input.append(data) }
    }

    /// Decodes the next bytes, at most 64 KiB; `nil` if more input is needed.
    package func next() throws(TransportFailure) -> Data? {
        while !input.isEmpty || mayHoldMore {
            let (made, result) = step()
            guard result >= 0 else {
                throw TransportFailure(
                    .protocolViolation, "the body is declared as \(coding.rawValue) but is not valid \(coding.rawValue); check the server")
            }
            isAtEnd = result == 1
            mayHoldMore = !isAtEnd && made == scratch.count
            decodedBytes += made
            if isAtEnd { wire_inflater_reset(inflater) }
            if made > 0 { return Data(scratch[..<made]) }
        }
        return nil
    }

    /// Marks the input as complete; throws if the last member is truncated.
    package func finish() throws(TransportFailure) {
        guard isAtEnd else {
            throw TransportFailure(.protocolViolation, "the \(coding.rawValue) body is truncated; check the server")
        }
    }

    private func step() -> (made: Int, result: Int32) {
        var (taken, made) = (input.count, scratch.count)
        let result = input.withUnsafeBytes { source in
            scratch.withUnsafeMutableBufferPointer { target in
                // The scratch buffer is never empty, and the library reads no input if its count is zero.
                guard let out = target.baseAddress else { return Int32(-1) }
                return wire_inflater_run(inflater, source.bindMemory(to: UInt8.self).baseAddress ?? UnsafePointer(out), &taken, out, &made)
            }
        }
        input = taken == input.count ? Data() : input.dropFirst(taken)
        return (made, result)
    }
}
#endif
