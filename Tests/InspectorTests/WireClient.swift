#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import LoopbackOrigin
import Trials

/// A TCP client with access to the raw bytes. Never blocks a thread, because the server's handlers need the threads too.
final class WireClient {
    struct Response {
        var status: Int
        var head: String
        var body: Data

        var text: String { String(decoding: body, as: UTF8.self) }

        /// The value of a field, or `nil`.
        subscript(name: String) -> String? {
            for line in head.split(separator: "\r\n") where line.lowercased().hasPrefix(name.lowercased() + ":") {
                return line.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            }
            return nil
        }
    }

    private var descriptor: Int32
    private var pending = Data()
    private(set) var isEnded = false

    init(port: Int) throws {
        descriptor = openSocket()
        let isConnected = withLoopbackAddress(port: UInt16(port)) { connect(descriptor, $0, $1) == 0 }
        guard descriptor >= 0, isConnected else { throw POSIXError(.ECONNREFUSED) }
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    deinit { hangUp() }

    func hangUp() {
        if descriptor >= 0 { _ = close(descriptor) }
        descriptor = -1
    }

    /// Sends bytes; stops quietly if the server closes the connection.
    ///
    /// - Parameter untilAnswered: Whether to stop once the server responds. It closes the connection soon after a refusal, and a client
    ///   that still sends may lose the response.
    func write(_ bytes: Data, untilAnswered: Bool = false) async throws {
        var rest = bytes
        try await until("the bytes are sent") {
            if untilAnswered {
                readSome()
                if isEnded || !pending.isEmpty { return true }
            }
            #if canImport(Darwin)
            let flags: Int32 = 0
            #else
            let flags = Int32(MSG_NOSIGNAL)
            #endif
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, min($0.count, 262_144), flags) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EAGAIN { return true }
            return rest.isEmpty
        }
    }

    /// Reads available bytes without waiting.
    private func readSome() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count > 0 {
                pending += buffer.prefix(count)
            } else {
                if count == 0 || (errno != EAGAIN && errno != EINTR) { isEnded = true }
                return
            }
        }
    }

    /// Waits until the server closes the connection.
    func end() async throws {
        try await until("the server closes the connection") {
            readSome()
            return isEnded
        }
    }

    /// Waits for the next whole response; `nil` if the connection ends without one.
    func response() async throws -> Response? {
        var found: Response?
        try await until("a response arrives") {
            readSome()
            if let end = pending.range(of: Data("\r\n\r\n".utf8)) {
                let head = String(decoding: pending[..<end.lowerBound], as: UTF8.self)
                let status = Int(head.split(separator: " ").dropFirst().first ?? "") ?? 0
                var response = Response(status: status, head: head, body: Data())
                let length = response["Content-Length"].flatMap { Int($0) } ?? 0
                if pending.distance(from: end.upperBound, to: pending.endIndex) >= length {
                    response.body = pending[end.upperBound...].prefix(length)
                    pending = Data(pending[end.upperBound...].dropFirst(length))
                    found = response
                    return true
                }
            }
            return isEnded
        }
        return found
    }
}

/// Requests to an inspector.
struct Visitor {
    let port: Int
    /// The path of the page, with the token.
    let base: String
    var page = "visitor"

    init(_ url: URL) {
        port = url.port ?? 0
        base = url.path().hasSuffix("/") ? url.path() : url.path() + "/"
    }

    func request(_ method: String = "GET", _ path: String, host: String? = nil, fields: [String] = [], body: String? = nil) -> Data {
        var lines = ["\(method) \(path) HTTP/1.1", "Host: \(host ?? "127.0.0.1:\(port)")"] + fields
        if let body { lines.append("Content-Length: \(body.utf8.count)") }
        return Data((lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")).utf8)
    }

    /// Sends one request on a connection of its own.
    func send(
        _ method: String = "GET", _ path: String, host: String? = nil, fields: [String] = [], body: String? = nil
    ) async throws -> WireClient.Response? {
        let client = try WireClient(port: port)
        try await client.write(request(method, path, host: host, fields: fields, body: body))
        return try await client.response()
    }

    func get(_ path: String) async throws -> [String: Any] {
        let response = try await send("GET", base + path)
        guard let response, response.status == 200 else { throw Unexpected(status: response?.status ?? 0) }
        return try JSONSerialization.jsonObject(with: response.body) as? [String: Any] ?? [:]
    }

    func act(_ action: String, _ more: String = "") async throws -> Int {
        let body = #"{"page":"\#(page)","action":"\#(action)"\#(more.isEmpty ? "" : "," + more)}"#
        return try await send("POST", base + "act", fields: ["Content-Type: application/json"], body: body)?.status ?? 0
    }

    /// The number of the row with a title.
    func row(_ title: String, of subject: Int) async throws -> Int? {
        let rows = try await get("list?subject=\(subject)&count=200")["rows"] as? [[Any]] ?? []
        return rows.first { $0.count > 1 && $0[1] as? String == title }?.first as? Int
    }

    struct Unexpected: Error { var status: Int }
}

/// A page that follows the events on a connection of its own, until it is left.
final class Follower {
    let client: WireClient
    let visitor: Visitor
    private var last: String?

    init(_ visitor: Visitor) throws {
        client = try WireClient(port: visitor.port)
        self.visitor = visitor
    }

    func ask() async throws {
        let fields = last.map { ["Last-Event-ID: \($0)"] } ?? []
        try await client.write(visitor.request("GET", visitor.base + "events?page=\(visitor.page)", fields: fields))
    }

    /// Waits for the next event.
    func next() async throws -> [String: Any] {
        try await ask()
        guard let response = try await client.response(), response.status == 200 else { throw Visitor.Unexpected(status: 0) }
        var event: [String: Any] = [:]
        for line in response.text.split(separator: "\n") {
            if line.hasPrefix("id: ") { last = String(line.dropFirst(4)) }
            if line.hasPrefix("data: ") {
                event = try JSONSerialization.jsonObject(with: Data(line.dropFirst(6).utf8)) as? [String: Any] ?? [:]
            }
        }
        return event
    }
}
