internal import Foundation
internal import StoreCore

/// A store on the page: its keys, and the attempts of its fetches.
final class StoreSubject<Param: Hashable & Sendable, Content: Sendable>: Subject {
    let id: Int
    let kind = "store"
    let name: String
    let columns = [
        Column(title: "Key"), Column(title: "State", kind: .phase), Column(title: "Age", kind: .age),
        Column(title: "Expires in", kind: .age),
        Column(title: "Observers", kind: .number), Column(title: "Callers", kind: .number), Column(title: "Work"),
    ]

    private weak let store: Store<Param, Content>?
    var object: AnyObject? { store }
    private let board: Board
    private let redacting: (@Sendable (Content) -> any Sendable)?
    private let interception: FetchInterception
    private let listing = Lock(Listing())
    private let record = Lock(Record())
    private let numbers: KeyNumbers<Param>

    /// The keys of the last query, in the order of the table, so that any part of it can be read.
    private struct Listing {
        var filter = KeyFilter.all
        var text = ""
        var keys: [Param] = []
        var usableUntil: ContinuousClock.Instant?
    }

    /// The last shown record, written as text.
    private struct Record {
        var row = 0
        var text = ""
        var isJSON = false
        var usableUntil: ContinuousClock.Instant?
    }

    init(
        _ store: Store<Param, Content>, id: Int, name: String, board: Board, redacting: (@Sendable (Content) -> any Sendable)?
    ) {
        let numbers = KeyNumbers<Param>()
        (self.id, self.name, self.store, self.board, self.redacting, self.numbers) = (id, name, store, board, redacting, numbers)
        interception = Self.intercept(store, id, numbers, board)
    }

    private static func intercept(
        _ store: Store<Param, Content>, _ id: Int, _ numbers: KeyNumbers<Param>, _ board: Board
    ) -> FetchInterception {
        store.interceptFetches { param, target, perform in try await watch(param, target, id, numbers, board, perform) }
    }

    /// Records an attempt of a fetch, and delays or fails it as the pages want.
    private static func watch(
        _ param: Param, _ target: StoreEventKind.Target, _ id: Int, _ numbers: KeyNumbers<Param>, _ board: Board,
        _ perform: () async throws -> StoreEventKind.FetchOutcome
    ) async throws {
        let span = board.timeline.begin(id, title(of: param).short(200), "\(target)", during: board.controls.passed)
        do {
            try await board.controls.pass(id, row: numbers.number(of: param))
            let outcome = try await board.controls.passing(span) { try await perform() }
            if case .notModified = outcome { board.timeline.end(span, "unchanged") } else { board.timeline.end(span, "ok") }
        } catch {
            // The store cancels an attempt at its time limit, too.
            let timeout = StoreError.ofTimeLimit
            board.timeline.end(span, Task.isCancelled && timeout == nil ? "canceled" : "failed", errorText(timeout ?? error, 500))
            throw error
        }
    }

    func leave() { interception.cancel() }

    func summary() async -> Summary? {
        guard let store else { return nil }
        let counts = store.keyCounts
        let live = counts.live == 0 ? "" : ", \(counts.live) live"
        return Summary(count: max(counts.live, counts.memory), note: "\(counts.memory) in memory\(live)", isBusy: counts.live > 0)
    }

    // MARK: Keys

    func rows(_ query: RowQuery) async -> Rows {
        guard let store else { return Rows() }
        let keys = keys(query, of: store)
        let window = keys.dropFirst(query.from).prefix(query.count)
        return Rows(total: keys.count, rows: window.map { (numbers.add($0), cells(of: $0, store.snapshot(of: $0))) })
    }

    /// Returns the keys that match a query, from the last listing if that is recent.
    private func keys(_ query: RowQuery, of store: Store<Param, Content>) -> [Param] {
        let began = ContinuousClock.now
        let text = query.text.lowercased()
        let known = listing.withLock { listing in
            listing.filter == query.filter && listing.text == text && listing.usableUntil.map { began < $0 } ?? false ? listing.keys : nil
        }
        if let known { return known }
        var keys: [Param] = []
        if query.filter == .all {
            var place: KeyPlace? = .start
            while place != nil {
                // A thousand keys for each time that a lock of the store is taken.
                let part = store.listedKeys(from: &place, limit: 1_000)
                keys += text.isEmpty ? part : part.filter { Self.title(of: $0).lowercased().contains(text) }
            }
        } else {
            var page = store.keySnapshots(query.filter, matching: text, limit: 1_000)
            keys += page.keys.map(\.param)
            while !page.isLast {
                page = store.keySnapshots(query.filter, matching: text, after: page, limit: 1_000)
                keys += page.keys.map(\.param)
            }
        }
        // A whole key comes first, so that a link to it leads to its row.
        if !text.isEmpty, let place = keys.firstIndex(where: { Self.title(of: $0).lowercased() == text }) {
            keys.insert(keys.remove(at: place), at: 0)
        }
        // A large listing is used for longer, so that an open page takes a twentieth of a core at most.
        let now = ContinuousClock.now
        let usableUntil = now.advanced(by: max(.milliseconds(500), began.duration(to: now) * 20))
        listing.withLock { $0 = Listing(filter: query.filter, text: text, keys: keys, usableUntil: usableUntil) }
        return keys
    }

