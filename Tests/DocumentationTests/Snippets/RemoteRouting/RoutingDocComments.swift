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

extension Money: ParameterConvertible {
    var parameterValue: ParameterValue { .text("\(cents) \(currency)") }
}
// An enumeration with raw values needs nothing more.
enum Sorting: String, ParameterConvertible { case newest, oldest }

enum TokenRoute: Routable {
    case anonymous, refresh(token: String)

    var method: HTTPMethod { .post }
    var path: RoutePath { "/v1/tokens" }
    var body: RouteBody {
        switch self {
        case .anonymous: .json(fields: ["type": "ANONYMOUS"])
        case .refresh(let token):
            .json(fields: ["type": "REFRESH", "credential": token])
        }
    }
    var options: RouteOptions { RouteOptions(requiresAuth: false) }
}

extension HostConfiguration {
    static let production = HostConfiguration(
        "api.example.com", basePath: "/v1")
    static let staging = HostConfiguration(
        "staging.example.com", port: 8443, basePath: "/v1")
    static let local = HostConfiguration("localhost", scheme: .http, port: 8080)
}

extension Route {
    static func login(name: String, password: String) -> Route {
        Route(
            path: "/user/login", method: .post,
            parameters: ["username": name, "password": password])
    }
}

struct EchoTransport: Transport {
    func perform(
        _ request: HTTPRequest, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        let exchange = Exchange(limits: limits)
        exchange.receive(
            HTTPResponse(
                status: 200, url: request.url, body: Data("hello".utf8)))
        exchange.finish()
        return try await exchange.response()
    }
}

struct Trace: RequestInterceptor {
    func intercept(_ request: inout HTTPRequest) async throws {
        try request.fields.set("X-Trace", UUID().uuidString)
    }
}

private struct Named: Routable {
    var path: RoutePath { "/things" }
    var (name, tags, language, trace) = ("a", ["b"], "en", String?.none)
    var method: HTTPMethod { .post }
    var body: RouteBody { .json(fields: ["name": name, "tags": tags]) }
    // A field whose value is nil is left out.
    var headers: Headers { ["Accept-Language": language, "X-Trace": trace] }
    typealias Timeouts = RouteOptions.Timeouts
    var options: RouteOptions {
        RouteOptions(requiresAuth: false, timeouts: Timeouts(overall: .seconds(5)))
    }
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
        let transport = MemoryTransport { request in
            .json(#"{"id": 7}"#, status: request.method == .post ? 201 : 200)
        }
        let api = RemoteHost("api.example.com", transport: transport)
        let user: User = try await api.send("/users/7")
        #expect(transport.requests.map(\.url.path) == ["/users/7"])
        #expect(user.id == 7)
    }

    @Test func `values that say what they are`() throws {
        let picture: MimeType = "image/png"
        let type = MimeType(rawValue: "Application/JSON; charset=\"utf-8\"")
        assert(type == .json.with("charset", "utf-8") && type?.isJSON == true)
        #expect(!picture.isJSON)
        let (name, id) = ("swift", 7)
        let path: RoutePath = "/orgs/\(name)/repos/\(id).json"
        // The path is /files/2024/a%20b.txt.
        let file: RoutePath = "/files/\(segments: ["2024", "a b.txt"])"
        #expect("\(path) \(file)".isEmpty == false)
        let text = "q"
        let parameters: Parameters = [
            "q": text, "page": 2, "tag": ["swift", "http"], "since": nil,
        ]
        #expect(!parameters.isEmpty)
        var options = RouteOptions()
        options.parameterStyle = ParameterStyle(lists: .brackets, dates: .iso8601)
        #expect(options.parameterStyle != nil)
        #expect(Sorting.newest.parameterValue == .text("newest"))
        #expect(Money(cents: 5, currency: "EUR").parameterValue == .text("5 EUR"))
    }

