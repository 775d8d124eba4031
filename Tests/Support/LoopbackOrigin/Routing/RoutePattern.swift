/// A path pattern such as `/users/:id/files/*`: words, parameters, and at the end perhaps all the rest.
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

    /// The parameters' values when `path` fits; the rest is called `*`.
    func match(_ path: String) -> [String: String]? {
        let parts = Self.split(path)
        var parameters: [String: String] = [:]
        for (index, segment) in segments.enumerated() {
            if segment == .rest {
                parameters["*"] = parts.dropFirst(index).map { PercentCoding.decode($0) }.joined(separator: "/")
                return parameters
            }
            guard index < parts.count else { return nil }
            let part = PercentCoding.decode(parts[parts.startIndex + index])
            switch segment {
            case .word(let word): guard word == part else { return nil }
            case .parameter(let name): parameters[name] = part
            case .rest: break
            }
        }
        return parts.count == segments.count ? parameters : nil
    }

    /// Whether this pattern says more about a path that both fit: a word says more than a parameter, that more than all the rest.
    func isMoreSpecific(than other: RoutePattern) -> Bool {
        other.weights.lexicographicallyPrecedes(weights)
    }

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
