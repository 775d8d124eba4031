public import Foundation
internal import RemoteHTTP
internal import StoreCore
internal import StoreFiles
internal import StorePlatform

extension RemoteHost {
    /// Downloads into a file, resuming an interrupted download of the same version.
    ///
    /// ```swift
    /// try await api.download(Route(path: "/films/7.mp4"), to: url, sha256: digest) {
    ///     print($0.fraction ?? 0)
    /// }
    /// ```
    ///
    /// The bytes go to `.NAME.part` beside the target, where a digest stands for a name of more than 244 bytes. The complete file replaces
    /// the target in one step, so a reader sees either the old file or the new one. An interrupted download resumes, within the call or in
    /// a later one, if the server sent a strong validator (RFC 9110 §14, §13.1.5). Otherwise it starts over. Memory use is constant. The
    /// overall deadline of the host limits each attempt up to the response head. After the head, only the idle deadline applies.
    ///
    /// - Parameters:
    ///   - route: The route to download; a GET.
    ///   - target: The file; its directory must exist.
    ///   - sha256: The expected digest as 64 hexadecimal digits; a file with a different digest is discarded.
    ///   - onProgress: Called from any thread with the number of bytes in the file, including those of earlier downloads.
    ///   - onDigest: Called once with the file's SHA-256 digest, as 64 hexadecimal digits, after the file is in place. The bytes are hashed
    ///     as they arrive; only bytes of an earlier download are read from disk. Without `onDigest` and `sha256`, nothing is hashed.
    /// - Returns: The target, with the last response head.
    /// - Throws: ``RemoteError``. Canceling the task ends the download; a later call can resume it.
    @discardableResult
    public func download(
        _ route: some Routable, to target: URL, sha256: String? = nil,
        onProgress: @escaping @Sendable (TransferProgress) -> Void = { _ in },
        onDigest: (@Sendable (String) -> Void)? = nil
    ) async throws -> RemoteResponse<URL> {
        try await Download(host: self, target: target, digest: sha256?.lowercased(), onDigest: onDigest, onProgress: onProgress).run(route)
    }
}

private struct Download: Sendable {
    let host: RemoteHost
    let target: URL
    let digest: String?
    let onDigest: (@Sendable (String) -> Void)?
    let onProgress: @Sendable (TransferProgress) -> Void

    private var directory: Directory { Directory(path: target.deletingLastPathComponent().path) }
    /// The digest takes the place of a name that leaves no room for both endings, because the name of a file has at most 255 bytes.
    private var partName: String {
        let name = target.lastPathComponent
        let isLong = name.utf8.count > 255 - "..part.state".utf8.count
        return ".\(isLong ? SHA256.digest(of: [UInt8](name.utf8)).hex : name).part"
    }

    /// Runs off the caller's actor, because it writes to the disk.
    @concurrent
    func run(_ route: some Routable) async throws -> RemoteResponse<URL> {
        let plain = try RouteCall(route, at: host, .stream())
        if let digest, digest.utf8.count != 64 || !digest.utf8.allSatisfy({ $0.hexValue != nil }) {
            throw plain.error(
                for: RouteFault(.invalidOption, in: "sha256", "it does not consist of 64 hexadecimal digits; pass a SHA-256 digest"),
                plain.request)
        }
        guard target.isFileURL, route.method == .get else {
            throw plain.error(
                .build, .unsupported, plain.request, "a download needs a GET route and a file URL; change the route or the target")
        }
        do {
            return try await attempts(plain)
        } catch let error as StoreError {
            throw plain.error(.transport, .fileFailed, plain.request, error.message, underlyingError: error)
        }
    }

    private func attempts(_ plain: RouteCall) async throws -> RemoteResponse<URL> {
        guard let folder = try DirectoryHandle(opening: directory) else {
            throw StoreError.fileSystem("opening directory", path: directory.path, errno: ENOENT)
        }
        var part = try PartialFile.locked(partName, note: partName + ".state", in: folder, isHashed: digest != nil || onDigest != nil)
        // A child process that was forked a moment ago may still hold the descriptor. Closing only this copy would keep the file locked.
        defer { part.file.unlock() }
        let limit = plain.options.timeouts.overall ?? host.timeouts.overall
        var (attempt, shortParts) = (1, 0)
        while true {
            let before = part.length
            do {
                if var response = try await once(plain, into: &part, in: folder) {
                    response.attempts = attempt
                    return response
                }
                let received = part.length - before
                if received > 0 {
                    if received < 4_096 { shortParts += 1 }
                    guard shortParts < 100 else {
                        throw plain.error(
                            .transport, .wrongRange, plain.request,
                            "the server sent 100 parts of less than 4 096 bytes; check the server, then download again to continue")
                    }
                    attempt = 1
                }
            } catch var error as RemoteError {
                let count = max(error.attempts, attempt)
                // Attempts that receive bytes do not count, because a long download may be interrupted often.
                if part.length > before { attempt = 0 }
                let now = host.time.now
                let deadline = limit.map { now.advanced(by: $0) }
                guard let delay = host.delay(after: error, attempt: max(1, attempt), at: now, until: deadline) else {
                    error.attempts = count
                    throw error
                }
                do {
                    try await host.time.sleep(until: host.time.now.advanced(by: delay))
                } catch {
                    throw plain.error(for: error, plain.request)
                }
                attempt += 1
            }
        }
    }