    @Test func `a log is told`() async throws {
        let logger = Logger()
        let api = RemoteHost("api.example.com").logging(
            to: ExchangeLog(redactedFields: ["X-Session"]) { entry in
                logger.debug("\(entry)")
            })
        var quiet = api
        quiet.transport = EchoTransport()
        _ = try await quiet.data(for: Route(path: "/"))
        #expect(logger.lines.count == 3)
    }

    @Test func `a form is put together`() {
        let (jpeg, url) = (Data([1]), URL(filePath: "/tmp/film"))
        let form: MultipartForm = [
            .text("title", "Holidays"),
            .data("cover", jpeg, fileName: "cover.jpg", type: "image/jpeg"),
            .file("film", at: url),
        ]
        #expect(form.parts.count == 3)
    }

    @Test func `connectivity is set by hand`() {
        let connectivity = ManualConnectivity(.offline)
        connectivity.set(.online)
    }

    @Test func `an expensive path is set by hand`() {
        let connectivity = ManualConnectivity(
            .online, isCellular: true, isExpensive: true)
        connectivity.set(.online, isCellular: false)
        #expect(connectivity.path.isExpensive == nil)
    }
}

// What needs a server, a file or a user: compiled only.

private func hosts(id: Int, text: String) async throws {
    struct User: Decodable {}
    let api = RemoteHost("api.example.com")  // https unless said otherwise
    let user: User = try await api.send("/users/\(id)")
    let hits: [Repo] = try await api.send(
        "/search", parameters: ["q": text, "page": 2])
    let bytes = try await api.data(for: Route(path: "/avatar.png"))
    let patient = api.with { $0.timeouts.head = .seconds(120) }
    print(user, hits, bytes, patient)
}

private func texts(address: URL) throws {
    func wholeAddress() {
        let api = RemoteHost("https://api.example.com/v1")
        let local: HostConfiguration = "http://[::1]:8080"
        print(api, local)
    }
    let api = RemoteHost(try HostConfiguration(url: address))
    print(api)
}

private func tagged(_ api: RemoteHost) async throws {
    struct Order: Decodable {}
    var options = RouteOptions()
    options.tags[ScreenName.self] = "list"
    let orders: [Order] = try await api.send(
        Route(path: "/orders").tagged(Experiment.self, 2))
    print(orders)
}

private func environment() {
    let api = RemoteHost(.staging)
    print(api)
}

private func faults(_ api: RemoteHost, id: String) async throws {
    do {
        try await api.send("/users/\(id)")
    } catch let error as RemoteError {
        let fault = error.underlyingError as? RouteFault
        if fault?.code == .dotSegment { print("a name of dots") }
    }
}

private func order(_ order: [String: Int], at api: RemoteHost) async throws {
    func showOrders() {}
    do {
        try await api.send(
            Route(path: "/orders", method: .post, body: .json(order)))
    } catch let error as RemoteError where error.mayHaveArrived {
        showOrders()  // the order may be there: look before ordering again
    }
}

private func origins() throws {
    let origin = try WebOrigin(scheme: .https, host: "api.example.com")
    assert(origin.description == "https://api.example.com")
}

private func traced() {
    let api = RemoteHost("api.example.com").intercepting(requests: Trace())
    print(api)
}

private func rules() {
    var github = RemoteHost("api.github.com")
    github.retryRules.advisedStatuses = [403]  // the secondary rate limit
    github.retryRules.methods = [.get, .head]
    _ = github
}

private func absent(_ api: RemoteHost, id: Int) async throws {
    struct User: Decodable, Sendable {}
    let user: User? = try await api.send(
        Route(path: "/users/\(id)"), nilFor: [404, 410])
    _ = user
}

private func missing(_ api: RemoteHost, id: Int) async throws {
    struct User: Decodable {}
    var user: User?
    do {
        user = try await api.send("/users/\(id)")
    } catch let error as RemoteError where error.status == 404 {
        user = nil
    }
    print(user as Any)
}

