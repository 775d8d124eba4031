public import Foundation
internal import LoopbackOrigin
public import RemoteRouting
public import StoreCore
public import StoreOutbox
public import SyncEngine
public import TextStore

/// A page in the browser that shows the stores, hosts, texts, synchronizers and outboxes of this process, and acts on them.
///
/// ```swift
/// let inspector = try await Inspector.start()
/// inspector.attach(users, name: "users")
/// let api = inspector.attach(RemoteHost("api.example.com"), name: "api")
/// print(inspector.url)
/// ```
///
/// The page is served on 127.0.0.1 alone, at an address with a random token. The address is the right to see the contents and to act on them.
/// Credentials of requests never reach the page. An inspector works until it is stopped or released, and retains none of its subjects but
/// hosts.
public final class Inspector: Sendable {
    /// The address of the page, with its token.
    public let url: URL
    let board: Board
    private let server: LoopbackOrigin

    private init(redacting names: Set<String>, policy: Policy) throws {
        let board = Board(secretNames: names.isEmpty ? Redactor.usualNames : names, policy: policy)
        let token = Self.makeToken()
        let limits = LoopbackOrigin.Limits(
            requestLine: 8_192, head: 16_384, body: 16_384, connections: policy.connections, idle: policy.idle, records: 0)
        let desk = Desk(board: board, token: token)
        server = try LoopbackOrigin(limits: limits) { await desk.respond(to: $0) }
        desk.open(port: server.port)
        url = server.url.appending(path: token + "/")
        self.board = board
    }

    /// Starts the server on a free port of this machine.
    ///
    /// - Parameter redacting: The names of the fields whose values are hidden in records, commands and the queries of addresses, without
    ///   regard to case, `_` and `-`. Without names, those that commonly hold a secret, such as `password` and `token`.
    ///   A record that is not `Encodable` and has such a field is hidden as a whole.
    /// - Throws: An error if the system refuses a socket or a thread.
    public static func start(redacting: Set<String> = []) async throws -> Inspector {
        try Inspector(redacting: redacting, policy: Policy())
    }

    /// Starts the server with other limits, for tests.
    static func start(redacting: Set<String> = [], policy: Policy) throws -> Inspector {
        try Inspector(redacting: redacting, policy: policy)
    }

    deinit { stop() }

    /// Closes the page's connections and the port, undoes the actions of all pages, and leaves the subjects; further calls do nothing.
    public func stop() {
        server.stop()
        board.close()
    }

    /// 128 random bits, from the system's secure generator.
    private static func makeToken() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next(), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    struct Policy: Sendable {
        /// The largest number of connections; a browser uses up to six.
        var connections = 64
        /// The largest number of pages that follow the events.
        var pages = 16
        /// The longest time without a request, or without progress of a response.
        var idle = Duration.seconds(30)
        /// The time after which a page without a connection counts as closed.
        var grace = Duration.seconds(5)
        /// The time after which an event stream without news ends, so that the page connects again.
        var patience = Duration.seconds(10)
        /// The minimum time between two looks at the subjects.
        var pace = Duration.milliseconds(250)
        /// The number of fetches and exchanges that are kept.
        var spans = 1_000
        /// The number of released objects that are still shown.
        var gone = 20
    }
}

extension Inspector {
    /// Shows a store until it is released.
    ///
    /// Hits cost the same as without an inspector. Each attempt of a fetch is recorded by a closure of ``Store/interceptFetches(by:)``.
    /// Several inspectors may show one store. A store that is attached again is shown under its new name only.
    ///
    /// - Parameters:
    ///   - store: The store, which the inspector does not retain.
    ///   - name: The name on the page; by default that of the store, or of its content's type.
    ///   - redacting: Returns the value to show in place of a content, such as a copy without personal data.
    public func attach<Param: Hashable & Sendable, Content: Sendable>(
        _ store: Store<Param, Content>, name: String? = nil, redacting: (@Sendable (_ content: Content) -> any Sendable)? = nil
    ) {
        let ownName = store.engine.name
        board.add { id in
            StoreSubject(
                store, id: id, name: name ?? (ownName.isEmpty ? "\(Content.self)" : ownName), board: board, redacting: redacting)
        }
    }

    /// Shows a store of lists until it is released; see ``attach(_:name:redacting:)``.
    ///
    /// - Parameters:
    ///   - store: The store, which the inspector does not retain.
    ///   - name: The name on the page; by default that of the store, or of its content's type.
    ///   - redacting: Returns the value to show in place of a list.
    public func attach<Param: Hashable & Sendable, Element: Sendable>(
        _ store: PaginationStore<Param, Element>, name: String? = nil,
        redacting: (@Sendable (_ elements: [Element]) -> any Sendable)? = nil
    ) {
        attach(store.lists, name: name, redacting: redacting)
    }

    /// Shows the exchanges of a host.
    ///
    /// A host is a value: only the returned copy, and the copies of it, are shown.
    ///
    /// - Parameters:
    ///   - host: The host; the fields and query names that its ``ExchangeLog`` redacts stay secret.
    ///   - name: The name on the page; by default that of the origin.
    /// - Returns: A copy of the host that reports its exchanges, which the page can delay and fail.
    public func attach(_ host: RemoteHost, name: String? = nil) -> RemoteHost {
        let subject = board.add { HostSubject(host, id: $0, name: name ?? host.snapshot().origin, board: board) }
        return subject.watchedHost
    }

    /// Shows the texts of a session until it is released.
    ///
    /// - Parameters:
    ///   - texts: The store of the texts, which the inspector does not retain.
    ///   - name: The name on the page.
    public func attach(_ texts: TextStore, name: String = "texts") {
        board.add { TextSubject(texts, id: $0, name: name) }
    }

    /// Shows the passes of a synchronizer until it is released.
    ///
    /// - Parameters:
    ///   - synchronizer: The synchronizer, which the inspector does not retain.
    ///   - name: The name on the page.
    public func attach<Processor>(_ synchronizer: OneWaySynchronizer<Processor>, name: String = "sync") {
        board.add { SyncSubject(synchronizer, id: $0, name: name) }
    }

    /// Shows the commands of an outbox until it is released.
    ///
    /// - Parameters:
    ///   - outbox: The outbox, which the inspector does not retain.
    ///   - name: The name on the page.
    public func attach(_ outbox: Outbox, name: String = "outbox") {
        board.add { OutboxSubject(outbox, id: $0, name: name, redactor: board.redactor) }
    }
}

/// A failure that the page has caused: it has taken the program offline, or has failed the next fetch of a key.
public struct InspectionFailure: LocalizedError, Hashable, CustomStringConvertible {
    /// The kinds of failures.
    public enum Code: String, Hashable, Sendable {
        /// The page has taken the program offline.
        case offline
        /// The page has failed this fetch.
        case failed
    }

    /// The kind of failure.
    public var code: Code

    /// The failure in one sentence.
    public var description: String {
        switch code {
        case .offline: "cannot fetch: the inspector's page has taken the program offline; go online there, or close the page"
        case .failed: "cannot fetch: the inspector's page has failed this fetch; fetch again"
        }
    }

    /// The same sentence.
    public var errorDescription: String? { description }
}
