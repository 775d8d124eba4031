internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StoreFiles
import RemoteRoutingTesting
internal import Testing

// The examples of RemoteRouting's doc comments, compiled; those that are tests run.

struct Photo: Codable, Sendable {}

struct Money: Sendable {
    var cents: Int
    var currency: String
}

//: ParameterValue.swift

//: Routable.swift: enum TokenRoute

//: HostConfiguration.swift: extension HostConfiguration

//: Routable.swift: extension Route

//: Transport.swift

//: Interceptors.swift: struct Trace

private struct Named: Routable {
    var path: RoutePath { "/things" }
    var (name, tags, language, trace) = ("a", ["b"], "en", String?.none)
    var method: HTTPMethod { .post }
    //: RouteBody.swift
    //: Headers.swift
    typealias Timeouts = RouteOptions.Timeouts
    //: RouteOptions.swift
}

struct RoutingDocCommentTests {
    private struct Logger: Sendable {
        let lines = Printed()
        func debug(_ line: String) { lines.add(line) }
    }

    @Test func `a transport of one's own`() async throws {
        let api = RemoteHost("api.example.com", transport: EchoTransport())
        #expect(try await api.data(for: Route(path: "/")) == Data("hello".utf8))
    }

    @Test func `what was asked is kept`() async throws {
        struct User: Decodable { var id: Int }
        //: MemoryTransport.swift: let transport = MemoryTransport { request
        #expect(user.id == 7)
    }

    @Test func `values that say what they are`() throws {
        //: MimeType.swift
        #expect(!picture.isJSON)
        let (name, id) = ("swift", 7)
        //: RoutePath.swift
        #expect("\(path) \(file)".isEmpty == false)
        let text = "q"
        //: Parameters.swift
        #expect(!parameters.isEmpty)
        //: ParameterStyle.swift
        #expect(options.parameterStyle != nil)
        #expect(Sorting.newest.parameterValue == .text("newest"))
        #expect(Money(cents: 5, currency: "EUR").parameterValue == .text("5 EUR"))
    }

    @Test func `a log is told`() async throws {
        let logger = Logger()
        //: ExchangeLog.swift
        var quiet = api
        quiet.transport = EchoTransport()
        _ = try await quiet.data(for: Route(path: "/"))
        #expect(logger.lines.count == 3)
    }

    @Test func `a form is put together`() {
        let (jpeg, url) = (Data([1]), URL(filePath: "/tmp/film"))
        //: MultipartForm.swift
        #expect(form.parts.count == 3)
    }

    @Test func `connectivity is set by hand`() {
        //: ManualConnectivity.swift
    }

    @Test func `an expensive path is set by hand`() {
        //: TestingWithoutANetwork.md: let connectivity
    }
}

// What needs a server, a file or a user: compiled only.

private func hosts(id: Int, text: String) async throws {
    struct User: Decodable {}
    //: RemoteHost.swift: let api = RemoteHost("api.example.com")  // https
    //: RemoteHost.swift: let patient = api
    print(user, hits, bytes, patient)
}

private func texts(address: URL) throws {
    func wholeAddress() {
        //: HostConfiguration.swift: let api = RemoteHost("https
        print(api, local)
    }
    //: HostConfiguration+Text.swift
    print(api)
}

private func tagged(_ api: RemoteHost) async throws {
    struct Order: Decodable {}
    var options = RouteOptions()
    options.tags[ScreenName.self] = "list"
    //: RouteTags.swift: let orders: [Order]
    print(orders)
}

private func environment() {
    //: HostConfiguration.swift: let api = RemoteHost(.staging
    print(api)
}

private func faults(_ api: RemoteHost, id: String) async throws {
    //: RouteFault.swift
}

private func order(_ order: [String: Int], at api: RemoteHost) async throws {
    func showOrders() {}
    //: RemoteRouting.docc/ErrorsAndRetries.md: try await api
}

private func traced() {
    //: Interceptors.swift: let api = RemoteHost
    print(api)
}

private func rules() {
    //: RemoteRouting.docc/ErrorsAndRetries.md: var github = RemoteHost
    _ = github
}

private func absent(_ api: RemoteHost, id: Int) async throws {
    struct User: Decodable, Sendable {}
    //: RemoteRouting.docc/ErrorsAndRetries.md: let user: User
    _ = user
}

private func accepted(_ api: RemoteHost, order: [String: Int], show: ([String: String]) -> Void) async throws {
    //: RemoteRouting.docc/ErrorsAndRetries.md: let response = try
}