private func stores(_ api: RemoteHost) async throws {
    let users = Store(
        // The expiry counts if the origin gives no lifetime.
        cacher: MemoryCacher(expiry: .after(.seconds(60))),
        fetcher: api.fetcher(of: User.self) { (id: Int) in
            Route(path: "/users/\(id)")
        })
    let user = try await users[7].requireData()
    let fetcher = api.fetcher(of: User.self) { (id: Int) in
        Route(path: "/users/\(id)")
    }
    let repos = PaginationStore(
        cacher: MemoryCacher<String, [Repo]>(),
        fetcher: api.pages(of: Repo.self) { (org: String) in
            Route(path: "/orgs/\(org)/repos", query: ["per_page": 50])
        })
    await repos["apple"].requestNextData()
    print(user, fetcher)
}

private func cursors(_ api: RemoteHost) {
    struct MessagePage: Decodable {
        var messages: [Message]
        var olderCursor: String?
        var newerCursor: String?
    }
    let messages = api.pages(
        in: MessagePage.self, elements: { $0.messages }, next: { $0.olderCursor },
        prev: { $0.newerCursor }
    ) { (room: String, cursor: PageCursor?) in
        Route(
            path: "/rooms/\(room)/messages",
            query: ["after": cursor?.next, "before": cursor?.prev])
    }
    print(messages)
}

private func parsers() async throws {
    struct Settings: Decodable {}
    let api = RemoteHost("api.example.com").with {
        $0.parser = PropertyListParser()
    }
    let settings: Settings = try await api.send("/settings")
    print(settings)
}

private func otherFormats(_ api: RemoteHost) {
    struct SearchResult: Decodable {
        var items: [Repo]
    }
    let pictures = Store(
        cacher: MemoryCacher<String, Picture>(),
        fetcher: api.fetcher(parsing: { try Picture(png: $0.value) }) { name in
            Route(
                path: "/pictures/\(name)",
                options: RouteOptions(accept: "image/png"))
        })
    let hits = api.pages(
        in: SearchResult.self, elements: { $0.items }
    ) { (words: String) in
        Route(path: "/search/repositories", query: ["q": words])
    }
    let repos = api.pages(
        of: Repo.self, numberedFrom: 1, size: 50
    ) { (org: String, number: Int) in
        Route(path: "/orgs/\(org)/repos", query: ["page": number, "per_page": 50])
    }
    let lines = api.pages(parsing: { response in
        let text = String(decoding: response.value, as: UTF8.self)
        return Page(
            text.split(separator: "\n").map(String.init),
            nextKey: response.fields["X-Next"])
    }) { (log: String, cursor: PageCursor?) in
        Route(
            path: "/logs/\(log)", query: ["from": cursor?.next],
            options: RouteOptions(accept: .plainText))
    }
    print(pictures, hits, repos, lines)
}

private func ownFreshness(_ api: RemoteHost, id: Int) async throws -> FetchResult<User> {
    let response = try await api.response(for: Route(path: "/users/\(id)"), as: User.self)
    let etag = Validator(of: response)?.entityTag
    print(etag ?? "none")
    return .modified(
        response.value, Freshness(of: response), Validator(of: response))
}

private func cursorRoute(room: String, cursor: PageCursor?) -> Route {
    Route(
        path: "/rooms/\(room)/messages",
        query: ["after": cursor?.next, "before": cursor?.prev])
}

private func tokens(saved: ShopToken) {
    let tokens = Authorization.bearer(saved) { current, unauthenticated in
        try await unauthenticated.send(
            TokenRoute.refresh(token: current.refreshToken))
    }
    let api = RemoteHost("api.example.com").authorized(by: tokens)
    print(api)
}

private func sharedTokens(saved: ShopToken, sharedDirectory: URL) {
    let tokens = RefreshingTokens(
        saved,
        keptIn: FileCacher(directory: sharedDirectory, sharing: .processes)
    ) { current, unauthenticated in
        try await unauthenticated.send(
            "/tokens", method: .post,
            parameters: ["refresh": current.refreshToken])
    }
    print(tokens.current)
}