    private static func title(of param: Param) -> String { param is UnitParam ? "only key" : "\(param)" }

    private func cells(of param: Param, _ key: KeySnapshot<Param, Content>?) -> [JSON] {
        let title = JSON.string(Self.title(of: param).short(500))
        guard let key else { return [title, .string("gone"), .null, .null, .int(0), .int(0), .string("")] }
        return [
            title, .string(phase(of: key)), .milliseconds(key.age), .milliseconds(key.expiresIn), .int(key.observers), .int(key.callers),
            .string(work(of: key)),
        ]
    }

    private func phase(of key: KeySnapshot<Param, Content>) -> String {
        if key.phase == .completed {
            if key.content == nil { return "empty" }
            if key.isInvalidated || key.expiresIn.map({ $0 <= .zero }) == true { return "stale" }
        }
        return key.phase.rawValue
    }

    private func work(of key: KeySnapshot<Param, Content>) -> String {
        var parts = key.fetches.map { "fetching \($0.target) for \($0.duration.inWords)" }
        switch key.save {
        case .none: break
        case .pending: parts.append("save pending")
        case .running: parts.append("saving")
        case .failed: parts.append("save failed")
        }
        if key.patches > 0 { parts.append("\(key.patches) optimistic") }
        return parts.joined(separator: ", ")
    }

    func item(_ row: Int) async -> Item? {
        guard let store, let param = numbers.key(row) else { return nil }
        var item = Item(title: Self.title(of: param).short(2_000), actions: ["refresh", "invalidate", "clear", "fail"])
        guard let key = store.snapshot(of: param) else {
            item.facts = [("record", .string("not in memory"))]
            return item
        }
        item.facts = [
            ("state", .string(phase(of: key))), ("age", .milliseconds(key.age)), ("observers", .int(key.observers)),
            ("callers", .int(key.callers)),
        ]
        if key.content != nil { item.facts.insert(("expires in", .milliseconds(key.expiresIn)), at: 2) }
        if let error = key.error { item.facts.append(("error", .string(errorText(error, 2_000)))) }
        let work = work(of: key)
        if !work.isEmpty { item.facts.append(("work", .string(work))) }
        item.links = key.links
        if let size = key.size { item.facts.append(("size", .int(size))) }
        if let content = key.content { (item.record, item.isJSON) = text(of: content, row) }
        return item
    }

    /// Writes a record, unless the page has it since a moment ago. A large record is used for longer, like a large listing.
    private func text(of content: Content, _ row: Int) -> (String, Bool) {
        let began = ContinuousClock.now
        let known = record.withLock(\.self)
        if known.row == row, let end = known.usableUntil, began < end { return (known.text, known.isJSON) }
        let (text, isJSON) = board.redactor.text(of: redacting?(content) ?? content)
        let now = ContinuousClock.now
        let usableUntil = now.advanced(by: min(.seconds(2), began.duration(to: now) * 20))
        record.withLock { $0 = Record(row: row, text: text, isJSON: isJSON, usableUntil: usableUntil) }
        return (text, isJSON)
    }

    // MARK: Actions

    func perform(_ action: String, row: Int?) async -> Bool {
        guard let store, let row, let param = numbers.key(row) else { return false }
        // The response does not wait: a fetch may take long, and the page sees its end.
        switch action {
        case "refresh": Task.detached { await store[param].refresh() }
        case "invalidate": Task.detached { await store[param].invalidate() }
        case "clear": Task.detached { await store[param].clear() }
        default: return false
        }
        return true
    }
}

/// The numbers by which the page names keys; the oldest of many are forgotten.
final class KeyNumbers<Param: Hashable & Sendable>: Sendable {
    private struct State {
        var numbers: [Param: Int] = [:]
        var keys: [Int: Param] = [:]
        var last = 0
    }

