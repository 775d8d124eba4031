/// A path pattern such as `/users/:id/files/*`: words, parameters, and optionally the rest.
struct RoutePattern: Hashable {
    private enum Segment: Hashable {
        case word(String)
        case parameter(String)
        case rest
    }

    private let segments: [Segment]

    init(_ pattern: String) {
        segments = Self.split(pattern).map { segment in
            if segment == "*" { return .rest }
            return segment.hasPrefix(":") ? .parameter(String(segment.dropFirst())) : .word(String(segment))
        }
    }

    /// Returns the parameters' values if `path` matches, and `nil` otherwise; the rest is named `*`.
    func match(_ path: String) -> [String: String]? {
        let parts = Self.split(path)
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            let part = parts.dropFirst(index).first.map { PercentCoding.decode($0) }
            switch segment {
            case .word(let word): guard word == part else { return nil }
            case .parameter(let name):
                guard let part else { return nil }
                parameters[name] = part
            case .rest:
                parameters["*"] = parts.dropFirst(index).map { PercentCoding.decode($0) }.joined(separator: "/")
                return parameters
            }
        }
        return parts.count == segments.count ? parameters : nil
    }

    /// Returns whether this pattern takes precedence over another one: words over parameters, and parameters over the rest.
    func isMoreSpecific(than other: RoutePattern) -> Bool { other.weights.lexicographicallyPrecedes(weights) }

    private var weights: [Int] {
        segments.map { segment in
            switch segment {
            case .word: 3
            case .parameter: 2
            case .rest: 1
            }
        }
    }

    private static func split(_ path: String) -> ArraySlice<Substring> {
        path.split(separator: "/", omittingEmptySubsequences: false).dropFirst(path.hasPrefix("/") ? 1 : 0)
    }
}
