import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing

/// Which transport a test runs over: the behaviour must be the same.
enum TransportKind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case session, curl, memory

    static var allCases: [TransportKind] { RealTransport.available.contains(.curl) ? [.session, .curl, .memory] : [.session, .memory] }

    /// Whether requests go through a socket.
    var isReal: Bool { self != .memory }

    var testDescription: String { rawValue }
}

/// What a server was asked, whichever it is.
struct Asked: Sendable {
    var method: String
    var path: String
    var query: String
    var fields: [String: String]
    var body: Data

    /// A field by its name, without case.
    subscript(name: String) -> String? { fields[name.lowercased()] }
}

/// A server, real or not, and a host that talks to it.
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

    /// A host at the server, with time and settings as a test wants them.
    func host(time: any TimeSource = .system, _ change: (inout RemoteHost) -> Void = { _ in }) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), transport: transport, time: time).with(change)
    }

    /// What was asked, in order.
    var asked: [Asked] { log.withLock(\.self) }

    func asked(_ path: String) -> [Asked] { asked.filter { $0.path == path } }

    /// Answers a method on a path.
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

    /// Answers each request with the next; the last answers all further ones.
    func on(_ method: String, _ path: String, inTurn responses: Response...) {
        let turn = Lock(responses)
        on(method, path) { _ in turn.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] } }
    }

    // MARK: Without a network

    private func answer(_ request: HTTPRequest) async throws -> MemoryTransport.Answer {
        var fields = Dictionary(request.fields.fields.map { ($0.name.lowercased(), $0.value) }) { $0 + ", " + $1 }
        fields["host"] = request.url.host()
        var body = Data()
        switch request.body {
        case .none: break
        case .data(let data): body = data
        case .stream(let stream):
            let read = try stream.open()
            while let piece = try read(1000) { body.append(piece) }
        }
        let path = request.url.path(percentEncoded: true)
        let asked = Asked(
            method: request.method.rawValue, path: path, query: request.url.query(percentEncoded: true) ?? "", fields: fields, body: body)
        log.withLock { $0.append(asked) }
        let handler = answers.withLock { answers in
            answers["\(request.method.rawValue) \(path)"] ?? (request.method == .head ? answers["GET \(path)"] : nil)
        }
        guard let handler else { return .status(404) }
        return try await MemoryTransport.Answer(await handler(asked), isHead: request.method == .head)
    }

    private final class WeakBox: Sendable {
        private struct Weak: Sendable { weak var bench: Bench? }
        private let weak = Lock(Weak())
        var bench: Bench? { weak.withLock(\.bench) }
        func set(_ bench: Bench) { weak.withLock { $0.bench = bench } }
    }
}

extension MemoryTransport.Answer {
    /// What the real server would have sent.
    init(_ response: LoopbackOrigin.Response, isHead: Bool) async throws {
        let body = isHead ? Data() : response.data ?? Data()
        self.init(status: response.status, headers: response.headers.fields.map { ($0.name, $0.value) }, body: body)
        for misbehavior in response.misbehaviors {
            switch misbehavior {
            case .resetBeforeHead: throw TransportFailure(.connectionLost, "reset before the head")
            case .neverAnswer: try await Task.never()
            case .truncate(let count), .reset(let count):
                pieces = [body.prefix(count)]
                failure = TransportFailure(.connectionLost, "broken off")
            case .stall(let count):
                pieces = [body.prefix(count)]
                stalls = true
            case .drip(let count, _):
                pieces = stride(from: 0, to: body.count, by: count).map { Data(body.dropFirst($0).prefix(count)) }
            case .declareLengths(let lengths):
                for length in lengths { self = adding("Content-Length", "\(length)") }
                if let first = lengths.first, first < body.count { pieces = [body.prefix(first)] }
                if let first = lengths.first, first > body.count { failure = TransportFailure(.connectionLost, "shorter than said") }
            default: break
            }
        }
    }
}

extension Task where Success == Never, Failure == Never {
    /// Waits until the task is cancelled.
    static func never() async throws {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        for await _ in stream {}
        continuation.finish()
        throw Swift.CancellationError()
    }
}

/// The error that an operation throws, which must be a ``RemoteError``.
func remoteError(_ operation: () async throws -> Void) async throws -> RemoteError {
    do {
        try await operation()
    } catch let error as RemoteError {
        return error
    }
    throw NoError()
}

struct NoError: Error {}

/// What the tests decode.
struct User: Codable, Hashable, Sendable {
    var id: Int
    var name: String
}
