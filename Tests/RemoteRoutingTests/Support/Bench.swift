import Foundation
import LoopbackOrigin
import RemoteRouting
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

/// The transport of a test; the behavior must be the same on each.
enum TransportKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case session, curl, memory

    static var allCases: [TransportKind] { RealTransport.available.contains(.curl) ? [.session, .curl, .memory] : [.session, .memory] }

    /// Whether requests go through a socket.
    var isReal: Bool { self != .memory }

    var testDescription: String { rawValue }
}

/// A request as a real server or a `MemoryTransport` received it.
struct Asked: Sendable {
    var method: String
    var path: String
    var query: String
    var fields: [String: String]
    var body: Data

    /// The value of a field; the case of its name is ignored.
    subscript(name: String) -> String? { fields[name.lowercased()] }
}

/// A server with hosts that send requests to it, over a socket or in memory.
final class Bench: Sendable {
    typealias Response = LoopbackOrigin.Response

    let kind: TransportKind
    let origin: LoopbackOrigin
    let transport: any Transport
    let memory: MemoryTransport?
    private let answers = Lock<[String: @Sendable (Asked) async -> Response]>([:])
    private let log = Lock<[Asked]>([])

    init(_ kind: TransportKind = .session) throws {
        self.kind = kind
        origin = try LoopbackOrigin()
        switch kind {
        case .session, .curl:
            transport = try (kind == .curl ? RealTransport.curl : .urlSession).make()
            memory = nil
        case .memory:
            let box = WeakBox()
            let memory = MemoryTransport { request in
                guard let bench = box.bench else { throw TransportFailure(.unreachable, "the bench is gone") }
                return try await bench.answer(request)
            }
            transport = memory
            self.memory = memory
            box.set(self)
        }
    }

    convenience init(
        _ kind: TransportKind = .session, on method: String, _ path: String, _ answer: @escaping @Sendable (Asked) async -> Response
    ) throws {
        try self.init(kind)
        on(method, path, answer)
    }

    convenience init(_ kind: TransportKind = .session, on method: String, _ path: String, inTurn responses: Response...) throws {
        try self.init(kind)
        serve(method, path, responses)
    }