private func online(_ repositories: StoreFlowable<Int, Repo>) async throws {
    for await status in try Connectivity.system().statuses where status == .online {
        await repositories.refresh()
    }
}

private func paths(prefetchPictures: () async throws -> Void) async throws {
    for await path in try Connectivity.system().paths
    where path.isExpensive == false {
        try await prefetchPictures()
    }
}

private func streams(_ api: RemoteHost, file: FileHandle, url: URL, digest: String, apply: (String) -> Void) async throws {
    try await api.download(Route(path: "/films/7.mp4"), to: url, sha256: digest) {
        print($0.fraction ?? 0)
    }
    let bytes = try await api.bytes(for: Route(path: "/export"))
    for try await piece in bytes { try file.write(contentsOf: piece) }
    for try await line in try await api.bytes(for: Route(path: "/log")).lines() {
        print(line)
    }
    for try await event in api.events(for: Route(path: "/changes")) {
        apply(event.data)
    }
    let photo: Photo = try await api.upload(
        Route(path: "/photos", method: .post, body: .file(url))
    ) { progress in
        print(progress.fraction ?? 0)
    }
    print(photo)
}

private func events(_ chunks: [Data], handle: (ServerSentEvent) -> Void) throws {
    var parser = ServerSentEvents()
    for chunk in chunks {
        for event in try parser.consume(chunk) { handle(event) }
    }
}

private func completions(
    at api: RemoteHost, _ prompt: [String: String], show: (String) -> Void
) async throws {
    let completion = Route(
        path: "/chat/completions", method: .post, body: .json(prompt))
    for try await event in api.events(for: completion) {
        show(event.data)
    }
    let body = try await api.bytes(for: completion)
    for try await event in body.events() { show(event.data) }
}

private struct Profile { var photoURL: URL }

private func addresses(at api: RemoteHost, _ profile: Profile) async throws {
    let photo = try await api.data(for: Route(to: profile.photoURL))
    print(photo.count)
    let page = try await api.response(
        for: Route(path: "/repos"), as: [Repo].self)
    var repos = page.value
    if let link = page.fields.link("next") {
        repos += try await api.send(link: link, in: page)
    }
    print(repos.count)
}

private func links(_ response: RemoteResponse<Data>) {
    let next = response.fields.link("next")
    print(next as Any)
}

private func problems(_ error: RemoteError, show: (String?, _ balance: Problem.Value?) -> Void) {
    func show(_ detail: String?, balance: Problem.Value?) {}
    if let problem = error.problem,
        problem.type == "https://example.com/probs/out-of-credit"
    {
        show(problem.detail, balance: problem.extensions["balance"])
    }
}

private func recording(_ route: Route, file: URL) async throws {
    // Once, against the real server:
    let recorder = ExchangeRecorder(recording: URLSessionTransport())
    _ = try await RemoteHost("api.example.com", transport: recorder).data(
        for: route)
    try recorder.exchanges.encoded().write(to: file)

    // From then on:
    let exchanges = try RecordedExchanges(decoding: Data(contentsOf: file))
    let api = RemoteHost("api.example.com", transport: exchanges.transport())
    print(api)
}

private func pieces(of request: HTTPRequest) async throws {
    struct Digest { mutating func update(_ data: Data) {} }
    var digest = Digest()
    let response = HTTPResponse(
        status: 200, url: request.url, body: Data("hello".utf8))
    for try await piece in response.body { digest.update(piece) }
}

#if os(Linux)
private func curl() throws {
    let transport = try CurlTransport()
    let api = RemoteHost("api.example.com", transport: transport)
    print(transport)  // libcurl 7.88.1
    // Prints “libcurl 7.88.1”, or “URLSession (libcurl.so.4 cannot be loaded)”.
    print(api.transport)
}
#endif
