#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import StoreCore

/// A queue of commands that are kept on disk, shown at once, and delivered to the origin in order.
///
/// ```swift
/// let outbox = try Outbox(directory: directory)
/// await outbox.register(Like.self, patching: posts, at: \.post) { _, post in
///     post.isLiked = true
/// } perform: { command, delivery in
///     try await api.like(command.post, idempotencyKey: delivery.id)
/// }
/// outbox.start()
/// try await outbox.submit(Like(post: 7))
/// ```
///
/// An outbox works from its creation until it is released. Several outboxes, even in several processes, may use one directory. Only one of
/// them delivers at a time.
///
/// <doc:ChangesThatSurvive> explains failures, lanes, restarts and what the origin must do.
public final class Outbox: Sendable {
    let core: OutboxCore

    /// Creates an outbox, and reads the commands in its directory; creates the directory if it is missing.
    ///
    /// Nothing is delivered before ``start()``.
    ///
    /// - Parameters:
    ///   - directory: A directory for outboxes of this kind, and for nothing else.
    ///   - policy: The rules for repeating deliveries, and the limits.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - scope: A group whose ``CacheScope/clear()`` also empties the outbox.
    ///   - onEvent: Receives every event, on any thread; it must return quickly.
    /// - Throws: ``StoreError/Code/fileSystem``; ``StoreError/Code/unreadableRecord`` if the log has another version, or is no log;
    ///   ``StoreError/Code/closed`` if the scope is closed.
    public init(
        directory: URL, policy: OutboxPolicy = .default, time: some TimeSource = .system, scope: CacheScope? = nil,
        onEvent: (@Sendable (_ event: OutboxEvent) -> Void)? = nil
    ) throws {
        func create() throws -> OutboxCore {
            if scope?.isClosed == true { throw StoreError.closedOutbox }
            return try OutboxCore(log: OutboxLog(directory: directory), policy: policy, time: time, onEvent: onEvent)
        }
        core = try scope?.creating(create) ?? create()
        scope?.add(core, running: core.running)
        // A scope that was closed during the creation may not have known this member.
        if scope?.isClosed == true { throw StoreError.closedOutbox }
        core.follow()
    }

    deinit {
        Task { [core] in await core.shutDown() }
    }

    // MARK: Registering

    /// Registers a type of command that changes the content of a store; shows the changes of its pending commands before it returns.
    ///
    /// From the submission until the origin has performed the command, the store shows its content with the patch. This includes content
    /// that is fetched meanwhile or loaded after a restart. When `perform` returns the store's `Content`, that content replaces the data
    /// and the patch. When `perform` returns anything else, the patch becomes part of the content.
    ///
    /// Register each type once, before ``start()`` or after it. Commands of an unregistered type wait. If a type is registered twice, the
    /// program stops with a message.
    ///
    /// - Parameters:
    ///   - type: The type of the commands.
    ///   - store: The store whose content the commands change.
    ///   - key: Returns the key of the content.
    ///   - lane: Returns the lane of a command; by default all commands for one content share a lane.
    ///   - others: The changes that the command makes to other keys or stores.
    ///   - patch: Makes the change. As in ``StoreFlowable/mutate(optimistically:perform:)``, it must have no side effects and must work on
    ///     any content.
    ///   - perform: Sends the change to the origin; called until it returns or throws a permanent error (``FailureAdvising``).
    public func register<Value: Command, Param: Hashable & Codable & Sendable, Content: Sendable, Result>(
        _ type: Value.Type, patching store: Store<Param, Content>, at key: @escaping @Sendable (_ command: Value) -> Param,
        lane: (@Sendable (_ command: Value) -> String)? = nil, and others: [CommandPatch<Value>] = [],
        patch: @escaping @Sendable (_ command: Value, _ content: inout Content) -> Void,
        perform: @escaping @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Result
    ) async {
        let form = OutboxRegistration(
            type, patches: [CommandPatch(store, at: key, patch)] + others, check: { try OutboxLane.check(key($0)) },
            subject: { [engine = store.engine] in .content(of: engine, key($0)) }, lane: lane
        ) { command, delivery in
            let result = try await perform(command, delivery)
            guard Result.self == Content.self, let content = result as? Content else { return PerformedCommand() }
            return PerformedCommand(response: .content(BoxedContent(content)))
        }
        await core.register(form)
    }

