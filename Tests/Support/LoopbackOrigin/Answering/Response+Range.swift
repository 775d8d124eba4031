import Foundation

extension LoopbackOrigin.Response {
    /// The part of this response that the request asks for with `Range` (RFC 9110, section 14).
    ///
    /// One range of bytes is answered with 206, one beyond the end with 416; several ranges, another unit, a syntax error or an
    /// `If-Range` that does not match get the whole response.
    public func ranged(by request: LoopbackOrigin.Request) -> Self {
        guard status == 200, let data else { return self }
        let whole = setting("Accept-Ranges", to: "bytes")
        guard request.method == .get, let range = request.headers["Range"], allowsPart(for: request) else { return whole }
        switch ByteRange(range, of: data.count) {
        case .none: return whole
        case .unsatisfiable:
            var refusal = Self.problem(416, "Range Not Satisfiable").setting("Content-Range", to: "bytes */\(data.count)")
            refusal.misbehaviors = misbehaviors
            return refusal
        case .part(let part):
            var answer = whole.with(status: 206)
                .setting("Content-Range", to: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(data.count)")
            answer.body = .data(Data(data.dropFirst(part.lowerBound).prefix(part.count)))
            return answer
        }
    }

    /// `If-Range` compares strongly (RFC 9110, section 13.1.5).
    private func allowsPart(for request: LoopbackOrigin.Request) -> Bool {
        guard let condition = request.headers["If-Range"] else { return true }
        guard let tag = EntityTag(condition) else { return condition == headers["Last-Modified"] }
        guard let own = headers["ETag"].flatMap({ EntityTag($0) }) else { return false }
        return tag == own && !tag.isWeak
    }
}

/// What a `Range` field asks of a body of known size.
private enum ByteRange {
    case none
    case unsatisfiable
    case part(Range<Int>)

    init(_ field: String, of size: Int) {
        self = .none
        guard field.lowercased().hasPrefix("bytes=") else { return }
        let bounds = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
        // More or fewer than two parts is a list of ranges, or none at all.
        guard bounds.count == 2 else { return }
        switch (bounds[0], bounds[1]) {
        case (.number(let first), .number(let last)) where first <= last:
            self = first < size ? .part(first..<min(last, size - 1) + 1) : .unsatisfiable
        case (.number(let first), .empty):
            self = first < size ? .part(first..<size) : .unsatisfiable
        case (.empty, .number(let count)):
            self = count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .unsatisfiable
        default: return
        }
    }

    private enum Bound {
        case empty
        case number(Int)
        case invalid
    }

    private static func number(_ text: Substring) -> Bound {
        if text.isEmpty { return .empty }
        guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let value = Int(text) else { return .invalid }
        return .number(value)
    }
}
