internal import Foundation
internal import StoreCore
internal import Wire

extension RouteSending {
    /// An error about a request, and about its answer where there is one.
    func error(
        _ stage: RemoteError.Stage, _ code: RemoteError.Code, _ request: HTTPRequest, _ message: String, _ head: HTTPHead? = nil,
        underlyingError: (any Error)? = nil
    ) -> RemoteError {
        let operation = "\(request.method.rawValue) \(request.url.withoutSecrets)"
        var error = RemoteError(stage, code, operation: operation, message, underlyingError: underlyingError)
        error.status = head?.status
        if let head { error.fields = head.fields }
        // Both: a redirect may have made a GET of a POST, and an interceptor a POST of a GET.
        error.mayRepeat = self.request.mayRepeat && request.mayRepeat
        return error
    }

    /// The error for what was thrown below; one that is of ours already stays as it is.
    func error(for thrown: any Error, _ request: HTTPRequest, or code: RemoteError.Code? = nil) -> RemoteError {
        // A refresh may have been given up by whoever makes it; that is no cancellation of this call.
        let isOwn = code != .refreshFailed || Task.isCancelled
        switch thrown {
        case let known as RemoteError where code != .refreshFailed || known.stage == .cancelled && isOwn:
            return known
        case is CancellationError where isOwn:
            return error(.cancelled, .cancelled, request, "the task was cancelled")
        case let fault as RouteFault:
            return error(.build, .invalidRoute, request, fault.refusal, underlyingError: fault)
        case let field as InvalidField where code != .interceptorFailed:
            return self.error(for: RouteFault(field), request)
        case let failure as TransportFailure:
            return error(failure.code.stage, failure.code, request, failure.message, underlyingError: failure.underlyingError ?? failure)
        default:
            break
        }
        switch code {
        case .refreshFailed:
            var failure = error(
                .status, .refreshFailed, request,
                "the credentials are not accepted and could not be refreshed; \(thrown.passesByItself ? "try again later" : "sign in again")",
                underlyingError: thrown)
            failure.status = 401
            return failure
        case .interceptorFailed:
            return error(.build, .interceptorFailed, request, "an interceptor failed with \(type(of: thrown))", underlyingError: thrown)
        default:
            return error(
                .transport, .unreachable, request, "the transport failed with \(type(of: thrown)); see the underlying error",
                underlyingError: thrown)
        }
    }

    /// The error for a deadline of the whole call.
    func error(_ part: Deadlines.Part) -> RemoteError {
        let failure = TransportFailure(part, ExchangeLimits())
        return error(.timeout, failure.code, request, failure.message)
    }
}

extension WebOrigin {
    /// Whether this is the machine itself, so that nothing travels (RFC 6761 §6.3).
    var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

extension HTTPReplyBody {
    /// The first bytes, and the end of the exchange where there are more.
    func beginning(_ count: Int) async throws -> Data {
        var data = Data()
        var iterator = makeAsyncIterator()
        do {
            while data.count < count, let piece = try await iterator.next() { data.append(piece) }
        } catch let failure as TransportFailure where failure.code != .cancelled {
            // The head was what counts; a body that breaks off or is too long makes it no better and no worse.
        }
        return data.prefix(count)
    }
}

extension Headers {
    /// Adds the lines of another list.
    mutating func append(contentsOf other: Headers) {
        for line in other.lines {
            if let value = line.value { append(line.name, value) } else { remove(line.name) }
        }
    }
}
