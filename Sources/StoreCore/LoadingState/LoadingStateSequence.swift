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

    @usableFromInline let origin: Origin

    /// Makes what an iterator draws from; called once for each iterator.
    package init(makeSource: @escaping @Sendable () -> any LoadingStateSource<Content>) {
        origin = .other(makeSource)
    }

    @inlinable
    init(engine: StoreEngine, key: BoxedKey, forces: Bool) {
        origin = .engine(engine, key, forces: forces)
    }

    /// Makes an iterator, which becomes an observer at its first `next()`.
    public func makeAsyncIterator() -> Iterator {
        switch origin {
        case .engine(let engine, let key, let forces): Iterator(.engine(EngineObserver(engine, key, forces: forces)))
        case .other(let makeSource): Iterator(.other(makeSource()))
        }
    }

    /// Where the states come from. A store's own are told apart, because what makes them is compiled for every type alike: their content
    /// becomes what it is in the module that knows its type.
    @usableFromInline
    enum Origin: Sendable {
        case engine(StoreEngine, BoxedKey, forces: Bool)
        case other(@Sendable () -> any LoadingStateSource<Content>)
    }

    /// One observer.
    ///
    /// It is used by one task at a time, and so are its copies, which are the same observer: a second task that waits in `next()` while the
    /// first one still does ends the program with a message, as it does with an `AsyncStream`. Give each task an iterator of its own.
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
        /// - Returns: The newest state; `nil` once the task is cancelled.
        @inlinable
        public mutating func next() async -> LoadingState<Content>? {
            await next(isolation: #isolation)
        }

        /// Waits for a state that this observer has not seen yet, without leaving the caller's actor.
        ///
        /// - Parameter actor: The caller's actor.
        /// - Returns: The newest state; `nil` once the task is cancelled.
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

        // Never inlined: its frame would be part of that of each observer of a store, who does not need it.
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

/// Ends the program where a second task waits in an iterator: each state goes to one of them, and the other one would wait for ever.
func refuseSecondWaiter() -> Never {
    fatalError(
        "next() of an iterator of a LoadingStateSequence, or of its copy, is awaited by two tasks; make an iterator for each of them")
}

/// What one iterator draws its states from.
///
/// An object, because an observer must leave when its iterator is released; an engine, a mapping and a combination each have one. Like
/// the iterator, it is used by one task at a time.
@usableFromInline
package protocol LoadingStateSource<Content>: AnyObject {
    /// The data itself.
    associatedtype Content: Sendable

    /// Waits for a state not seen yet; `nil` once the task is cancelled, and from then on.
    func next() async -> LoadingState<Content>?
}
