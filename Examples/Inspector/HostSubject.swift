internal import Foundation
internal import RemoteHTTP
internal import RemoteRouting
internal import StoreCore

/// A host on the page: its open and its last exchanges.
///
/// Only the method, the redacted address, the status, the metrics and a few harmless fields are shown: an allow-list, so that no credential
/// can pass in a field of any name. Bodies are never shown.
final class HostSubject: Subject {
    let id: Int
    let kind = "host"
    let name: String
    let columns = [
        Column(title: "Exchange"), Column(title: "State", kind: .phase), Column(title: "Time", kind: .age), Column(title: "Response"),
    ]
    let watchedHost: RemoteHost
    /// A host is a value, so it cannot go away.
    var object: AnyObject? { self }
    private let timeline: Timeline

    init(_ host: RemoteHost, id: Int, name: String, board: Board) {
        (self.id, self.name, timeline) = (id, name, board.timeline)
        watchedHost = host.with { copy in
            copy.transport = WatchedTransport(
                transport: host.transport, log: host.log ?? ExchangeLog { _ in }, origin: host.snapshot().origin, subject: id,
                timeline: board.timeline, controls: board.controls, redactor: board.redactor)
        }
    }

    func summary() async -> Summary? {
        let host = watchedHost.snapshot()
        var parts = ["\(host.openExchanges) open"]
        if host.waitingExchanges > 0 { parts.append("\(host.waitingExchanges) waiting") }
        if host.openStreams > 0 { parts.append("\(host.openStreams) streams") }
        return Summary(
            count: host.openExchanges + host.openStreams, note: parts.joined(separator: ", "), isBusy: host.openExchanges > 0)
    }

    func rows(_ query: RowQuery) async -> Rows {
        let text = query.text.lowercased()
        let spans = timeline.spans(of: id).filter { text.isEmpty || $0.title.lowercased().contains(text) }
        return Rows(
            total: spans.count,
            rows: spans.dropFirst(query.from).prefix(query.count).map { span in
                (span.id, [.string(span.title), .string(span.status), .milliseconds(span.duration), .string(span.note)])
            })
    }

    func item(_ row: Int) async -> Item? {
        guard let span = timeline.spans(of: id).first(where: { $0.id == row }) else { return nil }
        return Item(
            title: span.title,
            facts: [
                ("state", .string(span.status)), ("time until the head", .milliseconds(span.duration)), ("response", .string(span.note)),
            ])
    }
}

/// Records the exchanges of a transport from their beginning to the head of the response, and delays or fails them.
private struct WatchedTransport: Transport {
    let transport: any Transport
    /// The log that redacts the addresses.
    let log: ExchangeLog
    /// The origin of the host, which is left out of addresses.
    let origin: String
    let subject: Int
    let timeline: Timeline
    let controls: Controls
    let redactor: Redactor

    /// The fields of a response that carry no secret.
    private static let shownFields = ["Content-Type", "Content-Length", "Cache-Control", "Age", "Retry-After"]

    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        try await perform(request, over: ConnectionOptions(), limits: limits)
    }

    func perform(_ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits) async throws -> HTTPResponse {
        var address = redactor.address(log.redacted(request.url.absoluteString))
        if !origin.isEmpty, address.hasPrefix(origin + "/") { address.removeFirst(origin.count) }
        let fetch = controls.passed
        let span = timeline.begin(subject, "\(request.method.rawValue) \(address)".short(500), "", during: fetch)
        do {
            try await pass(during: fetch)
            let response = try await controls.passing(span) {
                try await transport.perform(request, over: connection, limits: limits)
            }
            let fields = Self.shownFields.compactMap { name in response.fields[name].map { "\(name): \($0)" } }
            timeline.end(
                span, response.status == 304 ? "unchanged" : response.status < 400 ? "ok" : "refused",
                (["\(response.status)"] + fields).joined(separator: " · ").short(500))
            return response
        } catch let failure as TransportFailure {
            // Not its message, because a transport of the app may repeat parts of the request there.
            timeline.end(span, failure.code == .cancelled ? "canceled" : "failed", failure.code.rawValue)
            throw failure
        } catch {
            timeline.end(span, Task.isCancelled ? "canceled" : "failed", "\(type(of: error))")
            throw error
        }
    }

    private func pass(during fetch: Int?) async throws {
        do {
            try await controls.pass(subject, row: nil, during: fetch)
        } catch let failure as InspectionFailure {
            var refused = TransportFailure(failure.code == .offline ? .offline : .connectionLost, failure.description)
            refused.mayHaveArrived = false
            throw refused
        } catch {
            throw TransportFailure(.cancelled, "the task was canceled during a delay of the inspector")
        }
    }
}

/// The description of an error, or the text of one, without the message of a transport's error inside it, which may repeat a request.
func errorText(_ error: Any, _ limit: Int) -> String {
    var text = "\(error)"
    // The description of a `RemoteError` has its code and stage, the operation, and the message; that of a failure its code and message.
    for (name, count) in [("RemoteError.", 2), ("TransportFailure.", 1)] {
        var pieces = text.components(separatedBy: name)
        for index in pieces.indices.dropFirst() {
            let parts = pieces[index].components(separatedBy: ": ")
            if ["(build)", "(status)", "(decode)"].contains(where: { parts[0].hasSuffix($0) }) { continue }
            // Nothing shows where the message ends.
            pieces[index] = parts.prefix(count).joined(separator: ": ")
            pieces.removeSubrange((index + 1)...)
            break
        }
        text = pieces.joined(separator: name)
    }
    return text.short(limit)
}
