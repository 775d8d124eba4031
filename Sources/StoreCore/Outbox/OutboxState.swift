#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
internal import StoreCore

/// The commands of an outbox at one moment.
///
/// <doc:ChangesThatSurvive> shows pending and failed commands on a screen.
public struct OutboxState: Hashable, Sendable {
    /// The number of commands that are to be delivered, including those that are being delivered.
    public var pendingCount: Int

    /// The number of commands that are being delivered by this process.
    public var deliveringCount: Int

    /// The number of commands that have failed: the origin has refused them, or they depend on a failed command.
    public var failedCount: Int

    /// The number of pending commands that cannot be decoded; they and the commands behind them in their lanes wait.
    public var undecodableCount: Int

    /// Whether a fatal failure has stopped all deliveries.
    ///
    /// ``Outbox/resume()`` continues them.
    public var isStopped: Bool

    /// The first 100 commands in their order.
    ///
    /// ``Outbox/commands(after:limit:)`` returns the others.
    public var commands: [OutboxCommand]
}

/// A command that an outbox keeps: pending, being delivered, failed, or undecodable.
public struct OutboxCommand: Hashable, Sendable, Identifiable {
    /// The identity of the command in the outbox.
    public let id: UUID

    /// The name of the command's type on disk, `Command.name`.
    public let name: String

    /// The lane in which it is delivered.
    public let lane: String

    /// The wall-clock time of the submission; a replacement does not change it.
    public let submittedAt: Date

    /// The progress of the delivery, as far as this process knows.
    public let status: Status

    /// The number of attempts that have failed.
    public let attempts: Int

    /// The earliest time of the next attempt; `nil` if the command does not wait for a time.
    public let nextAttempt: Date?

    /// The description of the last error.
    public let lastError: String?

    /// The command in JSON, which `value(as:)` decodes.
    public let payload: Data

    let order: UInt64
    let version: Int

    /// The stages of a command from its submission to its removal.
    public enum Status: Hashable, Sendable {
        /// The command waits for its turn, for a time, or for the command that creates its entity.
        case pending
        /// An attempt is running in this process.
        case delivering
        /// The origin has refused the command, or it depends on a failed command; retry, replace or discard it.
        case failed
        /// The command cannot be decoded, because its type is not registered or it is of a newer version.
        case undecodable
    }

    /// Decodes the command.
    ///
    /// ``Command/migrate(from:_:)`` decodes a command that an older version of the program has stored.
    ///
    /// - Parameter type: The type of the command.
    /// - Returns: The command.
    /// - Throws: The error of the decoder.
    public func value<Value: Command>(as type: Value.Type = Value.self) throws -> Value {
        try Value(stored: payload, version: version)
    }
}

/// The outcome of a wait for deliveries.
public enum DrainOutcome: Hashable, Sendable {
    /// No command is left to deliver; failed and undecodable commands do not count.
    case drained
    /// The time is over, or the task was canceled. The value is the number of commands that are still to be delivered.
    case pending(Int)
}

/// The outcome of an attempt to take a command back.
public enum CancelOutcome: Hashable, Sendable {
    /// The command is removed, and will never be delivered.
    case canceled
    /// A delivery was attempted, so the origin may have performed the command, or the command has failed; nothing has changed.
    ///
    /// ``Outbox/discard(_:)`` removes the command all the same.
    case alreadyDelivering
    /// The outbox has no such command: it was delivered, canceled or discarded before.
    case unknown
}

/// The outcome of an attempt to discard or replace a command.
public enum DiscardOutcome: Hashable, Sendable {
    /// The old command is removed. The origin has refused it, or no delivery was attempted.
    case discarded
    /// The old command is removed. A delivery was attempted and has brought no response, so the origin may have performed the command.
    case perhapsPerformed
    /// The command is being delivered; nothing has changed.
    ///
    /// After ``OutboxPolicy/attemptTimeout``, a command can be discarded although its attempt has not ended.
    case delivering
    /// The outbox has no such command: it was delivered, canceled or discarded before.
    case unknown

    /// Whether the old command is removed.
    public var isDone: Bool { self == .discarded || self == .perhapsPerformed }
}

/// The states of an outbox over time; ends when the outbox is closed.
///
/// A slow observer misses intermediate states, never the newest one.
public struct OutboxStates: AsyncSequence, Sendable {
    /// The commands and their numbers at one moment.
    public typealias Element = OutboxState
    /// Errors are part of the states, so the sequence never throws.
    public typealias Failure = Never

    let outbox: Outbox
    /// The content whose commands are shown; `nil` for all commands.
    let subject: OutboxSubject?

    /// Creates an iterator, which begins with the current state.
    public func makeAsyncIterator() -> Iterator { Iterator(outbox: outbox, subject: subject) }

    /// An observer of the outbox, with its own last seen state.
    public struct Iterator: AsyncIteratorProtocol {
        let outbox: Outbox
        let subject: OutboxSubject?
        private var seen: UInt64 = 0
        private var last: OutboxState?

        fileprivate init(outbox: Outbox, subject: OutboxSubject?) {
            self.outbox = outbox
            self.subject = subject
        }

        /// Waits for a state that this observer has not seen yet.
        ///
        /// - Returns: The newest state; `nil` once the task is canceled or the outbox is closed.
        public mutating func next() async -> OutboxState? {
            while true {
                let known = seen
                // The wait fails only if the task is canceled.
                let version = try? await outbox.core.version.wait { $0 > known ? $0 : nil }
                guard let version else { return nil }
                seen = version
                guard await !outbox.core.isClosed else { return nil }
                let state = await outbox.core.state(of: subject)
                guard state != last else { continue }
                last = state
                return state
            }
        }

        /// Waits for a state that this observer has not seen yet, without leaving the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> OutboxState? { await next() }
    }
}
