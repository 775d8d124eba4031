internal import Foundation
internal import LoopbackOrigin
internal import StoreCore

/// Checks and answers the requests of pages (I5).
///
/// Events are server-sent: a response ends after its events, and the page connects again with the number of the last one. So a page that
/// stops reading costs the response that it does not read, and no queue of events exists for it.
final class Desk: Sendable {
    private let board: Board
    private let token: [UInt8]
    /// The port, known once the server listens; no request is answered before.
    private let port = Lock<UInt16?>(nil)

    init(board: Board, token: String) {
        self.board = board
        self.token = Array(token.utf8)
    }

    func open(port: UInt16) { self.port.withLock { $0 = port } }

    // MARK: Checks

    func respond(to request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        guard let port = port.withLock(\.self) else { return .text("not ready", status: 503) }
        // A page of another site that has made its own name resolve to this machine sends that name (DNS rebinding).
        let hosts = request.headers.values(of: "Host")
        guard hosts.count == 1, let host = hosts.first, host == "127.0.0.1:\(port)" || host == "localhost:\(port)" else {
            return secured(.text("unknown host", status: 403))
        }
        let origins = request.headers.values(of: "Origin")
        let sites = request.headers.values(of: "Sec-Fetch-Site")
        guard origins.allSatisfy({ $0 == "http://\(host)" }), sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else {
            return secured(.text("foreign origin", status: 403))
        }
        let parts = request.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, isToken(parts[0]) else { return secured(.text("not found", status: 404)) }
        // Detached, because a large listing must not keep the server's thread from other pages. The events stay, to notice that a page leaves.
        switch (request.method, parts[1]) {
        case (.get, ""): return page()
        case (.get, "events"): return secured(await events(request))
        case (.get, "list"): return secured(await Task.detached { [self] in await list(request) }.value)
        case (.get, "item"): return secured(await Task.detached { [self] in await item(request) }.value)
        case (.post, "act"): return secured(await Task.detached { [self] in await act(request) }.value)
        case (_, ""), (_, "events"), (_, "list"), (_, "item"), (_, "act"):
            return secured(.text("method not allowed", status: 405))
        default: return secured(.text("not found", status: 404))
        }
    }

