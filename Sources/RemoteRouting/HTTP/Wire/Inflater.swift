#if os(Linux)
internal import CurlShim
package import Foundation

/// A decoder of all members of a gzip stream (RFC 1952), with the process's zlib or a loaded one.
///
/// libcurl accepts a truncated gzip stream, so its own decoding stays off.
package final class Inflater {
    /// Whether the system has zlib; without it, requests accept only `identity`.
    package static var isAvailable: Bool { wire_inflater_is_available() != 0 }

    private let inflater: OpaquePointer
    private var input = Data()
    private var scratch = [UInt8](repeating: 0, count: 65_536)
    /// Whether the input so far is empty or ends with a complete member.
    private var isAtEnd = true
    /// Whether zlib filled the scratch buffer and may have more output without further input.
    private var mayHoldMore = false

    /// Creates a decoder; `nil` without zlib.
    package init?() {
        guard let inflater = wire_inflater_make() else { return nil }
        self.inflater = inflater
    }

    deinit { wire_inflater_free(inflater) }

    /// Adds encoded bytes, which `next()` decodes.
    package func push(_ data: Data) {
        if input.isEmpty { input = data } else { input.append(data) }
    }

    /// Decodes the next bytes, at most 64 KiB; `nil` if more input is needed.
    package func next() throws(TransportFailure) -> Data? {
        while !input.isEmpty || mayHoldMore {
            let (made, result) = step()
            guard result >= 0 else {
                throw TransportFailure(.protocolViolation, "the body is declared as gzip but is not valid gzip; check the server")
            }
            isAtEnd = result == 1
            mayHoldMore = !isAtEnd && made == scratch.count
            if isAtEnd { wire_inflater_reset(inflater) }
            if made > 0 { return Data(scratch[..<made]) }
        }
        return nil
    }

    /// Marks the input as complete.
    ///
    /// - Throws: `TransportFailure` if the last member is truncated.
    package func finish() throws(TransportFailure) {
        guard isAtEnd else {
            throw TransportFailure(.protocolViolation, "the gzip body is truncated; check the server")
        }
    }

    private func step() -> (made: Int, result: Int32) {
        var (taken, made) = (input.count, scratch.count)
        let result = input.withUnsafeBytes { source in
            scratch.withUnsafeMutableBufferPointer { target in
                // The scratch buffer is never empty, and zlib reads no input if its count is zero.
                guard let out = target.baseAddress else { return Int32(-1) }
                return wire_inflater_run(inflater, source.bindMemory(to: UInt8.self).baseAddress ?? UnsafePointer(out), &taken, out, &made)
            }
        }
        input = taken == input.count ? Data() : input.dropFirst(taken)
        return (made, result)
    }
}
#endif
