extension LoadingStateSequence {
    /// The contents of the completed states: of what is loading or has failed, nothing is shown.
    ///
    /// ```swift
    /// for await user in users[id].publish().contents() { show(user) }
    /// ```
    ///
    /// - Returns: A sequence whose iterators observe this one; it never fails, and ends only when the task is cancelled.
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

        /// Makes an iterator, which becomes an observer at its first `next()`.
        public func makeAsyncIterator() -> Iterator {
            Iterator(states: states.makeAsyncIterator())
        }

        /// One observer.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var states: LoadingStateSequence.Iterator

            /// Waits for a completed state that this observer has not seen yet.
            ///
            /// - Returns: Its content; `nil` once the task is cancelled.
            public mutating func next() async -> Content? {
                await next(isolation: #isolation)
            }

            /// Waits for a completed state that this observer has not seen yet, without leaving the caller's actor.
            ///
            /// - Parameter actor: The caller's actor.
            /// - Returns: Its content; `nil` once the task is cancelled.
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
