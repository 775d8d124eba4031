#if os(Linux)
internal import CurlShim
internal import Foundation

/// An exchange on the loop's thread, with the callbacks of libcurl.
final class WireTransfer {
    let ticket: WireMachine.Ticket
    let request: WireRequest
    let exchange: Exchange
    private let source: BodySource?
    /// The loop outlives its transfers.
    private unowned let loop: WireLoop
    private var handle: OpaquePointer?

    private(set) var offersHTTP2: Bool
    /// Whether the exchange was begun again with another protocol.
    private(set) var isRepeated = false
    /// The status of the response, 0 before its head, and whether a part of the response was reported.
    private var status = 0
    var hasHead: Bool { status > 0 }
    private var hasReported = false
    private var isUpgraded = false

    private var headReader: HeadReader
    /// The received head, not yet reported.
    private var head: HTTPResponse?
    private var first = Data()
    private var isUnreported: Bool { head != nil || !first.isEmpty }
    /// Whether the reader is behind; the next chunk pauses libcurl.
    private var isPaused = false
    private var isReceivingPaused = false
    /// The turn of the last chunk, and the chunks and bytes of that turn.
    private var turn = 0
    private var (chunks, bytes) = (0, 0)

    private var isSendingPaused = false
    /// Whether nothing more is to be sent, because the server has refused an upgrade or has ended the connection.
    private var endsSending = false
    private var sent: Int64 = 0
    private(set) var hasSent = false
    /// The failure with which a callback ended the transfer.
    private var failure: TransportFailure?

    init(
        _ ticket: WireMachine.Ticket, _ request: WireRequest, _ exchange: Exchange, loop: WireLoop, mailbox: Mailbox,
        offersHTTP2: Bool
    ) {
        self.ticket = ticket
        self.request = request
        self.exchange = exchange
        headReader = HeadReader(url: request.message.url, offersHTTP2: offersHTTP2)
        self.loop = loop
        self.offersHTTP2 = offersHTTP2
        switch request.message.body {
        case _ where request.socket != nil: source = request.socket.map { BodySource(ticket, mailbox, $0) }
        case .stream(let stream): source = BodySource(ticket, mailbox, stream)
        case .data(let data) where data.count > WireTransfer.copiedBytes || exchange.limits.onSent != nil && !data.isEmpty:
            source = BodySource(data)
        case .none, .data: source = nil
        }
    }

    private static let copiedBytes = 16_384
    /// The maximum number of chunks and bytes of one transfer in one turn; a body of tiny chunks would otherwise delay the others.
    private static let (chunkLimit, byteLimit) = (512, 2 << 20)
    /// The maximum size of chunks that are reported together.
    private static let reportedBytes = 16_384

    // MARK: The loop's side

    /// Begins the exchange, or begins it again; returns libcurl's code, 0 on success.
    func begin(on loop: OpaquePointer, onFreshConnection isFresh: Bool) -> Int32 {
        var callbacks = WireTransfer.callbacks
        guard let handle = wire_transfer_make(loop, &callbacks, Unmanaged.passUnretained(self).toOpaque()) else { return 27 }
        self.handle = handle
        sent = 0
        source?.prepare()
        chooseProxy(handle)
        return withRequest(isFresh) { wire_transfer_begin(handle, $0) }
    }

    /// Prepares the exchange to begin again with another protocol.
    func repeats(offeringHTTP2 isOffered: Bool) {
        (isRepeated, offersHTTP2, status) = (true, isOffered, 0)
        (headReader, head, first) = (HeadReader(url: request.message.url, offersHTTP2: isOffered), nil, Data())
        (isReceivingPaused, isSendingPaused) = (false, false)
    }

    /// Whether the exchange waits for a place or a connection.
    var isWaiting: Bool { handle == nil }

    /// Whether the server has refused the offered protocols in the TLS handshake.
    var isRefusedProtocol: Bool {
        guard let handle else { return false }
        let text = String(cString: wire_transfer_error(handle))
        return text.contains("no application protocol") || text.contains("reason(1120)")
    }

    /// Returns whether the response of the ended exchange was cut, although libcurl reports a success or an empty response.
    func isCut(_ code: Int32) -> Bool {
        guard let handle, failure == nil else { return false }
        // Newer versions report malformed frames.
        if code == 16, hasHead, headReader.isShared { return true }
        return wire_transfer_is_cut(handle, code) != 0
    }

    var isUnprocessed: Bool { !hasHead && handle.map { wire_transfer_is_unprocessed($0) != 0 } ?? false }

