/// The engine's connection to an origin that pushes: runs until the stream ends, or until `accept` returns `false`.
///
/// The next value is taken after `accept` has returned, so no buffer lies between the origin and the engine (L7).
@usableFromInline
typealias Follow =
    @Sendable (
        _ key: BoxedKey, _ last: Validator?, _ accept: @escaping @Sendable (LiveValue<BoxedContent>) -> Bool
    ) async throws -> Void

extension Origin {
    /// The engine's view of the origin's streams; `nil` if the origin does not push.
    ///
    /// Found at run time, so that generic code that knows only an `Origin` does not lose them.
    @inlinable
    func boxedStreams() -> Follow? {
        (self as? any LiveFetcher<Param, Content>)?.boxedValues()
    }
}

extension LiveFetcher {
    @inlinable
    func boxedValues() -> Follow {
        { key, last, accept in
            for try await value in values(param: key.value(as: Param.self), after: last) {
                guard accept(value.live.boxed()) else { return }
            }
        }
    }
}

extension LiveValue {
    @inlinable
    func boxed() -> LiveValue<BoxedContent> {
        switch self {
        case .content(let content, let validator): .content(BoxedContent(content), validator)
        case .change(let change, let validator): .change({ $0.change(as: Content.self) { change(&$0) } }, validator)
        case .current: .current
        }
    }
}
