package import Foundation

/// What has to be known of an exchange to tell for how long its answer may be used.
package struct CachedExchange: Sendable {
    /// The header of the request as it went on the wire.
    package var request: HTTPFields
    /// The header of the answer.
    package var response: HTTPFields
    /// When the request was sent, on the wall clock.
    package var requestedAt: Date
    /// When the head of the answer had arrived, on the wall clock.
    package var respondedAt: Date
    /// The fields that the host changes per user, language or credential, and of which the store's key therefore knows nothing; in lower
    /// case.
    package var changingFields: Set<String>
    /// How the route wants to have it.
    package var policy: RouteOptions.CachePolicy

    package init(
        request: HTTPFields = HTTPFields(), response: HTTPFields, requestedAt: Date, respondedAt: Date,
        changingFields: Set<String> = [], policy: RouteOptions.CachePolicy = .followOrigin
    ) {
        self.request = request
        self.response = response
        self.requestedAt = requestedAt
        self.respondedAt = respondedAt
        self.changingFields = changingFields
        self.policy = policy
    }
}
