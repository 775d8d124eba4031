internal import Foundation
internal import RemoteHTTP

/// Decides the target of a redirect and the fields that may travel there (RFC 9110 §15.4).
struct RedirectPolicy {
    enum Decision {
        case stay
        /// Sends this request next, with the fields that may travel to its target.
        case follow(HTTPRequest)
        /// Fails, because the redirect is never allowed.
        case refuse(RemoteError.Code, String)
    }

    var limit: Int

    /// Decides the step after a response to a request as it was sent; `count` redirects were followed before.
    func decide(_ response: HTTPResponse, to request: HTTPRequest, after count: Int) -> Decision {
        // The range check comes first to avoid the array for ordinary responses.
        guard (300..<400).contains(response.status), [301, 302, 303, 307, 308].contains(response.status),
            let location = response.fields.values(of: "Location").first
        else { return .stay }
        var next = request
        switch response.status {
        case 303 where request.method != .head: next.method = .get
        case 301 where request.method == .post, 302 where request.method == .post: next.method = .get
        default: break
        }
        if next.method != request.method {
            next.body = .none
            next.fields = next.fields.filtered { !$0.lowercased().hasPrefix("content-") }
        }
        // A partly consumed body cannot be sent again, so the caller gets the response.
        guard next.body.isReplayable else { return .stay }
        guard let url = WebAddress.resolve(location, from: request.url), let target = WebOrigin(of: url) else {
            return .refuse(
                .redirectRefused, "a redirect leads to an address that is malformed, or neither http nor https; ask the server's owner")
        }
        let origin = WebOrigin(of: request.url)
        if origin?.scheme == .https, target.scheme == .http {
            return .refuse(
                .redirectRefused,
                "a redirect leads from https to http, which would send the request without encryption; ask the server's owner")
        }
        guard count < limit else {
            return .refuse(.tooManyRedirects, "more than \(limit) redirects; look for a redirect loop on the server")
        }
        if target != origin {
            // The key identifies the change that is replayed with its body. Without the key, a further attempt would repeat the change.
            let isChange = next.method == request.method && !next.method.isIdempotent
            next.fields = next.fields.filtered { name in
                FieldRules.of(name).contains(.harmless) || isChange && name.equalsIgnoringCase("Idempotency-Key")
            }
        }
        next.url = url
        return .follow(next)
    }
}

extension HTTPFields {
    func filtered(_ isWanted: (String) -> Bool) -> HTTPFields {
        var copy = self
        for name in Set(fields.map(\.name)) where !isWanted(name) { copy.remove(name) }
        return copy
    }
}