    /// Returns whether the connection was shut down because it kept the thread from other exchanges, or because libcurl has met a flood.
    func wasFlooded(_ code: Int32) -> Bool {
        guard code != 0, let handle else { return false }
        if wire_transfer_was_shut(handle) != 0 { return true }
        let text = String(cString: wire_transfer_error(handle))
        // After the head, libcurl only sends responses to frames. A lost connection would give a reason.
        let cannotRespond = code == 55 && text.isEmpty && hasHead && headReader.isShared && !isCut(code)
        return cannotRespond || text.contains("Flooding was detected")
    }

    /// Whether the request may be sent again, because it is repeatable and nothing of its response was reported.
    var mayBeginAgain: Bool { request.message.mayRepeat && !hasReported && !isRepeated && source == nil }

    func failCut() {
        failure = TransportFailure(
            .connectionLost, "the HTTP/2 stream ended before the end of its body; try again, or correct the server")
    }

    private func chooseProxy(_ handle: OpaquePointer) {
        switch request.connection.proxy.choice {
        case .system where request.connection.unixSocketPath == nil: break
        case .none, .system: wire_transfer_use_proxy(handle, "", nil, nil)
        case .server(let server):
            wire_transfer_use_proxy(handle, server.url ?? "", server.credentials?.user, server.credentials?.password)
        }
    }

    /// Whether libcurl used a proxy for the failed exchange.
    private func usedProxy(_ trace: wire_proxy_trace) -> Bool {
        switch request.connection.proxy.choice {
        case .none: return false
        case .system where request.connection.unixSocketPath != nil: return false
        case .server: return true
        // libcurl does not report whether it uses the environment's proxy, but a connection to a proxy has another port.
        case .system:
            let port = request.message.url.port ?? (request.isSecure ? 443 : 80)
            return trace.port != 0 && Int(trace.port) != port
        }
    }

    private func withRequest(_ isFresh: Bool, _ body: (UnsafePointer<wire_request>) -> Int32) -> Int32 {
        var copied = Data()
        var (form, length) = (WIRE_BODY_NONE, Int64(0))
        switch request.message.body {
        case _ where request.socket != nil: (form, length) = (WIRE_BODY_READ, -1)
        case .none: if request.needsLength { form = WIRE_BODY_EMPTY }
        case .data(let data) where data.isEmpty: form = WIRE_BODY_EMPTY
        case .data(let data) where source == nil: (form, length, copied) = (WIRE_BODY_COPIED, Int64(data.count), data)
        case .data(let data): (form, length) = (WIRE_BODY_READ, Int64(data.count))
        case .stream(let stream): (form, length) = (WIRE_BODY_READ, stream.length ?? -1)
        }
        let lines = request.lines + [0]
        return request.url.withCString { url in
            request.message.method.rawValue.withCString { method in
                lines.withUnsafeBytes { lines in
                    copied.withUnsafeBytes { copied in
                        withConnection { unixSocket, tls in
                            guard let fields = lines.bindMemory(to: CChar.self).baseAddress else { return 27 }
                            var wire = wire_request(
                                url: url, method: method, fields: fields, body: form,
                                bytes: copied.bindMemory(to: CChar.self).baseAddress ?? url, length: length,
                                buffer_bytes: request.isStream ? 131_072 : 16_384, offers_http2: offersHTTP2 ? 1 : 0,
                                needs_fresh_connection: isFresh ? 1 : 0, tls: tls, owner: request.connectionOwner,
                                local_port: request.localPort, needs_lookup: loop.hasLookups && request.needsLookup ? 1 : 0,
                                upgrades: request.socket == nil ? 0 : 1, unix_socket: unixSocket)
                            return body(&wire)
                        }
                    }
                }
            }
        }
    }

