#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
internal import StoreCore

/// An event inside an outbox, for logs, metrics and tests.
public struct OutboxEvent: Sendable {
    /// The event's number in its outbox, from 1 and without gaps.
    public let number: UInt64

    /// The command that the event concerns; `nil` if it concerns the whole outbox.
    public let command: UUID?

    /// The event itself, with its values.
    public let kind: Kind

    /// The events of an outbox: changes of commands, attempts, and faults of the log.
    public enum Kind: Sendable {
        /// The command is on disk, with the durability of the policy; `name` is that of its type.
        case submitted(name: String)
        /// A newer command of the lane has replaced the command, which is therefore never delivered.
        case superseded
        /// The attempt with this number began; the first attempt is 1.
        case attemptBegan(Int)
        /// An attempt has passed its deadline and was canceled; its lane waits until the attempt returns, or the command is discarded.
        case attemptOverdue
        /// An attempt has ended after its command was discarded, replaced or cleared, so its result has no effect.
        case resultDropped(Result<Void, any Error>)
        /// An attempt failed, and another one follows after `delay`.
        case deferred(attempt: Int, delay: Duration, any Error)
        /// The origin has performed the command.
        case delivered
        /// The origin has refused the command for good.
        case failed(any Error)
        /// The command has failed as often or as long as the policy allows.
        ///
        /// The limits are ``OutboxPolicy/attemptLimit`` and ``OutboxPolicy/ageLimit``. The origin may have performed the failed command.
        case gaveUp(attempts: Int, any Error)
        /// The command was taken back before its first attempt.
        case canceled
        /// The command was removed by `discard(_:)`; the origin may have performed it.
        case discarded
        /// The failed command is pending again.
        case retried
        /// The command was replaced and has a new payload.
        case replaced
        /// A fatal failure has stopped all lanes.
        ///
        /// ``Outbox/resume()`` continues them.
        case stopped(any Error)
        /// The command cannot be decoded: its type is not registered, or its payload is of a newer version or damaged.
        case undecodable(name: String, (any Error)?)
        /// A call of `clear()` has removed this number of pending and failed commands.
        case cleared(count: Int)
        /// A part of the log is damaged, and was skipped.
        case damaged(bytes: Int, reason: String)
        /// The log could not be read or written.
        case logFault(any Error)
    }
}

extension OutboxEvent: CustomStringConvertible {
    /// The event on one line: its number, its command, and its kind.
    public var description: String {
        let text = command.map { "#\(number) \($0): \(kind)" } ?? "#\(number) \(kind)"
        return text.escapedForDisplay()
    }
}

extension OutboxEvent.Kind: CustomStringConvertible {
    /// The event in a few words.
    public var description: String {
        switch self {
        case .submitted(let name): "submitted \(name)"
        case .superseded: "superseded"
        case .attemptBegan(let number): "attempt \(number) began"
        case .attemptOverdue: "attempt is overdue"
        case .resultDropped(.success): "dropped a late success"
        case .resultDropped(.failure(let error)): "dropped a late failure: \(error)"
        case .deferred(let attempt, let delay, let error): "attempt \(attempt) failed, retrying in \(delay.inWords): \(error)"
        case .delivered: "delivered"
        case .failed(let error): "failed: \(error)"
        case .gaveUp(let attempts, let error): "gave up after \(attempts) attempts: \(error)"
        case .canceled: "canceled"
        case .discarded: "discarded"
        case .retried: "retried"
        case .replaced: "replaced"
        case .stopped(let error): "stopped: \(error)"
        case .undecodable(let name, let error): "cannot decode \(name)" + (error.map { ": \($0)" } ?? ": its type is not registered")
        case .cleared(let count): "cleared \(count)"
        case .damaged(let bytes, let reason): "skipped \(bytes) damaged bytes of the log: \(reason)"
        case .logFault(let error): "log failed: \(error)"
        }
    }
}
