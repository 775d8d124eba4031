import Foundation

extension LoopbackOrigin.Response {
    /// Returns the part of this response that the request's `Range` field selects (RFC 9110, section 14).
    ///
    /// One range of bytes leads to 206, and a range beyond the end to 416. Several ranges, another unit, a syntax error, or an
    /// `If-Range` field that does not match lead to the whole response.
    public func ranged(by request: LoopbackOrigin.Request) -> Self {
        guard status == 200, let data else { return self }
        let whole = setting("Accept-Ranges", to: "bytes")
        guard request.method == .get, let range = request.headers["Range"], allowsPart(for: request) else { return whole }
        switch ByteRange(range, of: data.count) {
        case .none: return whole
        case .unsatisfiable:
            return Self.problem(416, "Range Not Satisfiable").setting("Content-Range", to: "bytes */\(data.count)")
                .changing { $0.misbehaviors = misbehaviors }
        case .part(let part):
            return whole.with(status: 206)
                .setting("Content-Range", to: "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(data.count)")
                .changing { $0.body = .data(Data(data.dropFirst(part.lowerBound).prefix(part.count))) }
        }
    }

    /// Returns whether `If-Range` allows a partial response; it compares strongly (RFC 9110, section 13.1.5).
    private func allowsPart(for request: LoopbackOrigin.Request) -> Bool {
        guard let condition = request.headers["If-Range"] else { return true }
        guard let tag = EntityTag(condition) else { return condition == headers["Last-Modified"] }
        guard let own = headers["ETag"].flatMap({ EntityTag($0) }) else { return false }
        return tag == own && !tag.isWeak
    }
}

/// The part of a body of known size that a `Range` field selects.
private enum ByteRange {
    case none
    case unsatisfiable
    case part(Range<Int>)

    init(_ field: String, of size: Int) {
        self = .none
        guard field.lowercased().hasPrefix("bytes=") else { return }
        let bounds = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false).map(Self.number)
        // More or fewer than two bounds are several ranges, or a syntax error.
        guard bounds.count == 2 else { return }
        switch (bounds[0], bounds[1]) {
        case (.number(let first), .number(let last)) where first <= last:
            self = first < size ? .part(first..<min(last, size - 1) + 1) : .unsatisfiable
        case (.number(let first), .empty): self = first < size ? .part(first..<size) : .unsatisfiable
        case (.empty, .number(let count)): self = count > 0 && size > 0 ? .part(max(0, size - count)..<size) : .unsatisfiable
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
