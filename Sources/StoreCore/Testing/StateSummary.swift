public import StoreCore

extension LoadingState {
    /// The state in a few characters, for expectations and their messages.
    ///
    /// | State | Summary |
    /// |---|---|
    /// | loading without and with content | `loading(nil)`, `loading(1)` |
    /// | completed | `completed(1)` |
    /// | completed, with pages beside it | `completed([1],next:more,prev:loading)`, `completed([1],next:error(Offline))` |
    /// | error without and with content | `error(Offline,nil)`, `error(Offline,1)` |
    ///
    /// ```swift
    /// #expect(recorder.states.map(\.summary) == ["loading(nil)", "completed(1)"])
    /// ```
    public var summary: String {
        switch self {
        case .loading(let content): "loading(\(Self.summary(of: content)))"
        case .completed(let content, let next, let prev): "completed(\(content)\(next.summary(as: ",next:"))\(prev.summary(as: ",prev:")))"
        case .error(let rawError, let content): "error(\(errorSummary(rawError)),\(Self.summary(of: content)))"
        }
    }

    private static func summary(of content: Content?) -> String {
        content.map { "\($0)" } ?? "nil"
    }
}

extension AdditionalLoadingState {
    /// Returns the state of the pages; empty if there is no page.
    fileprivate func summary(as label: String) -> String {
        switch self {
        case .fixed(canRequestAdditionalData: false): ""
        case .fixed(canRequestAdditionalData: true): label + "more"
        case .loading: label + "loading"
        case .error(let rawError): label + "error(\(errorSummary(rawError)))"
        }
    }
}

/// Returns an error's description; the description of an empty struct loses its parentheses.
private func errorSummary(_ error: any Error) -> String {
    let description = "\(error)"
    return description.hasSuffix("()") ? String(description.dropLast(2)) : description
}