    /// Registers a type of command that changes one element in every list of a store; shows the changes of its pending commands before it
    /// returns.
    ///
    /// ```swift
    /// await outbox.register(Like.self, patching: feeds, element: \.post) { _, post in
    ///     post.isLiked = true
    /// } perform: { command, delivery in
    ///     try await api.like(command.post, idempotencyKey: delivery.id)
    /// }
    /// ```
    ///
    /// The change shows in each list that has the element, even in lists that are loaded later, until the origin has performed the command.
    /// If the elements of the store are linked to whole entities (``EntityLink``), the command changes the entity, and every place
    /// that shows it. Without links, or if the entity has no content, a list that is loaded later shows the element as it was saved until its
    /// next fetch.
    ///
    /// When `perform` returns an `Element`, that element replaces the old one and the patch, unless the list has changed meanwhile. The other
    /// rules are those of ``register(_:patching:at:lane:and:patch:perform:)``.
    ///
    /// Cost: each pending command is applied to each list in use, in one pass over the list up to the element.
    ///
    /// - Parameters:
    ///   - type: The type of the commands.
    ///   - lists: The store of the lists.
    ///   - id: Returns the identity of the element.
    ///   - lane: Returns the lane of a command; by default all commands for one element share a lane.
    ///   - others: The changes that the command makes to other keys or stores.
    ///   - patch: Makes the change; it must have no side effects and must work on any element.
    ///   - perform: Sends the change to the origin; called until it returns or throws a permanent error (``FailureAdvising``).
    public func register<Value: Command, Param: Hashable & Sendable, Element: Identifiable & Sendable, Result>(
        _ type: Value.Type, patching lists: PaginationStore<Param, Element>,
        element id: @escaping @Sendable (_ command: Value) -> Element.ID,
        lane: (@Sendable (_ command: Value) -> String)? = nil, and others: [CommandPatch<Value>] = [],
        patch: @escaping @Sendable (_ command: Value, _ element: inout Element) -> Void,
        perform: @escaping @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Result
    ) async where Element.ID: Codable & Sendable {
        let change = CommandPatch(lists, element: id, patch)
        let form = OutboxRegistration(
            type, patches: [change] + others, check: { try OutboxLane.check(id($0)) },
            subject: { .content(of: change.engine, id($0)) }, lane: lane
        ) { command, delivery in
            let result = try await perform(command, delivery)
            guard Result.self == Element.self, let element = result as? Element else { return PerformedCommand() }
            let patches = BoundPatch.merged(([change] + others).map { $0.bind(command) })
            guard let patch = patches.first, patch.isIn != nil else { return PerformedCommand(response: .content(BoxedContent(element))) }
            return PerformedCommand(
                response: .part { list in
                    // The command may also change other elements.
                    patch.apply(&list)
                    list.change(as: [Element].self) { $0.change(id(command)) { $0 = element } }
                })
        }
        await core.register(form)
    }

    /// Registers a type of command that changes no content of a store.
    ///
    /// - Parameters:
    ///   - type: The type of the commands.
    ///   - lane: Returns the lane of a command; by default all commands of the type share a lane.
    ///   - perform: Sends the change to the origin; called until it returns or throws a permanent error (``FailureAdvising``).
    public func register<Value: Command>(
        _ type: Value.Type, lane: (@Sendable (_ command: Value) -> String)? = nil,
        perform: @escaping @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Void
    ) async {
        let form = OutboxRegistration(type, patches: [], subject: { _ in .none }, lane: lane ?? { _ in Value.name }) { command, delivery in
            try await perform(command, delivery)
            return PerformedCommand()
        }
        await core.register(form)
    }