    func host(time: any TimeSource = .system, _ change: (inout RemoteHost) -> Void = { _ in }) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), transport: transport, time: time).with {
            // A test of a deadline sets its own one, or controls the time.
            if time is SystemTime { $0.timeouts = .untilHang }
            change(&$0)
        }
    }

    /// Creates a host without deadlines; all of its random numbers are `unit`.
    func host(time: any TimeSource = .system, unit: Double) -> RemoteHost { host(time: time).withoutDeadlines(unit: unit) }

    var asked: [Asked] { log.withLock(\.self) }

    func asked(_ path: String) -> [Asked] { asked.filter { $0.path == path } }

    func on(_ method: String, _ path: String, _ answer: @escaping @Sendable (Asked) async -> Response) {
        answers.withLock { $0["\(method) \(path)"] = answer }
        guard kind.isReal, let method = LoopbackOrigin.Method(rawValue: method) else { return }
        origin.on(method, path) { [weak self] request in
            let fields = Dictionary(request.headers.fields.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
            let target = request.target.split(separator: "?", maxSplits: 1).map(String.init)
            let asked = Asked(
                method: request.method.rawValue, path: request.path, query: target.count > 1 ? target[1] : "", fields: fields,
                body: request.body)
            self?.log.withLock { $0.append(asked) }
            return await answer(asked)
        }
    }

    /// Serves the responses in order, and repeats the last one.
    func on(_ method: String, _ path: String, inTurn responses: Response...) { serve(method, path, responses) }

    private func serve(_ method: String, _ path: String, _ responses: [Response]) {
        let turn = Lock(responses)
        on(method, path) { _ in turn.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
    }

    func on(_ method: String, _ path: String, behind gate: WatchedState<Bool>, _ response: Response) {
        on(method, path) { _ in
            do { try await gate.wait { $0 ? () : nil } } catch { return .status(500) }
            return response
        }
    }

    private func answer(_ request: HTTPRequest) async throws -> MemoryTransport.Response {
        var fields = Dictionary(request.fields.fields.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
        fields["host"] = request.url.host()
        var body = Data()
        switch request.body {
        case .none: break
        case .data(let data): body = data
        case .stream(let stream): body = try await stream.collect()
        }
        let path = request.url.path(percentEncoded: true)
        let asked = Asked(
            method: request.method.rawValue, path: path, query: request.url.query(percentEncoded: true) ?? "", fields: fields, body: body)
        log.withLock { $0.append(asked) }
        let handler = answers.withLock { answers in
            answers["\(request.method.rawValue) \(path)"] ?? (request.method == .head ? answers["GET \(path)"] : nil)
        }
        guard let handler else { return .status(404) }
        return try await MemoryTransport.Response(await handler(asked), isHead: request.method == .head)
    }

    private final class WeakBox: Sendable {
        private struct Weak: Sendable { weak var bench: Bench? }
        private let weak = Lock(Weak())
        var bench: Bench? { weak.withLock(\.bench) }
        func set(_ bench: Bench) { weak.withLock { $0.bench = bench } }
    }
}

extension MemoryTransport.Response {
    /// Creates the response that the real server would send.
    init(_ response: LoopbackOrigin.Response, isHead: Bool) async throws {
        let body = isHead ? Data() : response.data ?? Data()
        self.init(status: response.status, headers: response.headers.fields.map { ($0.name, $0.value) }, body: body)
        for misbehavior in response.misbehaviors {
            switch misbehavior {
            case .resetBeforeHead: throw TransportFailure(.connectionLost, "reset before the head")
            case .neverAnswer: try await untilCanceled()
            case .truncate(let count), .reset(let count):
                pieces = [body.prefix(count)]
                failure = TransportFailure(.connectionLost, "truncated")
            case .stall(let count):
                pieces = [body.prefix(count)]
                stalls = true
            case .drip(let count, _): pieces = stride(from: 0, to: body.count, by: count).map { Data(body.dropFirst($0).prefix(count)) }
            case .declareLengths(let lengths):
                for length in lengths { self = adding("Content-Length", "\(length)") }
                if let first = lengths.first, first < body.count { pieces = [body.prefix(first)] }
                if let first = lengths.first, first > body.count {
                    failure = TransportFailure(.connectionLost, "shorter than its Content-Length")
                }
            default: break
            }
        }
    }
}

/// Returns the ``RemoteError`` that an operation throws; rethrows other errors, and throws if the operation succeeds.
func remoteError(_ operation: () async throws -> Void) async throws -> RemoteError {
    do { try await operation() } catch let error as RemoteError { return error }
    throw TestError()
}

struct TestError: Error {}

struct Changing: RequestInterceptor {
    var change: @Sendable (inout HTTPRequest) async throws -> Void
    func intercept(_ request: inout HTTPRequest) async throws { try await change(&request) }
}

struct Reading: ResponseInterceptor {
    var read: @Sendable (inout HTTPResponse, HTTPRequest) async throws -> Void
    func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws { try await read(&response, request) }
}

/// A custom transport, which supports no options.
struct CustomTransport: Transport {
    var send: @Sendable (HTTPRequest, ExchangeLimits) async throws -> HTTPResponse
    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse { try await send(request, limits) }
}

struct User: Codable, Hashable, Sendable {
    var id: Int
    var name: String
}

extension ManualTime {
    func advance(by duration: Duration, sleepers count: Int, fileID: String = #fileID, line: Int = #line) async throws {
        try await sleepers(atLeast: count, fileID: fileID, line: line)
        advance(by: duration)
    }

    /// Waits for a sleeper, expects that the next deadline is a duration away, and advances the clocks to it.
    func advance(overSleepOf duration: Duration, at location: SourceLocation = #_sourceLocation) async throws {
        try await sleepers(atLeast: 1, fileID: location.fileID, line: location.line)
        #expect(nextDeadline == now.advanced(by: duration), sourceLocation: location)
        advanceToNextDeadline()
    }
}

/// Runs an operation several times at once; returns the results in the order of their ends.
@discardableResult
func atOnce<Result: Sendable>(
    _ count: Int, _ operation: @escaping @Sendable (_ number: Int) async throws -> Result
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for number in 0..<count { group.addTask { try await operation(number) } }
        var results: [Result] = []
        for try await result in group { results.append(result) }
        return results
    }
}

extension AsyncSequence where Element == Data {
    func whole() async throws -> Data {
        var whole = Data()
        for try await piece in self { whole += piece }
        return whole
    }
}

extension AsyncSequence where Element == ServerSentEvent {
    func texts() async throws -> [String] {
        var texts: [String] = []
        for try await event in self { texts.append(event.data) }
        return texts
    }
}

extension Bench.Response {
    static func events(_ text: String) -> Self { data(Data(text.utf8), type: "text/event-stream") }
}

extension LoopbackOrigin {
    /// Responds to the requests of a path as soon as a number of them has arrived; returns the number of arrived ones.
    @discardableResult
    func meet(_ count: Int, at path: String = "/*", _ response: Response = .text("x")) -> WatchedState<Int> {
        let arrived = WatchedState(0)
        on(.get, path) { _ in
            arrived.update { $0 += 1 }
            _ = try? await arrived.wait { $0 >= count ? () : nil }
            return response
        }
        return arrived
    }
}

/// Returns what a debugger shows of a value.
func dumped(_ value: Any) -> String {
    var text = ""
    dump(value, to: &text)
    return text
}

enum ProcessState {
    /// The resident memory in bytes; `nil` without a `/proc` file system.
    static var residentBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4096 }
    }

    /// The number of open files and sockets; `nil` without a `/proc` file system.
    static var openFiles: Int? { try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
}

