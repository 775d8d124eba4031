internal import Foundation
internal import RemoteHTTP

extension RouteCall {
    /// Runs the request interceptors, the outermost first.
    @inline(never)
    func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw self.error(for: error, original, or: .interceptorFailed)
            }
            // An interceptor may have replaced the request.
            request = request.made(like: original)
        }
        return request
    }

    /// Throws if interceptors changed a request into one that must not be sent.
    @inline(never)
    func check(_ request: HTTPRequest, madeOf original: HTTPRequest) throws {
        guard let origin = WebOrigin(of: request.url), request.url == original.url || origin == WebOrigin(of: original.url) else {
            let fault = RouteFault(
                .foreignOrigin, in: "address", "an interceptor changed the request's origin; use another host instead")
            throw self.error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { FieldRules.of($0.name).contains(.reserved) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw self.error(for: fault, original)
        }
        guard forbidsCredentials(to: origin) else { return }
        // Fields that the authorization wrote are secret under any name.
        let isSecret =
            original.fields != self.request.fields
            || request.fields.fields.contains { FieldRules.of($0.name).contains(.secret) || host.log?.redacts($0) == true }
        if isSecret { throw insecureCredentials(original) }
    }

    /// Whether credentials must not be sent to an origin: unencrypted, to another machine, without the host's permission.
    func forbidsCredentials(to origin: WebOrigin?) -> Bool {
        guard let origin else { return true }
        guard origin.scheme == .http, !host.allowsInsecureCredentials else { return false }
        return !origin.isLoopback || host.proxy.leadsAway(from: origin.host)
    }

    func insecureCredentials(_ request: HTTPRequest) -> RemoteError {
        error(
            .build, .insecureCredentials, request,
            "credentials would travel without encryption; use https, or set allowsInsecureCredentials if the network is trusted")
    }
}
