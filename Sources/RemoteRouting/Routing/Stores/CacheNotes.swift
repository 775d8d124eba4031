internal import Foundation
internal import RemoteHTTP
internal import StoreCore
internal import StorePlatform

/// The parts of a response that a store keeps with its content, as the notes of the content's validator.
///
/// A later 304 is merged into the kept fields (RFC 9111 §4.3.4), and another selection makes the content a miss (RFC 9111 §4.1).
struct CacheNotes: Codable, Hashable, Sendable {
    /// The names of the response fields that are kept; each message has its own `Date` and `Age`.
    static let names = ["Cache-Control", "Expires", "Vary"]
    /// The maximum number of bytes of the kept fields and of `Vary`, and the maximum number of nominated fields.
    static let (textLimit, nameLimit) = (4096, 64)

    var fields: [String: [String]] = [:]
    /// Digests of the request fields that `Vary` nominates, by their names in lower case; `*` stands for all fields. `nil` without such
    /// fields.
    private(set) var selection: [String: String]?

    init?(_ validator: Validator?) {
        // Ignores the reason: notes of another form say nothing about the content.
        guard let notes = validator?.notes, let read = try? JSONDecoder().decode(Self.self, from: Data(notes.utf8)) else { return nil }
        self = read
    }

    init(_ exchange: CachedExchange) {
        for name in CacheNotes.names {
            let lines = exchange.response.values(of: name)
            // Longer fields are no use for a cache; without them, a 304 counts on its own.
            if !lines.isEmpty, lines.byteCount <= CacheNotes.textLimit { fields[name] = lines }
        }
        let varied = exchange.variedNames ?? ["*"]
        let names: Set<String> = varied.contains("*") ? ["*"] : varied
        let request = exchange.redirectedFields ?? exchange.request
        if !names.isEmpty {
            selection = Dictionary(uniqueKeysWithValues: names.map { ($0, CacheNotes.digest(of: $0, in: request)) })
        }
    }

    var text: String? {
        guard !fields.isEmpty || selection != nil else { return nil }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Strings in dictionaries can always be encoded.
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }

    func isSelected(by request: HTTPFields) -> Bool {
        selection?.allSatisfy { name, digest in CacheNotes.digest(of: name, in: request) == digest } ?? true
    }

    /// Returns the digest of a field's values, which may be credentials; empty for a missing field.
    private static func digest(of name: String, in fields: HTTPFields) -> String {
        guard let value = name == "*" ? fields.allSelecting : fields[name] else { return "" }
        return String(SHA256.digest(of: [UInt8](value.utf8)).hex.prefix(32))
    }
}

extension Validator {
    /// The validator that a store saves with the content of a response: its tag and date, and the notes on the response.
    ///
    /// A later 304 is merged into the fields of the response if the notes keep them.
    init?(_ own: Validator?, notesOf exchange: CachedExchange, keepsFields: Bool = true) {
        var notes = CacheNotes(exchange)
        // Without a validator, no 304 follows.
        if own == nil || !keepsFields { notes.fields = [:] }
        let text = notes.text
        guard own != nil || text != nil else { return nil }
        self = own ?? Validator()
        self.notes = text
    }

    /// Returns whether the request of a call has the values of all fields that selected the version (RFC 9111 §4.1); sends nothing.
    func fits(_ call: () throws -> RouteCall) async -> Bool {
        // Saves reading the notes of most validators.
        guard notes?.contains("\"selection\"") == true else { return true }
        guard let notes = CacheNotes(self) else { return false }
        // Ignores the reason: the request that follows meets the same failure.
        guard let fields = try? await call().selectingFields(for: notes) else { return false }
        return notes.isSelected(by: fields)
    }
}

extension CachedExchange {
    /// The lower-case names of the request fields that `Vary` nominates, with `*` for any field; `nil` if there are too many. Omits
    /// `Accept-Encoding`, because bodies are decoded.
    var variedNames: Set<String>? {
        let lines = response.values(of: "Vary") + redirects.flatMap(\.vary)
        guard lines.byteCount <= CacheNotes.textLimit else { return nil }
        let varied = lines.fieldNames.subtracting(["", "accept-encoding"])
        return varied.count <= CacheNotes.nameLimit ? varied : nil
    }

    /// The same exchange with the stored fields that its 304 did not replace (RFC 9111 §3.2, §4.3.4).
    func confirming(_ known: Validator?) -> CachedExchange {
        guard let notes = CacheNotes(known) else { return self }
        var copy = self
        for (name, lines) in notes.fields where response[name] == nil {
            // Ignores damaged notes: the field is then missing, as before the first response.
            for line in lines { try? copy.response.append(name, line) }
        }
        return copy
    }

    /// The validator of content that a 304 has confirmed: the new tag and date replace the stored ones.
    func validator(replacing known: Validator) -> Validator {
        let new = Validator(of: response, now: respondedAt)
        let own = Validator(entityTag: new?.entityTag ?? known.entityTag, lastModified: new?.lastModified ?? known.lastModified)
        return Validator(own, notesOf: self) ?? own
    }
}

extension HTTPFields {
    /// The fields of a request as one text, without those that a store, a stream or a transport adds to a request for the same content.
    fileprivate var allSelecting: String {
        let others: Set<String> = [
            "if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "cache-control", "accept-encoding",
            "last-event-id", "idempotency-key",
        ]
        let lines = fields.filter { !others.contains($0.name.lowercased()) }.map { "\($0.name.lowercased()): \($0.value)" }
        return lines.sorted().joined(separator: "\n")
    }
}

extension [String] {
    fileprivate var byteCount: Int { reduce(0) { $0 + $1.utf8.count } }

    /// The names in the lines of a `Vary` field, in lower case.
    var fieldNames: Set<String> {
        Set(flatMap { $0.split(separator: ",") }.map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() })
    }
}

extension RouteCall {
    /// The fields with which the call would send its first request, after credentials, interceptors and cookies.
    ///
    /// Waits for a new token, and reads cookies, only if they may have selected the content. Other content is shown without them.
    fileprivate func selectingFields(for notes: CacheNotes) async throws -> HTTPFields {
        func mayCount(_ name: String) -> Bool { notes.selection?.keys.contains { $0 == name || $0 == "*" } == true }
        var request = self.request
        if let authorization = host.authorization, options.requiresAuth ?? true {
            _ = try await authorization.apply(&request.fields, mayCount("authorization"))
        }
        request = try await intercepted(request)
        if let cookies, mayCount("cookie") { request = try await adding(cookies, to: request, after: []) }
        return request.fields
    }
}
