/// One value of an origin that pushes.
///
/// <doc:LiveData> shows a stream of values.
public enum LiveValue<Content: Sendable>: Sendable {
    /// The whole content, and the validator of this version.
    case content(Content, Validator? = nil)
    /// A change of the stream's last value, and the validator of the version after it.
    ///
    /// The closure runs under the store's lock. It must be quick and must not call the store. Without a validator, a new connection cannot
    /// continue after this change: the origin begins with ``content(_:_:)`` again.
    case change(@Sendable (inout Content) -> Void, Validator? = nil)
    /// Confirmation that the connection still works, and that the version named by the last validator is current.
    case current
}

/// An element of a live fetcher's sequence, from which the compiler infers the content.
///
/// ``LiveValue`` is its only conforming type.
public protocol LiveElement<Content>: Sendable {
    /// The type of the data that the stream delivers.
    associatedtype Content: Sendable

    /// The element as a live value.
    var live: LiveValue<Content> { get }
}

extension LiveValue: LiveElement {
    /// The value itself, because a live value needs no conversion.
    @inlinable
    public var live: LiveValue<Content> { self }
}