    /// Registers a type of command that creates an entity under a temporary key, which the origin replaces with its own key.
    ///
    /// The store shows the entity under the temporary key at once, and again after a restart. Later commands that refer to the temporary
    /// key (``Command/replacing(_:)``) wait until the entity exists, are delivered with its key, and fail if its creation fails. When
    /// `perform` returns, the content, its observers, and the changes of later commands move to the new key. The origin may also keep the
    /// temporary key.
    ///
    /// - Parameters:
    ///   - type: The type of the commands.
    ///   - store: The store whose content the commands create.
    ///   - key: Returns the temporary key, such as a UUID. No other entity may have this key.
    ///   - lane: Returns the lane of a command; by default all commands for one content share a lane.
    ///   - others: The changes that the command makes to other keys or stores, such as to a list.
    ///   - content: Returns the first content.
    ///   - perform: Creates the entity at the origin; called until it returns or throws a permanent error (``FailureAdvising``).
    public func register<Value: Command, Param: Hashable & Codable & Sendable, Content: Sendable>(
        _ type: Value.Type, creating store: Store<Param, Content>, at key: @escaping @Sendable (_ command: Value) -> Param,
        lane: (@Sendable (_ command: Value) -> String)? = nil, and others: [CommandPatch<Value>] = [],
        content: @escaping @Sendable (_ command: Value) -> Content,
        perform: @escaping @Sendable (_ command: Value, _ delivery: Delivery) async throws -> Created<Param, Content>
    ) async {
        let form = OutboxRegistration(
            type, patches: [CommandPatch(store, creating: content, at: key)] + others, check: { try OutboxLane.check(key($0)) },
            subject: { [engine = store.engine] in .content(of: engine, key($0)) }, creates: { IdentifierReplacement.text(of: key($0)) },
            lane: lane,
            decodeKey: { text in (try? JSONDecoder().decode(Param.self, from: Data(text.utf8))).map { BoxedKey($0) } }
        ) { command, delivery in
            let created = try await perform(command, delivery)
            guard let text = IdentifierReplacement.text(of: created.key) else {
                throw StoreError(.unwritableRecord, "encoding the key \(created.key) of a created entity; let its type encode every key")
            }
            return PerformedCommand(
                response: created.content.map { .content(BoxedContent($0)) } ?? .none, replacement: (text, BoxedKey(created.key)))
        }
        await core.register(form)
    }

    /// Begins deliveries, and ends the back-off delays of the last launch.
    ///
    /// Delays that the origin has asked for are kept, up to ``OutboxPolicy/adviceLimit``.
    public func start() {
        Task { [core] in await core.start() }
    }

    /// Begins deliveries, and ends all back-off delays at each element of a sequence, for example when the network returns.
    ///
    /// Delays that the origin has asked for are kept. An error or the end of the sequence ends only this trigger.
    ///
    /// - Parameter trigger: The sequence; the values of its elements do not matter.
    public func start(deliveringOn trigger: some AsyncSequence & Sendable) {
        Task { [core] in await core.start(trigger) }
    }

    /// Continues after a fatal failure has stopped all lanes, for example when the user has signed in again.
    public func resume() async { await core.resume() }

    // MARK: Changing

    /// Accepts a command for delivery; returns when it is on disk and its change is visible.
    ///
    /// Canceling the task has no effect.
    ///
    /// - Parameter command: The command; its type must be registered.
    /// - Returns: The identity of the command in the outbox.
    /// - Throws: ``StoreError/Code/outboxFull``; ``StoreError/Code/unregisteredCommand``; ``StoreError/Code/fileSystem``; the error of the
    ///   command's `encode(to:)`. The outbox is then unchanged.
    @discardableResult
    public func submit(_ command: some Command) async throws -> UUID { try await core.submit(command) }

    /// Takes a pending command back, unless a delivery was attempted.
    ///
    /// - Parameter id: The identity of the command.
    /// - Returns: Whether the command was taken back.
    /// - Throws: ``StoreError/Code/fileSystem``; the outbox is then unchanged.
    public func cancel(_ id: UUID) async throws -> CancelOutcome { try await core.cancel(id) }