private func sequences(at api: RemoteHost, _ recording: AsyncThrowingStream<Data, any Error>, _ table: String) async throws {
    @Sendable func rows(of table: String) throws -> AsyncStream<Data> { AsyncStream { $0.finish() } }
    //: StreamsAndFiles.md: try await api.send(
    //: StreamsAndFiles.md: let body = RouteBody
    print(body)
}

private func missing(_ api: RemoteHost, id: Int) async throws {
    struct User: Decodable {}
    var user: User?
    //: RemoteError.swift: user = try await
    print(user as Any)
}

private func stores(_ api: RemoteHost) async throws {
    //: RouteFetcher.swift: let users = Store
    //: RouteFetcher.swift: let fetcher = api
    //: RoutePageFetcher.swift: let repos = PaginationStore
    print(user, fetcher)
}

private func cursors(_ api: RemoteHost) {
    struct MessagePage: Decodable {
        var messages: [Message]
        var olderCursor: String?
        var newerCursor: String?
    }
    //: RemoteHost+Pages.swift: let messages
    print(messages)
}

private func parsers() async throws {
    struct Settings: Decodable {}
    //: ResponseParser.swift: let api = RemoteHost
    print(settings)
}

private func otherFormats(_ api: RemoteHost) {
    struct SearchResult: Decodable {
        var items: [Repo]
    }
    //: RouteFetcher.swift: let pictures
    //: RemoteHost+Pages.swift: let hits = api
    //: RemoteHost+Pages.swift: let repos = api
    //: RemoteHost+Pages.swift: let lines = api
    print(pictures, hits, repos, lines)
}

private func ownFreshness(_ api: RemoteHost, id: Int) async throws -> FetchResult<User> {
    let response = try await api.response(for: Route(path: "/users/\(id)"), as: User.self)
    //: Validator+Fields.swift
    print(etag ?? "none")
    return .modified(
        response.value, Freshness(of: response), Validator(of: response))
}

private func cursorRoute(room: String, cursor: PageCursor?) -> Route {
    //: RoutePageFetcher.swift: Route(
}

private func tokens(saved: ShopToken) {
    //: Authorization.swift: let tokens = Authorization
    print(api)
}

private func sharedTokens(saved: ShopToken, sharedDirectory: URL) {
    //: Authorization.swift: let tokens = RefreshingTokens
    print(tokens.current)
}

private func online(_ repositories: StoreFlowable<Int, Repo>) async throws {
    //: Connectivity.swift: for await status
}

private func paths(prefetchPictures: () async throws -> Void) async throws {
    //: Connectivity.swift: for await path
}

private func streams(_ api: RemoteHost, file: FileHandle, url: URL, digest: String) async throws {
    //: Download.swift
    //: RemoteBytes.swift
    //: StreamsAndFiles.md: let photo: Photo
    print(photo)
}

private func sockets(_ api: RemoteHost, shop: RemoteHost, show: (String) -> Void) async throws {
    //: WebSocket.swift: let socket
    //: WebSocket.swift: let feed
    //: StreamsAndFiles.md: let room
    print(feed.subprotocol ?? "")
}

private func socketStores(_ api: RemoteHost) {
    struct Price: Codable, Sendable { var cents: Int }
    //: LiveSocketFetcher.swift: let prices
    //: LiveSocketFetcher.swift: let rooms
    _ = (prices, rooms)
}

private func events(_ chunks: [Data], handle: (ServerSentEvent) -> Void) throws {
    //: ServerSentEvents.swift: var parser = ServerSentEvents
}

private func completions(
    at api: RemoteHost, _ prompt: [String: String], show: (String) -> Void
) async throws {
    //: StreamsAndFiles.md: let completion
    //: ServerSentEvents.swift: let body = try
}

private struct Profile { var photoURL: URL }

private func addresses(at api: RemoteHost, _ profile: Profile) async throws {
    //: DescribingRoutes.md: let photo = try
    print(photo.count)
    //: DescribingRoutes.md: let page = try
    print(repos.count)
}

private func links(_ response: RemoteResponse<Data>) {
    //: LinkHeader.swift
    print(next as Any)
}

private func problems(_ error: RemoteError, show: (String?, _ balance: Problem.Value?) -> Void) {
    func show(_ detail: String?, balance: Problem.Value?) {}
    //: Problem.swift
}

private func recording(_ route: Route, file: URL) async throws {
    //: RecordedExchanges.swift
    print(api)
}

private func pieces(of request: HTTPRequest) async throws {
    struct Digest { mutating func update(_ data: Data) {} }
    var digest = Digest()
    //: HTTPResponse.swift: let response
    //: HTTPResponse.swift: for try await
}

#if os(Linux)
private func curl() throws {
    //: CurlTransport.swift
    //: RemoteHost.swift: // Prints “libcurl 7.88
}
#endif
