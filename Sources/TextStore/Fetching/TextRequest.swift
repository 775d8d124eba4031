internal import Foundation
internal import RemoteHTTP
import StoreCore

/// A GET request for a file, and the rule for its redirects.
struct TextRequest: Sendable {
    let message: HTTPRequest
    /// The fields that the fetcher adds, which a redirect keeps.
    private let own: HTTPFields

    /// Makes the request of a file.
    ///
    /// - Throws: ``TextStoreError/Code/unreachable`` for an address that is not HTTP; ``TextStoreError/Code/invalidName`` for a malformed
    ///   field.
    init(_ file: RemoteFile, _ validator: Validator?) throws(TextStoreError) {
        guard let url = TextRequest.address(file.url.absoluteURL) else {
            let reason = "it is not an HTTP address; correct the address"
            throw TextStoreError(
                .unreachable, "cannot get \(file.url.absoluteString): \(reason)", underlyingError: TransportFailure(.unsupported, reason))
        }
        var own = HTTPFields()
        own.setIfValid("User-Agent", "Storehouse")
        own.setIfValid("Accept", "*/*")
        var fields = own
        for (name, value) in file.headers.sorted(by: { $0.key < $1.key }) {
            do { try fields.set(name, value[...].withoutBlanksAtEnds) } catch {
                throw TextStoreError(
                    .invalidName,
                    "cannot get \(file.url.absoluteString): “\(name)” is not a valid header field; remove its control characters")
            }
        }
        // A server supplied both validators, so they may be malformed.
        let conditions = [("If-None-Match", validator?.entityTag), ("If-Modified-Since", validator?.lastModified)]
        for (name, value) in [("Cache-Control", file.caching == .revalidated ? "no-cache" : nil)] + conditions {
            guard let value else { continue }
            own.setIfValid(name, value)
            fields.setIfValid(name, value)
        }
        self.init(url, fields, own)
    }

    private init(_ url: URL, _ fields: HTTPFields, _ own: HTTPFields) {
        message = HTTPRequest(url: url, fields: fields)
        self.own = own
    }

    /// Whether the request carries a validator, even after a redirect.
    var isConditional: Bool { own["If-None-Match"] != nil || own["If-Modified-Since"] != nil }

    /// Returns the request for a redirect within the scheme, without the file's header fields, which are meant for its origin only.
    func redirected(by response: HTTPResponse) -> TextRequest? {
        guard [301, 302, 303, 307, 308].contains(response.status), let location = response.fields.values(of: "Location").first,
            let target = WebAddress.resolve(location, from: message.url).flatMap(TextRequest.address),
            target.scheme == message.url.scheme
        else { return nil }
        return TextRequest(target, own, own)
    }

    /// Returns an HTTP address without its credentials, which libcurl would send; `nil` for any other address.
    private static func address(_ url: URL) -> URL? {
        guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https", url.host()?.isEmpty == false else { return nil }
        guard url.scheme != scheme || url.user() != nil || url.password() != nil else { return url }
        var parts = URLComponents(url: url, resolvingAgainstBaseURL: true)
        parts?.scheme = scheme
        parts?.user = nil
        parts?.password = nil
        return parts?.url
    }
}

extension HTTPFields {
    /// Sets a field, unless its value is malformed.
    fileprivate mutating func setIfValid(_ name: String, _ value: String) { try? set(name, value) }
}
