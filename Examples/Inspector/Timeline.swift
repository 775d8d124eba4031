internal import StoreCore

/// The recent fetches and exchanges, in a ring: the oldest are overwritten.
final class Timeline: Sendable {
    struct Span: Sendable {
        /// The position among all spans, from 0.
        var id: Int
        /// The span of the fetch during which this one began.
        var parent: Int?
        var subject: Int
        var title: String
        var note: String
        /// `running`, `ok`, `unchanged`, `failed`, `refused` or `canceled`.
        var status = "running"
        var began: ContinuousClock.Instant
        var ended: ContinuousClock.Instant?
        /// The number of the last change among those of all spans.
        var version: Int
    }

    private struct State {
        var ring: ContiguousArray<Span> = []
        var nextID = 0
        var version = 0
    }

    let capacity: Int
    private let start = ContinuousClock.now
    private let state = Lock(State())

    init(capacity: Int) { self.capacity = capacity }

    /// Records the beginning of a fetch or an exchange; returns its number.
    func begin(_ subject: Int, _ title: String, _ note: String, during parent: Int? = nil) -> Int {
        let now = ContinuousClock.now
        return state.withLock { state in
            state.version += 1
            let id = state.nextID
            state.nextID += 1
            let span = Span(id: id, parent: parent, subject: subject, title: title, note: note, began: now, version: state.version)
            if state.ring.count < capacity { state.ring.append(span) } else { state.ring[id % capacity] = span }
            return id
        }
    }

    /// Records an end, unless the beginning has been overwritten.
    func end(_ id: Int, _ status: String, _ note: String? = nil) {
        let now = ContinuousClock.now
        state.withLock { state in
            guard state.ring[id % capacity].id == id else { return }
            state.version += 1
            state.ring[id % capacity].status = status
            state.ring[id % capacity].ended = now
            state.ring[id % capacity].version = state.version
            if let note { state.ring[id % capacity].note = note }
        }
    }

    /// The spans that have changed after a version, oldest first, and the version of now.
    func changes(after version: Int) -> (version: Int, spans: [Span]) {
        state.withLock { state in
            guard state.version > version else { return (state.version, []) }
            return (state.version, state.ring.filter { $0.version > version }.sorted { $0.id < $1.id })
        }
    }

    /// The spans of a subject, newest first.
    func spans(of subject: Int) -> [Span] {
        state.withLock { state in state.ring.filter { $0.subject == subject }.sorted { $0.id > $1.id } }
    }

    func json(_ span: Span) -> JSON {
        .array([
            .int(span.id), .int(span.subject), .string(span.title), .string(span.note), .string(span.status),
            .milliseconds(start.duration(to: span.began)), .milliseconds(span.ended.map { start.duration(to: $0) }),
            span.parent.map { .int($0) } ?? .null,
        ])
    }

    /// The time of now on the axis of the spans.
    var now: JSON { .milliseconds(start.duration(to: .now)) }
}

extension Timeline.Span {
    var duration: Duration { began.duration(to: ended ?? .now) }
}
