public import Foundation

/// A server's description of a problem (RFC 9457).
///
/// ```swift
/// if let problem = error.problem,
///     problem.type == "https://example.com/probs/out-of-credit"
/// {
///     show(problem.detail, balance: problem.extensions["balance"])
/// }
/// ```
///
/// A member of the wrong type is ignored (RFC 9457 §3.1), and unknown members are kept as extensions.
public struct Problem: Hashable, Sendable {
    /// A JSON value of an extension.
    public indirect enum Value: Hashable, Sendable {
        /// JSON `null`, which is not the same as a missing member.
        case null
        /// A Boolean: `true` or `false`.
        case flag(Bool)
        /// A number, as the nearest `Double`.
        case number(Double)
        /// A string, without its quotes and escapes.
        case text(String)
        /// An array, in its order.
        case list([Value])
        /// An object, without the order of its members.
        case fields([String: Value])
    }

    /// The kind of problem, a URI reference; `about:blank` adds nothing to the status.
    public var type = "about:blank"
    /// A short summary of the kind of problem.
    public var title: String?
    /// The status that the document states, which is only advisory.
    public var status: Int?
    /// The explanation of this occurrence, to be read and not parsed (RFC 9457 §3.1.4).
    public var detail: String?
    /// The identity of this occurrence, a URI reference.
    public var instance: String?
    /// All members besides the five of RFC 9457 §3.1, by their names.
    public var extensions: [String: Value] = [:]

    /// Decodes a problem document.
    ///
    /// - Parameter data: A JSON object of at most 32 levels; for anything else, the initializer returns `nil`.
    public init?(json data: Data) {
        // Ignores the reason, because the response is an error even without an explanation.
        guard let value = try? JSONDecoder().decode(Value.self, from: data), case .fields(var members) = value else { return nil }
        type = Problem.text(members.removeValue(forKey: "type")) ?? "about:blank"
        title = Problem.text(members.removeValue(forKey: "title"))
        detail = Problem.text(members.removeValue(forKey: "detail"))
        instance = Problem.text(members.removeValue(forKey: "instance"))
        if case .number(let number)? = members.removeValue(forKey: "status") {
            let status = Int(exactly: number)
            self.status = status.flatMap { (100...599).contains($0) ? $0 : nil }
        }
        extensions = members
    }

    private static func text(_ value: Value?) -> String? {
        if case .text(let text)? = value { text } else { nil }
    }
}

extension Problem.Value: Decodable {
    /// Decodes any JSON value, because an extension may have any.
    public init(from decoder: any Decoder) throws {
        // Each level takes kilobytes of the stack, which is small on some systems, and the server chooses their number.
        guard decoder.codingPath.count < 32 else {
            throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "more than 32 levels"))
        }
        // Ignores each error, because the next type may fit.
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let list = try? container.decode([Problem.Value].self) {
            self = .list(list)
        } else {
            self = .fields(try container.decode([String: Problem.Value].self))
        }
    }
}
