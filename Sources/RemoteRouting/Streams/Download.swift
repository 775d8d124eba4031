public import Foundation
internal import StoreCore

extension RemoteHost {
    /// Downloads into a file, and goes on where an earlier download of the same version broke off.
    ///
    /// ```swift
    /// try await api.download(Route(path: "/films/7.mp4"), to: url, sha256: digest) { print($0.fraction ?? 0) }
    /// ```
    ///
    /// The bytes go to `.NAME.part` beside the target, which takes the target's name in one step once it is whole: whoever opens the
    /// target has the old file or the new one. What broke off is resumed, within a call and by the next one, where the server gave a
    /// strong validator (RFC 9110 §14, §13.1.5); otherwise it begins again. Memory stays constant. The overall deadline of the host
    /// counts for each attempt up to the head; after that only standing still ends it.
    ///
    /// - Parameters:
    ///   - route: What to download; a GET.
    ///   - target: The file; its directory must exist.
    ///   - sha256: The digest that the file must have, as 64 hexadecimal digits; a file with another one is thrown away.
    ///   - onProgress: Called from any thread with how many bytes are there, those of earlier downloads included.
    ///   - onDigest: Called once with the file's SHA-256 digest, as 64 hexadecimal digits, when the file has its name. The bytes are hashed
    ///     as they arrive; only bytes of an earlier download are read. Without it and `sha256` nothing is hashed.
    /// - Returns: The target, with the last head.
    /// - Throws: ``RemoteError``.
    @discardableResult
    public func download(
        _ route: some Routable, to target: URL, sha256: String? = nil,
        onProgress: @escaping @Sendable (TransferProgress) -> Void = { _ in },
        onDigest: (@Sendable (String) -> Void)? = nil
    ) async throws -> RemoteResponse<URL> {
        try await Download(host: self, target: target, digest: sha256?.lowercased(), onDigest: onDigest, onProgress: onProgress).run(route)
    }
}

/// One download under way.
private struct Download: Sendable {
    let host: RemoteHost
    let target: URL
    let digest: String?
    let onDigest: (@Sendable (String) -> Void)?
    let onProgress: @Sendable (TransferProgress) -> Void

    private var directory: Directory { Directory(path: target.deletingLastPathComponent().path) }
    private var partName: String { ".\(target.lastPathComponent).part" }
    private var stateName: String { ".\(target.lastPathComponent).part.json" }

    /// Off the caller's actor, since it writes to the disk.
    @concurrent
    func run(_ route: some Routable) async throws -> RemoteResponse<URL> {
        let plain = try RouteCall(route, at: host, .stream())
        if let digest, digest.utf8.count != 64 || !digest.utf8.allSatisfy(\.isHexDigit) {
            throw plain.error(
                for: RouteFault(.invalidOption, in: "sha256", "it is no digest of 64 hexadecimal digits; check where it comes from"),
                plain.request)
        }
        guard target.isFileURL, route.method == .get else {
            throw plain.error(.build, .unsupported, plain.request, "only a GET can be downloaded, and only into a file")
        }
        do {
            return try await attempts(plain)
        } catch let error as StoreError {
            throw plain.error(.transport, .fileFailed, plain.request, error.message, underlyingError: error)
        }
    }

    private func attempts(_ plain: RouteCall) async throws -> RemoteResponse<URL> {
        let file = try PartialFile(at: directory.path(of: partName), isHashed: digest != nil || onDigest != nil)
        let limit = plain.options.timeouts.overall ?? host.timeouts.overall
        var attempt = 1
        var wantsWhole = false
        while true {
            let before = try file.length()
            do {
                guard var response = try await once(plain, into: file, wantsWhole: wantsWhole) else {
                    // What was there is of no use; asking for the whole cannot be answered like this again.
                    wantsWhole = true
                    continue
                }
                response.attempts = attempt
                return response
            } catch var error as RemoteError {
                error.attempts = attempt
                // An attempt that brought something is not counted: a long download may break off often.
                if try file.length() > before { attempt = 0 }
                let unit = host.random()
                let now = host.time.now
                let decision = RetryDecision(policy: host.retry, deadline: limit.map { now.advanced(by: $0) })
                guard let delay = decision.delay(after: error, attempt: max(1, attempt), now: now, unit: unit) else { throw error }
                do {
                    try await host.time.sleep(until: host.time.now.advanced(by: delay))
                } catch {
                    throw plain.error(for: error, plain.request)
                }
                attempt += 1
            }
        }
    }