    /// Makes one attempt; returns `nil` if a part was appended that may not be the last, or if the whole file must be requested.
    private func once(
        _ plain: RouteCall, into part: inout PartialFile, in folder: DirectoryHandle
    ) async throws -> RemoteResponse<URL>? {
        let known = try part.note(DownloadState.self).flatMap { state in
            state.mayResume(from: plain.request.url.absoluteString) && DownloadDecision.isStrong(state.validator, now: host.time.date)
                ? state : nil
        }
        if known == nil { try part.restart() }
        let offset = part.length > 0 ? Int64(part.length) : nil
        // The caller of this function counts attempts, because it knows which of them received bytes.
        let call = try RouteCall(repeating: plain, lasts: false, accepting: offset == nil ? [] : [416]) {
            fields throws(RouteFault) in
            // Parts of a compressed representation cannot be joined.
            try fields.set("Accept-Encoding", "identity")
            if let offset, let known {
                try fields.set("Range", "bytes=\(offset)-")
                try fields.set("If-Range", known.validator)
            }
        }
        let response = try await call.run()
        switch DownloadDecision.decide(status: response.status, fields: response.fields, offset: offset, known: known) {
        case .restart(let total):
            try part.restart()
            if !DownloadDecision.isPacked(response.fields),
                let validator = DownloadDecision.strongValidator(of: response.fields, now: host.time.date)
            {
                try part.remember(DownloadState(address: plain.request.url.absoluteString, validator: validator, total: total))
            }
            try await write(call, response, to: &part, end: total, total: total)
        case .append(let end, let total):
            try await write(call, response, to: &part, end: end, total: total)
            // A server may send less than the rest of the file (RFC 9110 §15.3.7). Without the total, the digest may prove the end.
            if end != total {
                guard let digest, try part.digest().hex == digest else { return nil }
            }
        case .complete:
            break
        case .askAgain:
            // The next request is for the whole file, because the note is removed.
            try part.forget()
            return nil
        case .refuse(let message):
            // The server would repeat its response to the same range, so the next call requests the whole file.
            try part.forget()
            throw call.error(
                .transport, .wrongRange, call.sentRequest, "\(message); nothing was written; download again to start over",
                status: response.status, fields: response.fields)
        }
        let found = try check(&part, call, response)
        try part.file.synchronize()
        try folder.rename(partName, to: folder, as: target.lastPathComponent)
        try part.forget()
        if let onDigest, let found { onDigest(found) }
        return response.map(target)
    }

    private func write(
        _ call: RouteCall, _ response: RemoteResponse<HTTPResponse.Body>, to part: inout PartialFile, end: Int64?, total: Int64?
    ) async throws {
        onProgress(TransferProgress(bytes: Int64(part.length), total: total))
        do {
            for try await piece in response.value {
                if let end, Int64(part.length) + Int64(piece.count) > end {
                    // The surplus would count as bytes of the file, so the next call requests the whole file.
                    try part.restart()
                    throw call.error(
                        .transport, .wrongRange, call.sentRequest, "received more than the first \(end) bytes; download again",
                        status: response.status, fields: response.fields)
                }
                try piece.withUnsafeBytes { bytes in try part.append(bytes) }
                onProgress(TransferProgress(bytes: Int64(part.length), total: total))
            }
        } catch let error as StoreError {
            throw error
        } catch {
            throw call.error(for: error, call.sentRequest)
        }
        let offset = Int64(part.length)
        if let end, offset < end {
            throw call.error(
                .transport, .connectionLost, call.sentRequest, "received \(offset) of \(end) bytes; download again",
                status: response.status, fields: response.fields)
        }
    }

    /// Returns the digest of the file after comparing it with the expected one; `nil` if no digest is needed.
    private func check(
        _ part: inout PartialFile, _ call: RouteCall, _ response: RemoteResponse<HTTPResponse.Body>
    ) throws -> String? {
        guard digest != nil || onDigest != nil else { return nil }
        let found = try part.digest().hex
        guard let digest, found != digest else { return found }
        try part.restart()
        throw call.error(
            .decode, .wrongDigest, call.sentRequest,
            "the file has the digest \(found) instead of \(digest), and was discarded; check the digest, then download again",
            status: response.status, fields: response.fields)
    }
}