    private static var limit: Int { 20_000 }
    private let state = Lock(State())

    func number(of key: Param) -> Int? { state.withLock { $0.numbers[key] } }
    func key(_ number: Int) -> Param? { state.withLock { $0.keys[number] } }

    func add(_ key: Param) -> Int {
        state.withLock { state in
            if let number = state.numbers[key] { return number }
            state.last += 1
            state.numbers[key] = state.last
            state.keys[state.last] = key
            if state.keys.count > Self.limit {
                let newest = state.last - Self.limit / 2
                state.keys = state.keys.filter { $0.key > newest }
                state.numbers = state.numbers.filter { $0.value > newest }
            }
            return state.last
        }
    }
}

/// Writes values as formatted JSON, without the values of secret fields.
struct Redactor: Sendable {
    private let names: Set<String>

    /// - Parameter names: The names of secret fields, compared without case and separators.
    init(names: Set<String>) { self.names = Set(names.map(Self.plain)) }

    private static func plain(_ name: String) -> String { name.lowercased().filter { $0 != "_" && $0 != "-" } }

    /// The names that commonly hold a secret.
    static let usualNames: Set<String> = [
        "password", "passwd", "pwd", "passphrase", "token", "accesstoken", "refreshtoken", "idtoken", "secret", "clientsecret", "apikey",
        "privatekey", "credential", "credentials", "authorization", "bearer", "cookie", "setcookie", "session", "sessionid", "otp", "pin",
        "cvc", "cvv",
    ]

    private static let limit = 262_144

    /// Returns an address without the values of secret query names.
    func address(_ address: String) -> String {
        let parts = address.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return address }
        let query = parts[1].utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { pair -> String in
            let name = String(decoding: pair.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
            let isSecret = names.contains(Self.plain(name.removingPercentEncoding ?? name))
            return isSecret ? name + "=‹hidden›" : String(decoding: pair, as: UTF8.self)
        }
        return "\(parts[0])?\(query.joined(separator: "&"))"
    }

    /// Returns a value as formatted JSON, or its description if it cannot be encoded.
    func text(of value: any Sendable) -> (text: String, isJSON: Bool) {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.nonConformingFloatEncodingStrategy = .convertToString(positiveInfinity: "∞", negativeInfinity: "-∞", nan: "nan")
        if let value = value as? any Encodable, let data = try? encoder.encode(value), let text = text(ofJSON: data) {
            return (text, true)
        }
        return (hasSecret(value) ? "‹hidden›, a \(type(of: value))" : String(describing: value).short(Self.limit), false)
    }

    /// Returns whether a description of a value shows a field with a secret name.
    private func hasSecret(_ value: Any) -> Bool {
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        // A description names the class only.
        case .class: return false
        case .collection, .dictionary, .optional, .set: break
        default:
            // The app has written the description.
            if value is any CustomStringConvertible || value is any CustomDebugStringConvertible { return false }
        }
        return mirror.children.contains { label, child in
            // An entry of a dictionary is a tuple of its key and value.
            let name = label == "key" ? child as? String : label
            return name.map { names.contains(Self.plain($0)) } ?? false || hasSecret(child)
        }
    }

    /// Formats JSON; `nil` for other bytes.
    func text(ofJSON data: Data) -> String? {
        guard let value = try? JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed) else { return nil }
        let options: JSONSerialization.WritingOptions = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes, .fragmentsAllowed]
        guard let text = try? JSONSerialization.data(withJSONObject: redacted(value), options: options) else { return nil }
        return String(decoding: text, as: UTF8.self).short(Self.limit)
    }

    private func redacted(_ value: Any) -> Any {
        if let object = value as? [String: Any] {
            return Dictionary(
                uniqueKeysWithValues: object.map { ($0.key, names.contains(Self.plain($0.key)) ? "‹hidden›" : redacted($0.value)) })
        }
        guard let list = value as? [Any] else { return value }
        // A dictionary is encoded as a list of keys and values if its keys are neither strings nor integers.
        return list.indices.map { index -> Any in
            let name = index % 2 == 1 ? list[index - 1] as? String : nil
            return name.map { names.contains(Self.plain($0)) } ?? false ? "‹hidden›" : redacted(list[index])
        }
    }
}

extension String {
    /// The beginning of a long text, with a mark.
    func short(_ limit: Int) -> String {
        // Counts bytes first, because counting characters takes a pass over the text.
        utf8.count <= limit ? self : String(prefix(limit)) + "…"
    }
}