    /// Compares in constant time.
    private func isToken(_ text: Substring) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == token.count else { return false }
        return zip(bytes, token).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    private func secured(_ response: LoopbackOrigin.Response, policy: String = "default-src 'none'") -> LoopbackOrigin.Response {
        response.setting("Content-Security-Policy", to: policy + "; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
            .setting("X-Content-Type-Options", to: "nosniff")
            .setting("X-Frame-Options", to: "DENY")
            .setting("Referrer-Policy", to: "no-referrer")
            .setting("Cross-Origin-Opener-Policy", to: "same-origin")
            .setting("Cross-Origin-Resource-Policy", to: "same-origin")
            .setting("Cache-Control", to: "no-store")
    }

    private func page() -> LoopbackOrigin.Response {
        let nonce = String(UInt64.random(in: 0 ... .max), radix: 16) + String(UInt64.random(in: 0 ... .max), radix: 16)
        // Trusted types make the browser refuse every insertion of text as HTML.
        return secured(
            .html(Page.html.replacing("{{nonce}}", with: nonce)),
            policy: "default-src 'none'; script-src 'nonce-\(nonce)'; style-src 'nonce-\(nonce)'; connect-src 'self'; img-src data:; "
                + "require-trusted-types-for 'script'; trusted-types 'none'")
    }

    // MARK: Reading

    private func list(_ request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        guard let subject = subject(request) else { return .text("no such subject", status: 404) }
        var query = RowQuery()
        query.from = max(0, number(request, "from") ?? 0)
        query.count = min(200, max(0, number(request, "count") ?? 50))
        query.text = String((request.query("q") ?? "").prefix(200))
        query.filter = KeyFilter(rawValue: request.query("filter") ?? "") ?? .all
        let rows = await subject.rows(query)
        return .json(
            literal: JSON.object([
                ("total", .int(rows.total)), ("from", .int(query.from)),
                (
                    "columns",
                    .array(subject.columns.map { .object([("title", .string($0.title)), ("kind", .string($0.kind.rawValue))]) })
                ),
                ("rows", .array(rows.rows.map { .array([.int($0.id)] + $0.cells) })),
            ]).text)
    }

    private func item(_ request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        guard let subject = subject(request), let row = number(request, "row"), let item = await subject.item(row) else {
            return .text("gone", status: 404)
        }
        return .json(
            literal: JSON.object([
                ("title", .string(item.title)), ("facts", .array(item.facts.map { .array([.string($0.0), $0.1]) })),
                ("record", item.record.map { .string($0) } ?? .null), ("json", .bool(item.isJSON)),
                (
                    "links",
                    .array(
                        item.links.map { link in
                            .object([
                                ("store", .string(link.store)), ("count", .int(link.count)),
                                ("keys", .array(link.keys.map { .string($0.short(200)) })),
                            ])
                        })
                ),
                ("actions", .array(item.actions.map { .string($0) })),
            ]).text)
    }

    /// Waits for news, and returns them as events.
    private func events(_ request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        guard let page = pageName(request.query("page")) else { return .text("no page", status: 400) }
        guard board.pageOpened(page) else { return .text("too many pages", status: 503) }
        defer { board.pageLeft(page) }
        let last = (request.headers["Last-Event-ID"] ?? "").split(separator: ".").compactMap { Int($0) }
        let (seenVersion, seenHash) = last.count == 2 ? (last[0], last[1]) : (0, 0)
        let end = ContinuousClock.now + board.policy.patience
        while true {
            let overview = await board.overview(for: page).text
            let (version, spans) = board.timeline.changes(after: seenVersion)
            let hash = overview.hashValue
            // A handler is canceled when its page leaves, and its response is dropped.
            if hash != seenHash || !spans.isEmpty || ContinuousClock.now >= end || Task.isCancelled {
                let news = JSON.object([
                    ("now", board.timeline.now), ("spans", .array(spans.map { board.timeline.json($0) })),
                ]).text
                let text = "retry: 100\nid: \(version).\(hash)\nevent: news\ndata: {\"overview\":\(overview),\"timeline\":\(news)}\n\n"
                return .data(Data(text.utf8), type: "text/event-stream; charset=utf-8")
            }
            try? await Task.sleep(for: board.policy.pace)
        }
    }

    private func subject(_ request: LoopbackOrigin.Request) -> (any Subject)? { number(request, "subject").flatMap { board.subject($0) } }

    private func number(_ request: LoopbackOrigin.Request, _ name: String) -> Int? { request.query(name).flatMap { Int($0) } }

    /// A name that a page has given itself.
    private func pageName(_ name: String?) -> String? {
        guard let name, (1...64).contains(name.utf8.count), name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        return name
    }

    // MARK: Acting

    private struct Action: Decodable {
        var page: String
        var action: String
        var subject: Int?
        var row: Int?
        var value: Int?
    }

    private func act(_ request: LoopbackOrigin.Request) async -> LoopbackOrigin.Response {
        guard let action = try? request.decoded(Action.self), let page = pageName(action.page) else {
            return .text("malformed", status: 400)
        }
        switch action.action {
        case "offline": return outcome(board.control(page) { $0.setOffline(action.value == 1, page) })
        case "delay": return outcome(board.control(page) { $0.setDelay(.milliseconds(min(60_000, max(0, action.value ?? 0))), page) })
        case "fail":
            guard let subject = action.subject, board.subject(subject) != nil else { return .text("no such subject", status: 404) }
            return outcome(board.control(page) { $0.fail(.init(subject: subject, row: action.row), page) })
        case "close":
            board.controls.undo(page)
            return outcome(true)
        default:
            guard let subject = action.subject.flatMap({ board.subject($0) }) else { return .text("no such subject", status: 404) }
            return outcome(await subject.perform(action.action, row: action.row))
        }
    }

    /// The revision tells the page which news are older than its action.
    private func outcome(_ isDone: Bool) -> LoopbackOrigin.Response {
        isDone ? .status(204).setting("Revision", to: "\(board.controls.revision)") : .text("refused", status: 409)
    }
}
