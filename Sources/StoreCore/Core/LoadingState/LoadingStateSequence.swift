/// The states of one piece of data over time; the sequence never fails, and ends only when its store is closed.
///
/// Each iterator is a separate observer. It joins at its first `next()`, which returns the state after the cache was read. It leaves when
/// its task is canceled or the iterator is released. A slow observer misses intermediate states, never the newest one. Every observer sees
/// a subsequence of one total order of states.
///
/// ```swift
/// for await state in users[id].publish() {
///     render(state)
/// }
/// ```
///
/// <doc:GettingStarted> explains what an observer sees.
public struct LoadingStateSequence<Content: Sendable>: AsyncSequence, Sendable {
    /// The state that an observer may show now.
    public typealias Element = LoadingState<Content>
    /// A failure is a state, so the sequence never throws.
    public typealias Failure = Never

    @usableFromInline let origin: Origin

    /// Creates a sequence from a factory of sources, which is called once for each iterator.
    package init(makeSource: @escaping @Sendable () -> any LoadingStateSource<Content>) {
        origin = .other(makeSource)
    }

    @inlinable
    init(engine: StoreEngine, key: BoxedKey, forceRefresh: Bool) {
        origin = .engine(engine, key, forceRefresh: forceRefresh)
    }

    /// Creates an iterator, which becomes an observer at its first `next()`.
    public func makeAsyncIterator() -> Iterator {
        switch origin {
        case .engine(let engine, let key, let forceRefresh): Iterator(.engine(EngineObserver(engine, key, forceRefresh: forceRefresh)))
        case .other(let makeSource): Iterator(.other(makeSource()))
        }
    }

    /// The source of the states. The engine has its own case: the engine is compiled once for all content types, so its content is cast in
    /// the module that knows the type.
    @usableFromInline
    enum Origin: Sendable {
        case engine(StoreEngine, BoxedKey, forceRefresh: Bool)
        case other(@Sendable () -> any LoadingStateSource<Content>)
    }

    /// An observer of the sequence.
    ///
    /// Only one task at a time may use an iterator. Its copies are the same observer. As with an `AsyncStream`, the program stops with a
    /// message if a second task calls `next()` while the first one still waits. Give each task its own iterator.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline
        enum Source {
            case engine(EngineObserver)
            case other(any LoadingStateSource<Content>)
        }

        @usableFromInline let source: Source

        fileprivate init(_ source: Source) {
            self.source = source
        }

        /// Waits for a state that this observer has not seen yet.
        ///
        /// - Returns: The newest state; `nil` once the task is canceled or the store is closed.
        @inlinable
        public mutating func next() async -> LoadingState<Content>? {
            await next(isolation: #isolation)
        }

        /// Waits for a state that this observer has not seen yet, without leaving the caller's actor.
        ///
        /// - Parameter actor: The caller's actor.
        /// - Returns: The newest state; `nil` once the task is canceled or the store is closed.
        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async -> LoadingState<Content>? {
            switch source {
            case .engine(let observer):
                while await observer.pause(isolation: actor) {
                    if let state = observer.state(as: Content.self) { return state }
                }
                return nil
            case .other(let source):
                return await Self.next(of: source, isolation: actor)
            }
        }

        // Never inlined: otherwise its frame would enlarge the frame of every observer of a store, which does not call it.
        @usableFromInline
        @inline(never)
        static func next(
            of source: any LoadingStateSource<Content>, isolation actor: isolated (any Actor)?
        ) async -> LoadingState<Content>? {
            await source.next()
        }
    }
}

@available(*, unavailable)
extension LoadingStateSequence.Iterator: Sendable {}

/// Stops the program when a second task awaits an iterator: each state would reach only one of the two, and the other might wait forever.
package func refuseSecondWaiter() -> Never {
    fatalError(
        "next() of an iterator of a LoadingStateSequence, or of its copy, is awaited by two tasks; make an iterator for each of them")
}

/// The source of one iterator's states.
///
/// The source is an object, because an observer must leave when its iterator is released. Engines, mappings and combinations each have a
/// source. Like the iterator, a source is used by one task at a time.
@usableFromInline
package protocol LoadingStateSource<Content>: AnyObject {
    associatedtype Content: Sendable

    /// Waits for a state not seen yet; returns `nil` from the moment the task is canceled.
    func next() async -> LoadingState<Content>?
}
