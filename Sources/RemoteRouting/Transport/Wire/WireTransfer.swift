#if os(Linux)
internal import CurlShim
internal import Foundation

/// An exchange on the loop's thread, with the callbacks of libcurl.
final class WireTransfer {
    let ticket: WireMachine.Ticket
    let receiver: any WireReceiver
    private let request: WireRequest
    private let source: BodySource?
    /// The loop outlives its transfers.
    private unowned let loop: WireLoop
    private var handle: OpaquePointer?

    private var headReader = HeadReader()
    /// The received head, not yet reported to the receiver.
    private var head: WireHead?
    private var first = Data()
    private var isUnreported = false
    /// Whether the reader is behind; the next chunk pauses libcurl.
    private var isPaused = false
    private var isReceivingPaused = false

    private var isSendingPaused = false
    private var sent: Int64 = 0
    private(set) var hasSent = false
    /// The failure with which a callback ended the transfer.
    private var failure: WireFailure?

    init(_ ticket: WireMachine.Ticket, _ request: WireRequest, _ receiver: any WireReceiver, loop: WireLoop, mailbox: Mailbox) {
        self.ticket = ticket
        self.request = request
        self.receiver = receiver
        self.loop = loop
        switch request.body {
        case .stream(let length, let open): source = BodySource(ticket, mailbox, length: length, open: open)
        case .bytes(let data) where data.count > WireTransfer.copiedBytes || request.reportsProgress: source = BodySource(data)
        case .none, .empty, .bytes: source = nil
        }
    }

    /// The maximum size of a copied body.
    private static let copiedBytes = 16_384

    // MARK: The loop's side

    /// Begins the exchange, or begins it again; returns libcurl's code, 0 on success.
    func begin(on loop: OpaquePointer, onFreshConnection isFresh: Bool, certificates: String?) -> Int32 {
        var callbacks = WireTransfer.callbacks
        guard let handle = wire_transfer_make(loop, &callbacks, Unmanaged.passUnretained(self).toOpaque()) else { return 27 }
        self.handle = handle
        sent = 0
        source?.prepare()
        chooseConnection(handle)
        return withRequest(isFresh, certificates) { wire_transfer_begin(handle, $0) }
    }

    private func chooseConnection(_ handle: OpaquePointer) {
        let build = self.loop.library.build
        if request.allowsHTTP2, build.mayOfferHTTP2(isSecure: request.isSecure, isStream: request.isStream) {
            wire_transfer_offer_http2(handle)
        }
        switch request.proxy {
        case .system: break
        case .none: wire_transfer_use_proxy(handle, "", nil, nil)
        case .server(let server) where server.user.isEmpty: wire_transfer_use_proxy(handle, server.url, nil, nil)
        case .server(let server): wire_transfer_use_proxy(handle, server.url, server.user, server.password)
        }
    }

    /// Collects libcurl's information about the proxy of the failed exchange.
    private func traceProxy(_ handle: OpaquePointer) -> WireProxy.Trace {
        var raw = wire_proxy_trace()
        wire_transfer_trace_proxy(handle, &raw)
        let isUsed: Bool
        switch request.proxy {
        case .none: isUsed = false
        case .server: isUsed = true
        // libcurl does not report whether it uses the environment's proxy, but a connection to a proxy has another port.
        case .system:
            let port = URL(string: request.url).flatMap { $0.port } ?? (request.isSecure ? 443 : 80)
            isUsed = raw.port != 0 && Int(raw.port) != port
        }
        return WireProxy.Trace(isUsed: isUsed, status: raw.status, reason: raw.reason)
    }

    private func withRequest(_ isFresh: Bool, _ certificates: String?, _ body: (UnsafePointer<wire_request>) -> Int32) -> Int32 {
        var copied = Data()
        var (form, length) = (WIRE_BODY_NONE, Int64(0))
        switch request.body {
        case .none: break
        case .empty: form = WIRE_BODY_EMPTY
        case .bytes(let data) where source == nil: (form, length, copied) = (WIRE_BODY_COPIED, Int64(data.count), data)
        case .bytes(let data): (form, length) = (WIRE_BODY_READ, Int64(data.count))
        case .stream(let known, _): (form, length) = (WIRE_BODY_READ, known ?? -1)
        }
        let lines = request.lines + [0]
        return request.url.withCString { url in
            request.method.withCString { method in
                lines.withUnsafeBytes { lines in
                    copied.withUnsafeBytes { copied in
                        withTLS(certificates) { certificates, tls in
                            guard let fields = lines.bindMemory(to: CChar.self).baseAddress else { return 27 }
                            var wire = wire_request(
                                url: url, method: method, fields: fields, body: form,
                                bytes: copied.bindMemory(to: CChar.self).baseAddress ?? url, length: length,
                                buffer_bytes: request.isStream ? 131_072 : 16_384, needs_fresh_connection: isFresh ? 1 : 0,
                                certificates: certificates, tls: tls, owner: request.connectionOwner, local_port: request.localPort)
                            return body(&wire)
                        }
                    }
                }
            }
        }
    }

