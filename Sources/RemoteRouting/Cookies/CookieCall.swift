internal import Foundation

/// The cookies of one call of a host, through its attempts and redirects.
struct CookieCall: Sendable {
    let jar: CookieJar
    /// The jar's generation when the call began: after a clearing, the call neither gets nor sets cookies.
    let generation: UInt64

    /// The `Cookie` field of a request.
    ///
    /// - Parameters:
    ///   - url: The request's address.
    ///   - method: The request's method.
    ///   - hops: The addresses whose redirects led to the request, in order.
    /// - Returns: The field's value; `nil` where no cookie fits.
    /// - Throws: `CancellationError`, while the cookies are loaded.
    func header(for url: URL, method: HTTPMethod, redirectedFrom hops: [URL]) async throws -> String? {
        guard let request = CookieRequest(url) else { return nil }
        return try await jar.header(
            for: request, isSafe: method.isSafe, after: hops.compactMap { CookieRequest($0) }, generation: generation)
    }

    /// Takes the cookies of a response, be it a redirect or not; they count for the next request.
    ///
    /// - Parameters:
    ///   - lines: The values of the `Set-Cookie` fields, in order.
    ///   - url: The address of the request.
    func receive(_ lines: [String], from url: URL) async {
        guard !lines.isEmpty, let request = CookieRequest(url) else { return }
        await jar.receive(lines, from: request, generation: generation)
    }
}
