import LoopbackOrigin
import StorePlatform
import Trials

/// A TCP client with access to the raw bytes; only a hang reaches the limit of its waits.
final class RawClient {
    struct Failure: Error, CustomStringConvertible {
        let description: String
        let number: Int32

        init(_ operation: String, _ number: Int32 = errno) {
            self.number = number
            description = "\(operation): \(String(cString: strerror(number)))"
        }
    }

    /// The way in which a connection ended.
    enum End: Equatable {
        case closed
        case reset
    }

    private var descriptor: Int32
    /// Bytes that have arrived but were not read yet.
    private var pending: [UInt8] = []

    init(_ origin: borrowing LoopbackOrigin) throws {
        descriptor = openSocket()
        guard descriptor >= 0 else { throw Failure("socket") }
        guard withLoopbackAddress(port: origin.port, { connect(descriptor, $0, $1) == 0 }) else {
            let failure = Failure("connect")
            hangUp()
            throw failure
        }
    }

    /// Connects, and sends a request.
    convenience init(_ origin: borrowing LoopbackOrigin, get target: String, _ headers: String..., method: String = "GET") throws {
        try self.init(origin)
        try get(target, headers, method)
    }

    deinit { hangUp() }

    func hangUp() {
        if descriptor >= 0 { _ = close(descriptor) }
        descriptor = -1
    }

    /// Sends text unchanged.
    func write(_ text: String) throws { try write(bytes: Array(text.utf8)) }

    func write(bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            #if canImport(Darwin)
            let flags: Int32 = 0
            #else
            let flags = Int32(MSG_NOSIGNAL)
            #endif
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
            guard count > 0 else { throw Failure("send") }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends a request without a body.
    func get(_ target: String, _ headers: String..., method: String = "GET") throws { try get(target, headers, method) }

    private func get(_ target: String, _ headers: [String], _ method: String) throws {
        let lines = (["\(method) \(target) HTTP/1.1", "Host: x"] + headers).map { $0 + "\r\n" }.joined()
        try write(lines + "\r\n")
    }

    /// Returns the bytes until the connection ends, and the way in which it ends.
    func readToEnd() throws -> (text: String, end: End) {
        while true {
            if let end = try receive() {
                defer { pending = [] }
                return (String(decoding: pending, as: UTF8.self), end)
            }
        }
    }

    /// Returns exactly that many bytes.
    func read(_ count: Int) throws -> String {
        while pending.count < count {
            guard try receive() == nil else { throw Failure("ended after \(String(decoding: pending, as: UTF8.self))", 0) }
        }
        defer { pending.removeFirst(count) }
        return String(decoding: pending.prefix(count), as: UTF8.self)
    }

    /// Returns the text up to and including `mark`.
    func read(through mark: String) throws -> String {
        var text = ""
        while !text.hasSuffix(mark) { text += try read(1) }
        return text
    }

    /// Returns a whole response with a `Content-Length`.
    func readResponse() throws -> (head: String, body: String) {
        let head = try read(through: "\r\n\r\n")
        let length = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
        return (head, try read(length.flatMap { Int($0.dropFirst(16)) } ?? 0))
    }

    /// Returns the raw body of a response with a `Content-Length`.
    func readBodyBytes() throws -> [UInt8] {
        let head = try read(through: "\r\n\r\n")
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
        while pending.count < length, try receive() == nil {}
        defer { pending.removeFirst(min(length, pending.count)) }
        return Array(pending.prefix(length))
    }

    /// Returns whether bytes arrive, or the connection ends, within that many milliseconds.
    func hears(within milliseconds: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return !pending.isEmpty || poll(&entry, 1, milliseconds) > 0
    }

    /// Waits for more bytes; returns the end of the connection, or `nil`.
    private func receive() throws -> End? {
        guard hears(within: 0) || waits() else { throw Failure("nothing arrived after \(String(decoding: pending, as: UTF8.self))", 0) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count > 0 {
            pending += buffer.prefix(count)
            return nil
        }
        if count == 0 { return .closed }
        guard errno == ECONNRESET else { throw Failure("recv") }
        return .reset
    }

    private func waits() -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, Int32(hangLimit.components.seconds * 1000)) > 0
    }
}
