/// The states of one piece of data over time; it never fails and never ends by itself.
///
/// Each iterator is an observer of its own. It joins at its first `next()`, which gives the state after the cache was read, and leaves
/// when its task is cancelled or the iterator is released. A slow observer misses states in between, never the newest one, and what it
/// sees is a part of the one order in which the states came about.
///
/// ```swift
/// for await state in users[id].publish() {
///     render(state)
/// }
/// ```
public struct LoadingStateSequence<Content: Sendable>: AsyncSequence, Sendable {
    /// What an observer may show now.
    public typealias Element = LoadingState<Content>
    /// States never fail: an error is a state.
    public typealias Failure = Never

    /// Makes what an iterator draws from; called once for each iterator.
    private let makeSource: @Sendable () -> any LoadingStateSource<Content>

    package init(makeSource: @escaping @Sendable () -> any LoadingStateSource<Content>) {
        self.makeSource = makeSource
    }

    /// Makes an iterator, which becomes an observer at its first `next()`.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: makeSource())
    }

    /// One observer.
    public struct Iterator: AsyncIteratorProtocol {
        private let source: any LoadingStateSource<Content>

        fileprivate init(source: any LoadingStateSource<Content>) {
            self.source = source
        }

        /// Waits for a state that this observer has not seen yet.
        ///
        /// - Returns: The newest state; `nil` once the task is cancelled.
        public mutating func next() async -> LoadingState<Content>? {
            await source.next()
        }

        /// Waits for a state that this observer has not seen yet, without leaving the caller's actor.
        ///
        /// - Parameter actor: The caller's actor.
        /// - Returns: The newest state; `nil` once the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> LoadingState<Content>? {
            await source.next()
        }
    }
}

@available(*, unavailable)
extension LoadingStateSequence.Iterator: Sendable {}

/// What one iterator draws its states from.
///
/// An object, because an observer must leave when its iterator is released; an engine, a mapping and a combination each have one. Like
/// the iterator, it is used by one task at a time.
package protocol LoadingStateSource<Content>: AnyObject {
    /// The data itself.
    associatedtype Content: Sendable

    /// Waits for a state not seen yet; `nil` once the task is cancelled, and from then on.
    func next() async -> LoadingState<Content>?
}