    /// Makes a failed command pending again, at the end of its lane, together with the commands that failed because of it.
    ///
    /// - Parameter id: The identity of the command.
    /// - Returns: Whether there is such a failed command.
    /// - Throws: ``StoreError/Code/fileSystem``; the outbox is then unchanged.
    @discardableResult
    public func retry(_ id: UUID) async throws -> Bool { try await core.retry(id) }

    /// Removes a command that is not being delivered, with its change.
    ///
    /// This is the way out for a command that fails again and again and holds its lane. If a delivery was attempted, the origin may have
    /// performed the command, and the outcome says so. Commands that refer to an entity which the command creates fail.
    ///
    /// - Parameter id: The identity of the command.
    /// - Returns: Whether the command was removed.
    /// - Throws: ``StoreError/Code/fileSystem``; the outbox is then unchanged.
    @discardableResult
    public func discard(_ id: UUID) async throws -> DiscardOutcome { try await core.discard(id) }

    /// Replaces a command that is not being delivered; the new one is delivered under a new identity.
    ///
    /// - Parameters:
    ///   - id: The identity of the command, which stays the same in the outbox.
    ///   - command: The new command; its type must be registered.
    /// - Returns: Whether the old command was replaced, and whether the origin may have performed it.
    /// - Throws: The errors of ``submit(_:)``; ``StoreError/Code/entityNotCreated`` also if the new command would wait for itself, because the
    ///   entity that it refers to is created by a command that waits for this one.
    @discardableResult
    public func replace(_ id: UUID, with command: some Command) async throws -> DiscardOutcome { try await core.replace(id, with: command) }

    /// Drops all commands, first on disk, and waits for running attempts to end.
    ///
    /// The attempts are canceled and their results dropped. The wait ends after ``OutboxPolicy/clearTimeout`` at the latest. The outbox
    /// also forgets the keys that have replaced temporary ones, so later commands must name the keys of the origin.
    ///
    /// A ``CacheScope`` calls this method for its outboxes.
    ///
    /// - Returns: The number of commands that were dropped.
    /// - Throws: ``StoreError/Code/fileSystem``; the commands then remain, and deliveries stop until ``resume()`` is called.
    @discardableResult
    public func clear() async throws -> Int {
        let count = try await core.emptyIfOpen()
        await core.waitForAttempts()
        return count
    }

    // MARK: Observing

    /// Whether the outbox has no commands, not even delivered commands with unsaved content.
    package var isEmpty: Bool { get async { await core.isEmpty } }

    /// The states of the outbox, for observation with `for await`; the first one is the current state.
    public func publish() -> OutboxStates { OutboxStates(outbox: self, subject: nil) }

    /// The states of the commands for one key, so that a screen can mark its content as unsent.
    ///
    /// A command belongs to the key that its registration returns. Keys that it changes only through a ``CommandPatch`` do not count.
    ///
    /// - Parameter handle: The handle on the key.
    public func pending<Param: Hashable & Codable & Sendable, Content: Sendable>(
        for handle: StoreFlowable<Param, Content>
    ) -> OutboxStates {
        OutboxStates(outbox: self, subject: (.content(of: handle.engine, handle.param), ObjectIdentifier(handle.engine)))
    }

    /// Returns commands, the oldest first.
    ///
    /// - Parameters:
    ///   - command: The command after which to begin; `nil` begins with the oldest command.
    ///   - limit: The largest number of commands to return.
    public func commands(after command: OutboxCommand? = nil, limit: Int = 100) async -> [OutboxCommand] {
        await core.commands(after: command?.order ?? 0, limit: limit)
    }

    /// Waits until nothing is pending, for example in a background task or at the end of a program.
    ///
    /// Failed and undecodable commands do not count. If the outbox is stopped, the wait continues, because `resume()` may start it again.
    ///
    /// - Parameter timeout: The longest wait.
    /// - Returns: Whether everything is delivered. Cancellation ends the wait without affecting deliveries.
    public func drain(until timeout: Duration) async -> DrainOutcome { await core.drain(until: timeout) }
}

/// A change that a command makes to another key, or to an element of other lists, in the same store or in another store.
public struct CommandPatch<Value: Command>: Sendable {
    let engine: StoreEngine
    let bind: @Sendable (Value) -> BoundPatch