    /// One attempt; `nil` where what is there must be thrown away first.
    private func once(_ plain: RouteCall, into file: PartialFile, wantsWhole: Bool) async throws -> RemoteResponse<URL>? {
        let known = try wantsWhole ? nil : state(for: plain.request)
        if known == nil { try file.empty() }
        let there = try file.length()
        let offset = known != nil && there > 0 ? there : nil
        // Attempts are counted above, where it is known what they brought.
        let single = host.with { $0.retry = .never }
        let call = try RouteCall(repeating: plain, at: single, .stream(), accepting: offset == nil ? nil : 416) {
            fields throws(RouteFault) in
            // Parts of what is packed cannot be put together.
            try fields.set("Accept-Encoding", "identity")
            if let offset, let known {
                try fields.set("Range", "bytes=\(offset)-")
                try fields.set("If-Range", known.validator)
            }
        }
        let response = try await call.run()
        switch DownloadDecision.decide(status: response.status, fields: response.fields, offset: offset, known: known) {
        case .restart(let total):
            try file.empty()
            try remember(response.fields, plain.request, total: total)
            try await write(call, response, to: file, from: 0, total: total)
        case .append(let total):
            try await write(call, response, to: file, from: offset ?? 0, total: total)
        case .complete:
            break
        case .askAgain:
            return nil
        case .refuse(let message):
            // The server would answer the same question in the same way; the next call asks for the whole.
            try directory.remove(stateName)
            throw call.error(
                .transport, .wrongRange, call.sentRequest, "\(message); nothing was written", status: response.status,
                fields: response.fields)
        }
        let found = try check(file, call, response)
        try file.commit(as: target.path)
        try directory.remove(stateName)
        if let onDigest, let found { onDigest(found) }
        return response.map(target)
    }

    private func write(
        _ call: RouteCall, _ response: RemoteResponse<HTTPResponse.Body>, to file: PartialFile, from start: Int64, total: Int64?
    ) async throws {
        var offset = start
        onProgress(TransferProgress(bytes: offset, total: total))
        do {
            for try await piece in response.value {
                try piece.withUnsafeBytes { bytes in try file.write(bytes, at: offset) }
                offset += Int64(piece.count)
                onProgress(TransferProgress(bytes: offset, total: total))
            }
        } catch let error as StoreError {
            throw error
        } catch {
            throw call.error(for: error, call.sentRequest)
        }
        if let total, offset != total {
            throw call.error(
                .transport, offset < total ? .connectionLost : .wrongRange, call.sentRequest, "\(offset) bytes came of \(total)",
                status: response.status, fields: response.fields)
        }
    }

    /// The digest of the file; `nil` if no caller needs it.
    private func check(_ file: PartialFile, _ call: RouteCall, _ response: RemoteResponse<HTTPResponse.Body>) throws -> String? {
        guard digest != nil || onDigest != nil else { return nil }
        let found = try file.digest().hex
        guard let digest, found != digest else { return found }
        try file.empty()
        try directory.remove(stateName)
        throw call.error(
            .decode, .wrongDigest, call.sentRequest, "the file has the digest \(found) and was to have \(digest); it was thrown away",
            status: response.status, fields: response.fields)
    }

    // MARK: What is known of the part that is there

    private func state(for request: HTTPRequest) throws -> DownloadState? {
        guard let file = try OpenFile(reading: directory.path(of: stateName)) else { return nil }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = try bytes.withUnsafeMutableBytes { try file.read(into: $0) }
        // Of no interest why it cannot be read: the download then begins again.
        let state = try? JSONDecoder().decode(DownloadState.self, from: Data(bytes.prefix(count)))
        guard let state, state.address == request.url.absoluteString, DownloadDecision.isStrong(state.validator, now: host.time.date) else {
            return nil
        }
        return state
    }

    private func remember(_ fields: HTTPFields, _ request: HTTPRequest, total: Int64?) throws {
        guard !DownloadDecision.isPacked(fields), let validator = DownloadDecision.strongValidator(of: fields, now: host.time.date)
        else {
            try directory.remove(stateName)
            return
        }
        let state = DownloadState(address: request.url.absoluteString, validator: validator, total: total)
        try AtomicFile.write([UInt8](try JSONEncoder().encode(state)), as: stateName, in: directory, kind: "download")
    }
}