    private func withConnection(_ body: (_ unixSocket: UnsafePointer<CChar>?, UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        withTLS { tls in
            request.connection.unixSocketPath.map { path in path.withCString { body($0, tls) } } ?? body(nil, tls)
        }
    }

    private func withTLS(_ body: (UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        guard let tls = request.tls else { return body(nil) }
        // Before 7.83.1, libcurl might reuse a connection made with other options (CVE-2022-27782).
        return tls.withWireForm(isAlone: loop.library.build.version < 0x075301, body)
    }

    func refusal(_ code: Int32) -> TransportFailure {
        // 4 and 48: libcurl is built without an option.
        if request.connection.unixSocketPath != nil, request.tls == nil, code == 4 || code == 48 {
            return TransportFailure(.unsupported, "libcurl is built without Unix domain sockets; install a complete libcurl")
        }
        guard request.tls != nil, code == 4 || code == 48 else {
            return TransportFailure(.unsupported, "libcurl refused the request; check the address")
        }
        return TransportFailure(.unsupported, "libcurl is built without a TLS option of the host; install a libcurl with OpenSSL")
    }

    func end(isLate: Bool = false) {
        // First, because libcurl reports that it leaves the socket.
        guard let handle = handle.take() else { return }
        if isLate { wire_transfer_distrust(handle) }
        wire_transfer_end(handle)
    }

    func conclude(_ code: Int32, mayHaveArrived: Bool) {
        // 52: libcurl counts only the bytes after the head of a 101.
        // It reports no failure if a connection ends within a head, or after an interim response.
        let code = head?.status == 101 || code == 52 && isUpgraded ? 0 : code == 0 && !hasHead ? 52 : code
        var failure = code == 0 && self.failure == nil ? nil : explain(code)
        // An unsafe request never begins on a used connection if the library cannot ask, so without a connection nothing was sent.
        let isUnconnected = !hasSent && !request.message.mayRepeat && WireTransfer.unconnected.contains(code)
        failure?.mayHaveArrived = mayHaveArrived && !isUnconnected && code != CURLE_UPLOAD_FAILED.rawValue
        let metrics = failure == nil ? measure() : nil
        end()
        if let metrics {
            _ = exchange.receive(head, first, isComplete: true, metrics)
            (head, first) = (nil, Data())
        } else {
            if isUnreported { deliver() }
            if let failure { exchange.fail(failure) }
        }
    }

    /// libcurl's codes for a proxy or a host that could not be found or reached.
    private static let unconnected: Set<Int32> = [5, 6, 7]

    private func measure() -> ExchangeMetrics? {
        guard let handle else { return nil }
        var raw = wire_metrics()
        wire_transfer_measure(handle, &raw)
        var metrics = ExchangeMetrics(
            version: raw.http_version, connections: raw.connections, nameLookup: raw.name_lookup, connect: raw.connect, secure: raw.secure,
            firstByte: raw.first_byte, total: raw.total)
        let isCopied = if case .data = request.message.body { source == nil } else { false }
        let countsBodies = loop.library.build.version >= UInt32(WIRE_COUNTS_BODIES)
        metrics.sentHeadBytes = ExchangeMetrics.headBytes(
            of: Int64(raw.request), body: raw.sent_body, isCopied: isCopied, countsBodies: countsBodies)
        // libcurl also counts the sizes of the chunks.
        metrics.sentBodyBytes = source == nil ? raw.sent_body : min(raw.sent_body, sent)
        (metrics.receivedHeadBytes, metrics.receivedBodyBytes) = (Int64(raw.received_head), raw.received_body)
        return metrics
    }

    private func explain(_ code: Int32) -> TransportFailure {
        if let failure { return failure }
        if wasFlooded(code) {
            return TransportFailure(
                .protocolViolation, "the server sends frames without content and without a pause; correct the server")
        }
        guard let handle else { return TransportFailure(.engineFailed, "the exchange ended twice; report this defect") }
        if wire_transfer_lacks_names(handle) != 0 { return .certificateOfOtherHost }
        // The server may close the connection before libcurl has read its alert.
        if !hasHead, code == 52 || code == 55 || code == 56, wire_transfer_met_alert(handle) != 0 { return .clientRefused }
        let (text, systemError) = (String(cString: wire_transfer_error(handle)), wire_transfer_system_error(handle))
        if !hasSent {
            var trace = wire_proxy_trace()
            wire_transfer_trace_proxy(handle, &trace)
            let failure = TransportFailure(proxyCode: code, text: text, systemError: systemError, isUsed: usedProxy(trace), trace)
            if let failure { return failure }
        }
        return TransportFailure(
            curlCode: code, text: text, systemError: systemError, verification: wire_transfer_verification(handle), tls: request.tls,
            mayHaveArrived: hasSent)
    }

    func report() {
        if isUnreported, handle != nil { deliver() }
    }

    private func deliver() {
        hasReported = true
        let (head, first) = (head, first)
        self.head = nil
        self.first = Data()
        guard exchange.receive(head, first, isComplete: false), !isPaused else { return }
        isPaused = true
        loop.machine.paused(ticket)
    }

    func resumeReceiving() {
        isPaused = false
        continueReceiving()
    }

    /// Continues after a pause, unless the reader is behind.
    func continueReceiving() {
        if endsSending {
            endsSending = false
            take(.success(nil))
        }
        if status >= 300 { resumeSending() }
        guard isReceivingPaused, !isPaused, let handle else { return }
        isReceivingPaused = false
        wire_transfer_resume(handle, 0, isSendingPaused ? 1 : 0)
    }

    func take(_ piece: Result<Data?, any Error>) {
        source?.take(piece)
        resumeSending()
    }

    private func resumeSending() {
        guard isSendingPaused, let handle else { return }
        isSendingPaused = false
        wire_transfer_resume(handle, isReceivingPaused ? 1 : 0, 0)
    }

    // MARK: Callbacks of libcurl

    private func received(line: UnsafeRawBufferPointer) -> Bool {
        do throws(TransportFailure) {
            guard let head = try headReader.take(line) else { return true }
            self.head = head
            status = head.status
            if headReader.isShared, let handle, !endIsKnown(head) { wire_transfer_watch_end(handle) }
            loop.headArrived(self, isShared: headReader.isShared)
            loop.reportLater(self)
            if request.socket != nil {
                isUpgraded = head.status == 101
                if !isUpgraded { endSending() }
            }
            // After an unrequested 101 nothing is HTTP, and the connection may never end.
            return head.status != 101 || isUpgraded
        } catch {
            failure = error
            return false
        }
    }

    private func received(body: UnsafeRawBufferPointer) -> Int {
        if isPaused || !hasTurn(for: body.count) {
            isReceivingPaused = true
            return Int(WIRE_PAUSE)
        }
        loop.machine.moved(ticket, at: loop.now)
        // The first chunks wait for the end of the turn, because most responses are complete by then.
        if !first.isEmpty, first.count + body.count > WireTransfer.reportedBytes { report() }
        if !isUnreported { loop.reportLater(self) }
        if first.isEmpty { first = Data(body) } else { first.append(contentsOf: body) }
        return body.count
    }

    /// Returns whether the transfer may receive more in this turn; otherwise it continues with the next one.
    private func hasTurn(for count: Int) -> Bool {
        if turn != loop.turn { (turn, chunks, bytes) = (loop.turn, 0, 0) }
        (chunks, bytes) = (chunks + 1, bytes + count)
        guard chunks > WireTransfer.chunkLimit || bytes > WireTransfer.byteLimit else { return true }
        loop.continueLater(self)
        return false
    }

    /// Whether the end of a body is recognizable: by its length, by its coding, or because there is none.
    private func endIsKnown(_ head: HTTPResponse) -> Bool {
        request.message.method == .head || head.status == 204 || head.status == 304 || head.fields["Content-Length"] != nil
            || ContentCoding(of: head.fields.contentCodings) != nil
    }

    /// Ends a request after its response, or after the end of its connection, while the body pauses.
    private func peerEnded() {
        guard handle != nil else { return }
        if isUpgraded { return endSending() }
        // libcurl sends nothing more, but waits while the body pauses. Without the pause, it checks the end of the response. After any other
        // status, the server may still read.
        if isSendingPaused, status >= 300 { loop.continueLater(self) }
    }

    /// Ends the request in the next iteration of the loop, because this runs within a callback of libcurl.
    private func endSending() {
        endsSending = true
        loop.continueLater(self)
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let source else { return 0 }
        switch source.read(into: buffer) {
        case .bytes(let count):
            sent += Int64(count)
            // Frames that are sent do not show that the server is there.
            if isUpgraded { return count }
            loop.machine.moved(ticket, at: loop.now)
            if count > 0 { exchange.sent(sent, of: request.message.body.length) }
            return count
        case .notYet:
            isSendingPaused = true
            return Int(WIRE_PAUSE)
        case .failed(let error):
            failure = error
            return Int(WIRE_ABORT)
        }
    }

    private func seek(to offset: Int64) -> Bool {
        guard source?.rewind(to: offset) ?? (offset == 0) else { return false }
        sent = offset
        return true
    }

    private func willSend(isReused: Bool, isReadable: Bool) -> Bool {
        let isAllowed = loop.machine.willSend(ticket, isReused: isReused, isReadable: isReadable)
        if isAllowed { hasSent = true }
        return isAllowed
    }

    // MARK: C

    private static func of(_ context: UnsafeMutableRawPointer) -> WireTransfer {
        Unmanaged<WireTransfer>.fromOpaque(context).takeUnretainedValue()
    }

    private static var callbacks: wire_callbacks {
        wire_callbacks(
            header: { context, bytes, count in
                WireTransfer.of(context).received(line: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
            },
            body: { context, bytes, count in
                WireTransfer.of(context).received(body: UnsafeRawBufferPointer(start: bytes, count: count))
            },
            read: { context, bytes, count in
                WireTransfer.of(context).read(into: UnsafeMutableRawBufferPointer(start: bytes, count: count))
            },
            seek: { context, offset in
                // 2: the position cannot be changed, which fails the request instead of sending a different body.
                WireTransfer.of(context).seek(to: offset) ? 0 : 2
            },
            will_send: { context, isReused, isReadable in
                WireTransfer.of(context).willSend(isReused: isReused != 0, isReadable: isReadable != 0) ? 0 : 1
            },
            may_connect: { context in
                let transfer = WireTransfer.of(context)
                return transfer.loop.machine.mayConnect(transfer.ticket) ? 1 : 0
            },
            peer_ended: { context in WireTransfer.of(context).peerEnded() })
    }
}
#endif