    /// Creates a change.
    ///
    /// - Parameters:
    ///   - store: The store.
    ///   - key: Returns the key of the content.
    ///   - patch: Makes the change; it must have no side effects and must work on any content.
    public init<Param: Hashable & Codable & Sendable, Content: Sendable>(
        _ store: Store<Param, Content>, at key: @escaping @Sendable (_ command: Value) -> Param,
        _ patch: @escaping @Sendable (_ command: Value, _ content: inout Content) -> Void
    ) {
        engine = store.engine
        bind = { [engine = store.engine] command in
            BoundPatch(engine: engine, key: BoxedKey(key(command))) { content in
                content.change(as: Content.self) { patch(command, &$0) }
            }
        }
    }

    /// Creates a change of one element in every list of a store that has it.
    ///
    /// The rules are those of ``Outbox/register(_:patching:element:lane:and:patch:perform:)``.
    ///
    /// - Parameters:
    ///   - lists: The store of the lists.
    ///   - id: Returns the identity of the element.
    ///   - patch: Makes the change; it must have no side effects and must work on any element.
    public init<Param: Hashable & Sendable, Element: Identifiable & Sendable>(
        _ lists: PaginationStore<Param, Element>, element id: @escaping @Sendable (_ command: Value) -> Element.ID,
        _ patch: @escaping @Sendable (_ command: Value, _ element: inout Element) -> Void
    ) where Element.ID: Sendable {
        // The element of a full place is the entity.
        let entities = lists.lists.engine.entities(of: Element.self)
        let engine = entities ?? lists.lists.engine
        self.engine = engine
        bind = { command in
            let id = id(command)
            if entities != nil {
                return BoundPatch(engine: engine, key: BoxedKey(id)) { content in
                    content.change(as: Element.self) { patch(command, &$0) }
                }
            }
            return BoundPatch(engine: engine, key: BoxedKey([BoxedKey(id)] as Set)) { content in
                content.change(as: [Element].self) { $0.change(id) { patch(command, &$0) } }
            } isIn: { list in
                list.value(as: [Element].self).contains { $0.id == id }
            }
        }
    }

    init<Param: Hashable & Codable & Sendable, Content: Sendable>(
        _ store: Store<Param, Content>, creating content: @escaping @Sendable (Value) -> Content,
        at key: @escaping @Sendable (Value) -> Param
    ) {
        engine = store.engine
        bind = { [engine = store.engine] command in
            BoundPatch(engine: engine, key: BoxedKey(key(command)), apply: { _ in }, first: BoxedContent(content(command)))
        }
    }
}

extension OutboxRegistration {
    fileprivate init<Value: Command>(
        _ type: Value.Type, patches: [CommandPatch<Value>], check: (@Sendable (Value) throws -> Void)? = nil,
        subject: @escaping @Sendable (Value) -> OutboxLane, creates: (@Sendable (Value) -> String?)? = nil,
        lane: (@Sendable (Value) -> String)?, decodeKey: (@Sendable (String) -> BoxedKey?)? = nil,
        perform: @escaping @Sendable (Value, Delivery) async throws -> PerformedCommand
    ) {
        let bind: @Sendable (Value) -> BoundCommand = { command in
            let seen = WatchedState<[String]>([])
            _ = command.replacing(IdentifierReplacement(texts: [:], recording: seen))
            let content = subject(command)
            return BoundCommand(
                lane: lane.map { OutboxLane(name: $0(command)) } ?? content, subject: content, creates: creates?(command),
                references: seen.current, patches: BoundPatch.merged(patches.map { $0.bind(command) }),
                perform: { delivery in try await perform(command, delivery) }, value: command)
        }
        self.init(
            name: Value.name, version: Value.version,
            bind: { payload, version in bind(try Value(stored: payload, version: version)) },
            bindValue: { command in
                guard let command = command as? Value else { preconditionFailure("two commands are named \(Value.name); rename one") }
                try check?(command)
                return bind(command)
            },
            engines: patches.map(\.engine), decodeKey: decodeKey)
    }
}
