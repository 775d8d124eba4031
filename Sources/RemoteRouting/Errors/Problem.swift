public import Foundation

/// What a server says went wrong, in the form of RFC 9457.
///
/// ```swift
/// if let problem = error.problem, problem.type == "https://example.com/probs/out-of-credit" {
///     show(problem.detail, balance: problem.extensions["balance"])
/// }
/// ```
///
/// A member of the wrong type is ignored, as RFC 9457 §3.1 has it, and unknown members are kept as extensions.
public struct Problem: Hashable, Sendable {
    /// A JSON value, as extensions have them.
    public indirect enum Value: Hashable, Sendable {
        /// `null`
        case null
        /// A Boolean.
        case flag(Bool)
        /// A number.
        case number(Double)
        /// A text.
        case text(String)
        /// A list.
        case list([Value])
        /// An object.
        case fields([String: Value])
    }

    /// What kind of problem this is: a URI reference; `about:blank` says no more than the status does.
    public var type = "about:blank"
    /// A short summary of the kind of problem.
    public var title: String?
    /// The status as the document has it, which is advice only.
    public var status: Int?
    /// What is special about this occurrence.
    public var detail: String?
    /// Which occurrence this is: a URI reference.
    public var instance: String?
    /// All other members.
    public var extensions: [String: Value] = [:]

    /// Reads a problem document.
    ///
    /// - Parameter data: A JSON object; `nil` is returned for anything else.
    public init?(json data: Data) {
        // Of no interest why it is none: the answer is an error already, and stays one without the explanation.
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

    /// Reads the problem that an answer carries.
    ///
    /// - Parameters:
    ///   - data: The body of the answer.
    ///   - type: Its media type; `nil` is returned for all but `application/problem+json`.
    init?(data: Data, type: MimeType?) {
        guard type?.essence == MimeType.problemJSON.essence else { return nil }
        self.init(json: data)
    }

    private static func text(_ value: Value?) -> String? {
        if case .text(let text)? = value { return text }
        return nil
    }
}

extension Problem.Value: Decodable {
    /// Reads any JSON value.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = Problem.Value.read(Bool.self, container) {
            self = .flag(flag)
        } else if let number = Problem.Value.read(Double.self, container) {
            self = .number(number)
        } else if let text = Problem.Value.read(String.self, container) {
            self = .text(text)
        } else if let list = Problem.Value.read([Problem.Value].self, container) {
            self = .list(list)
        } else {
            self = .fields(try container.decode([String: Problem.Value].self))
        }
    }

    /// A value of one type; `nil` where it is of another, which is then tried.
    private static func read<Result: Decodable>(_ type: Result.Type, _ container: any SingleValueDecodingContainer) -> Result? {
        try? container.decode(type)
    }
}
