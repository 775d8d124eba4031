extension LoadingStateSequence {
    /// Returns the contents of the completed states, and skips states that are loading or failed.
    ///
    /// ```swift
    /// for await user in users[id].publish().contents() { show(user) }
    /// ```
    ///
    /// - Returns: A sequence; its iterators observe this one. It never fails, and ends when this one ends or when the task is canceled.
    public func contents() -> Contents {
        Contents(states: self)
    }

    /// The contents of the completed states of a sequence.
    public struct Contents: AsyncSequence, Sendable {
        /// The content of one completed state.
        public typealias Element = Content
        /// States never fail, and neither do their contents.
        public typealias Failure = Never

        fileprivate let states: LoadingStateSequence

        /// Creates an iterator, which becomes an observer at its first `next()`.
        public func makeAsyncIterator() -> Iterator {
            Iterator(states: states.makeAsyncIterator())
        }

        /// An observer of the sequence that returns only completed contents.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var states: LoadingStateSequence.Iterator

            /// Waits for a completed state that this observer has not seen yet.
            ///
            /// - Returns: The content of the state; `nil` once the task is canceled or the sequence has ended.
            public mutating func next() async -> Content? {
                await next(isolation: #isolation)
            }

            /// Waits for a completed state that this observer has not seen yet, without leaving the caller's actor.
            ///
            /// - Parameter actor: The caller's actor.
            /// - Returns: The content of the state; `nil` once the task is canceled or the sequence has ended.
            public mutating func next(isolation actor: isolated (any Actor)?) async -> Content? {
                while let state = await states.next(isolation: actor) {
                    if case .completed(let content, next: _, prev: _) = state { return content }
                }
                return nil
            }
        }
    }
}

@available(*, unavailable)
extension LoadingStateSequence.Contents.Iterator: Sendable {}
