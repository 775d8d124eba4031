internal import Foundation

/// The cookies of one call, across its attempts and redirects.
struct CookieCall: Sendable {
    let jar: CookieJar
    /// The jar's generation when the call began. After the jar is cleared, the call neither sends nor sets cookies.
    let generation: UInt64

    /// Returns the `Cookie` field of a request.
    ///
    /// - Parameters:
    ///   - url: The request's URL.
    ///   - method: The request's method.
    ///   - hops: The URLs that redirected to the request, in order.
    /// - Returns: The field's value; `nil` if no cookie matches.
    /// - Throws: `CancellationError` if the task is canceled while the cookies load.
    func header(for url: URL, method: HTTPMethod, redirectedFrom hops: [URL]) async throws -> String? {
        guard let request = CookieRequest(url) else { return nil }
        return try await jar.header(
            for: request, isSafe: method.isSafe, after: hops.compactMap { CookieRequest($0) }, generation: generation)
    }

    /// Stores the cookies of a response or redirect; the next request carries them.
    ///
    /// - Parameters:
    ///   - lines: The values of the `Set-Cookie` fields, in order.
    ///   - url: The URL of the request.
    func receive(_ lines: [String], from url: URL) async {
        guard !lines.isEmpty, let request = CookieRequest(url) else { return }
        await jar.receive(lines, from: request, generation: generation)
    }
}
