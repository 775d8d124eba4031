internal import Foundation
internal import StoreCore
internal import Wire

/// Decodes a body on its reader's side, so that no source has to wait for it and a reader that stops stops the work.
final class BodyDecoder: Sendable {
    #if os(Linux)
    private struct State {
        let inflater: Inflater
        /// How many bytes were decoded.
        var made = 0
    }

    private let limit: Int
    /// Guards the decoder. A body has one reader at a time, so no reader waits here for another.
    private let state: Lock<State>

    private init?(limit: Int) {
        guard let inflater = Inflater() else { return nil }
        self.limit = limit
        state = Lock(State(inflater: inflater))
    }

    /// The decoder for a body; `nil` where it is not encoded.
    ///
    /// - Throws: `TransportFailure` where the body has a coding that no request asks for.
    static func decoder(for head: HTTPResponse, limit: Int) throws(TransportFailure) -> BodyDecoder? {
        guard let coding = head.fields["Content-Encoding"]?.lowercased(), !coding.isEmpty, coding != "identity" else { return nil }
        guard coding == "gzip" || coding == "x-gzip", let decoder = BodyDecoder(limit: limit) else {
            throw TransportFailure(
                .protocolViolation, "the answer has a content coding that the request has not asked for; look at the server")
        }
        return decoder
    }

    /// How many bytes were decoded so far.
    var decodedBytes: Int64 { Int64(state.withLock(\.made)) }

    func push(_ data: Data) { state.withLock { $0.inflater.push(data) } }

    /// The next decoded bytes; `nil` where more input is needed.
    func next() throws(TransportFailure) -> Data? {
        let step: Result<Data?, TransportFailure> = state.withLock { state in
            do throws(WireFailure) {
                guard let data = try state.inflater.next() else { return .success(nil) }
                state.made += data.count
                return state.made <= limit ? .success(data) : .failure(.tooLarge(limit))
            } catch {
                return .failure(TransportFailure(error))
            }
        }
        return try step.get()
    }

    /// The input is complete.
    func finish() throws(TransportFailure) {
        let failure: TransportFailure? = state.withLock { state in
            do throws(WireFailure) {
                try state.inflater.finish()
                return nil
            } catch {
                return TransportFailure(error)
            }
        }
        if let failure { throw failure }
    }

    func decodeAll(_ data: Data) throws(TransportFailure) -> Data {
        push(data)
        var whole = Data()
        while let piece = try next() { whole.append(piece) }
        try finish()
        return whole
    }
    #else
    /// Elsewhere the system decodes.
    static func decoder(for head: HTTPResponse, limit: Int) throws(TransportFailure) -> BodyDecoder? { nil }

    var decodedBytes: Int64 { 0 }
    func push(_ data: Data) {}
    func next() throws(TransportFailure) -> Data? { nil }
    func finish() throws(TransportFailure) {}
    func decodeAll(_ data: Data) throws(TransportFailure) -> Data { data }
    #endif
}

extension TransportFailure {
    /// The body has more bytes than the limits allow.
    static func tooLarge(_ limits: ExchangeLimits) -> TransportFailure { tooLarge(limits.bodyBytes) }

    static func tooLarge(_ limit: Int) -> TransportFailure {
        TransportFailure(.bodyTooLarge, "the answer has more than \(limit) bytes; stream or download it, or raise responseBytes")
    }
}
