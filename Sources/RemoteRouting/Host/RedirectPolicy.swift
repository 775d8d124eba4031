internal import Foundation

/// Where a redirect leads, and what may travel there: a pure decision (RFC 9110 §15.4, RFC 3986 §5).
struct RedirectPolicy {
    enum Decision {
        /// The answer stands as it is.
        case stay
        /// This is to be sent next.
        case follow(HTTPRequest)
        /// The answer asks for what is never done.
        case refuse(RemoteError.Code, String)
    }

    /// How many redirects of one request are followed.
    var limit: Int

    /// Decides what follows a response.
    ///
    /// - Parameters:
    ///   - response: The response.
    ///   - request: Its request, as it was sent.
    ///   - count: The number of redirects that were followed before.
    func decide(_ response: HTTPResponse, to request: HTTPRequest, after count: Int) -> Decision {
        // In this order: no list is made for a response that is no redirect.
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
        // Half of a body cannot be sent: the answer is for the caller.
        guard next.body.isReplayable else { return .stay }
        guard let url = RedirectPolicy.resolve(location, from: request.url), let target = WebOrigin(of: url) else {
            return .refuse(.redirectRefused, "a redirect leads to what is no http or https address; ask the server's owner")
        }
        let origin = WebOrigin(of: request.url)
        if origin?.scheme == .https, target.scheme == .http {
            return .refuse(
                .redirectRefused, "a redirect leads from https to http, which would give away what is sent; ask the server's owner")
        }
        guard count < limit else {
            return .refuse(.tooManyRedirects, "more than \(limit) redirects; the server sends its clients in circles")
        }
        if target != origin { next.fields = next.fields.filtered { FieldRules.of($0).contains(.harmless) } }
        next.url = url
        return .follow(next)
    }

    /// Foundation on Linux resolves some references wrongly, so it only takes what RFC 3986 has resolved.
    private static func resolve(_ location: String, from base: URL) -> URL? {
        guard !location.isEmpty, !location.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }),
            var target = URIReference(location).resolved(against: URIReference(base.absoluteString)), target.authority != nil
        else { return nil }
        // In lower case, since FoundationNetworking takes no other (RFC 3986 §6.2.2.1).
        target.scheme = target.scheme?.lowercased()
        // A fragment is the caller's affair and never sent.
        target.fragment = nil
        if target.path.isEmpty { target.path = "/" }
        return URL(string: target.text)
    }
}

extension HTTPFields {
    /// The fields whose names are wanted.
    func filtered(_ isWanted: (String) -> Bool) -> HTTPFields {
        var copy = self
        for name in Set(fields.map(\.name)) where !isWanted(name) { copy.remove(name) }
        return copy
    }
}