enum RealTransport: String, Sendable, CustomTestStringConvertible {
    case urlSession, curl

    var testDescription: String { rawValue }

    /// The transports that this system supports. `LibraryTests` reports a missing libcurl as a skipped test.
    static let available: [RealTransport] = curlProblem == nil ? [.urlSession, .curl] : [.urlSession]

    static let curlProblem: String? = {
        do {
            _ = try RealTransport.curl.make()
            return nil
        } catch {
            return "\(error)"
        }
    }()

    /// Whether the libcurl is one of version 7, which differs in its HTTP/2.
    static let hasLibcurl7 = (try? RealTransport.curl.make()).map { "\($0)".hasPrefix("libcurl 7.") } ?? false

    /// The number of descriptors that this process may open; both ends of many connections are in it.
    private static let descriptorLimit = LoopbackOrigin.allowOpenDescriptors(20_000)

    /// Creates a transport; the variable `STOREHOUSE_CURL` selects another libcurl.
    func make() throws -> any CountedTransport {
        _ = RealTransport.descriptorLimit
        switch self {
        case .urlSession: return URLSessionTransport()
        case .curl:
            #if os(Linux)
            return try CurlTransport(width: 256, path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"])
            #else
            throw TransportFailure(.unsupported, "libcurl is used on Linux only")
            #endif
        }
    }

    func host(_ port: UInt16, _ change: (inout RemoteHost) -> Void = { _ in }) throws -> RemoteHost {
        RemoteHost(port, over: try make()).with(change)
    }
}

extension RouteOptions.Timeouts {
    static let untilHang = RouteOptions.Timeouts(head: hangLimit, idle: hangLimit, overall: hangLimit)
}

/// Repeats an operation with a limit of real time that doubles, until a busy machine reaches what is tested within the limit.
///
/// - Parameter operation: Returns whether the limit was long enough.
func withGrowingLimit(_ operation: (_ limit: Duration) async throws -> Bool) async throws {
    var limit = Duration.milliseconds(200)
    while try await !operation(limit) { limit = limit * 2 }
}

extension ExchangeLimits {
    /// Limits of which only a hang reaches the deadlines.
    static let untilHang = ExchangeLimits(head: hangLimit, idle: hangLimit)
}

extension RemoteHost {
    /// Creates a host for a port of this machine, with deadlines that only a hang reaches.
    init(_ port: UInt16, over transport: any Transport) {
        self.init(HostConfiguration("127.0.0.1", scheme: .http, port: Int(port)), transport: transport)
        timeouts = .untilHang
    }

    /// Creates a host without a network, with deadlines that only a hang reaches unless the test controls the time.
    ///
    /// The compiler prefers this initializer for a `MemoryTransport`. On a busy machine, even an exchange without a network may exceed the
    /// usual deadlines, and its retry would be an extra request.
    init(
        _ configuration: HostConfiguration, transport: MemoryTransport, limits: HostLimits = HostLimits(), time: any TimeSource = .system
    ) {
        let transport: any Transport = transport
        self.init(configuration, transport: transport, limits: limits, time: time)
        if time is SystemTime { timeouts = .untilHang }
    }

    /// Returns a host that keeps the entries of its log.
    func logged(bodyBytes: Int = 0) -> (RemoteHost, WatchedState<[ExchangeLog.Entry]>) {
        let entries = WatchedState<[ExchangeLog.Entry]>([])
        return (logging(to: ExchangeLog(bodyBytes: bodyBytes) { entry in entries.update { $0.append(entry) } }), entries)
    }

    /// Returns a host without deadlines; all of its random numbers are `unit`.
    func withoutDeadlines(unit: Double) -> RemoteHost {
        with {
            $0.timeouts = .init()
            $0.random = { unit }
        }
    }
}

protocol CountedTransport: Transport {
    var exchangeCount: Int { get }
}

extension URLSessionTransport: CountedTransport {}
#if os(Linux)
extension CurlTransport: CountedTransport {}
#endif

extension RealTransport {
    var kind: TransportKind { self == .curl ? .curl : .session }
}