    private func withTLS(_ path: String?, _ body: (UnsafePointer<CChar>?, UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        withTLS { tls in
            guard let path else { return body(nil, tls) }
            return path.withCString { body($0, tls) }
        }
    }

    private func withTLS(_ body: (UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        guard let tls = request.tls else { return body(nil) }
        return tls.withWireForm(isAlone: WireTLS.mayMixConnections(version: loop.library.build.version), body)
    }

    /// The failure of a request that libcurl refuses.
    func refusal(_ code: Int32) -> WireFailure {
        // 4 and 48: libcurl is built without an option.
        guard request.tls != nil, code == 4 || code == 48 else {
            return WireFailure(.invalidRequest, "libcurl refused the request; check the address")
        }
        return WireFailure(.invalidRequest, "libcurl is built without a TLS option of the host; install a libcurl with OpenSSL")
    }

    /// Retires the connection of a late exchange if nothing has arrived on it since the request was sent.
    func distrustConnection() {
        if let handle { wire_transfer_distrust(handle) }
    }

    /// Ends the exchange on the wire.
    func end() {
        if let handle { wire_transfer_end(handle) }
        handle = nil
    }

    /// Reports the rest of the response and its end.
    func conclude(_ code: Int32, mayHaveArrived: Bool) {
        var failure = code == 0 && self.failure == nil ? nil : explain(code, hasSent)
        // An unsafe request never begins on a used connection if the library cannot ask, so without a connection nothing was sent.
        let isUnconnected = !hasSent && !request.mayRepeat && WireTransfer.unconnected.contains(code)
        failure?.mayHaveArrived = mayHaveArrived && !isUnconnected
        let metrics = failure == nil ? measure() : nil
        end()
        isUnreported = false
        if let metrics {
            receiver.completed(head, first, metrics)
            (head, first) = (nil, Data())
        } else {
            if head != nil || !first.isEmpty { deliver() }
            if let failure { receiver.failed(failure) }
        }
    }

    /// libcurl's codes for a proxy or a host that could not be found or reached.
    private static let unconnected: Set<Int32> = [5, 6, 7]

    private func measure() -> WireMetrics? {
        guard let handle else { return nil }
        var raw = wire_metrics()
        wire_transfer_measure(handle, &raw)
        let isCopied = if case .bytes = request.body { source == nil } else { false }
        return WireMetrics(
            marks: WireMetrics.Marks(
                nameLookup: raw.name_lookup, connect: raw.connect, secure: raw.secure, firstByte: raw.first_byte, total: raw.total),
            connections: raw.connections, version: raw.http_version,
            sentHeadBytes: WireMetrics.headBytes(
                of: Int64(raw.request), body: raw.sent_body, isCopied: isCopied, countsBodies: loop.countsBodies),
            sentBodyBytes: raw.sent_body, receivedHeadBytes: Int64(raw.received_head), receivedBodyBytes: raw.received_body)
    }

    private func explain(_ code: Int32, _ mayHaveArrived: Bool) -> WireFailure {
        if var failure {
            failure.mayHaveArrived = mayHaveArrived
            return failure
        }
        guard let handle else { return WireFailure(.engineFailed, "the exchange ended twice") }
        let (text, systemError) = (String(cString: wire_transfer_error(handle)), wire_transfer_system_error(handle))
        if !mayHaveArrived, let failure = WireFailure(proxyCode: code, text: text, systemError: systemError, traceProxy(handle)) {
            return failure
        }
        return WireFailure(
            curlCode: code, text: text, systemError: systemError, verification: wire_transfer_verification(handle), tls: request.tls,
            mayHaveArrived: mayHaveArrived)
    }

    /// Passes the parts received in this turn to the receiver.
    func report() {
        guard isUnreported, handle != nil else { return }
        isUnreported = false
        deliver()
    }

    private func deliver() {
        let (head, first) = (head, first)
        self.head = nil
        self.first = Data()
        guard receiver.received(head, first, isComplete: false) == .pauses, !isPaused else { return }
        isPaused = true
        loop.paused(self)
    }

    func resumeReceiving() {
        isPaused = false
        guard isReceivingPaused, let handle else { return }
        isReceivingPaused = false
        wire_transfer_resume(handle, 0, isSendingPaused ? 1 : 0)
    }

    /// Receives a chunk of the request body.
    func take(_ piece: Result<Data?, any Error>) {
        source?.take(piece)
        guard isSendingPaused, let handle else { return }
        isSendingPaused = false
        wire_transfer_resume(handle, isReceivingPaused ? 1 : 0, 0)
    }

    // MARK: Callbacks of libcurl

    private func received(line: UnsafeRawBufferPointer) -> Bool {
        do throws(WireFailure) {
            guard let head = try headReader.take(line) else { return true }
            self.head = head
            loop.headArrived(self, isShared: headReader.isShared)
            delayReport()
        } catch {
            failure = error
            return false
        }
        return true
    }

    private func received(body: UnsafeRawBufferPointer) -> Int {
        if isPaused {
            isReceivingPaused = true
            return Int(WIRE_PAUSE)
        }
        loop.moved(self)
        // The first chunk waits for the end of the turn, because most responses are complete by then.
        if isUnreported, first.isEmpty {
            first = Data(body)
        } else {
            if isUnreported { report() }
            first = Data(body)
            deliver()
        }
        return body.count
    }

    private func delayReport() {
        isUnreported = true
        loop.reportLater(self)
    }

    private func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let source else { return 0 }
        switch source.read(into: buffer) {
        case .bytes(let count):
            sent += Int64(count)
            loop.moved(self)
            if count > 0 { receiver.sent(sent) }
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

    private func mayConnect() -> Bool { loop.mayConnect(self) }

    private func willSend(isReused: Bool, isReadable: Bool) -> Bool {
        let isAllowed = loop.willSend(self, isReused: isReused, isReadable: isReadable)
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
            may_connect: { context in WireTransfer.of(context).mayConnect() ? 1 : 0 })
    }
}
#endif
