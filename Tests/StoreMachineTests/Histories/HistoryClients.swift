import StoreTrials
import Trials

@testable import StoreCore

/// A random history of a store, which is compared with a model after every step.
protocol RandomHistory {
    /// The steps so far, for the message of a failure.
    var steps: [String] { get }

    init(seed: UInt64, _ backing: Backing)

    /// Takes all steps, and ends all work.
    mutating func play() async throws

    /// Releases everything held, and cancels all observers and callers.
    func giveUp() async
}

extension RandomHistory {
    /// Runs the history, and leaves no task waiting, however it ends.
    mutating func run() async throws {
        do {
            try await play()
        } catch {
            await giveUp()
            throw error
        }
        await giveUp()
    }

    /// Waits until a store can only change by a command.
    func quiet(_ summary: () -> String, _ unrest: () -> String?) async throws {
        var last: String?
        do {
            try await until("the store is quiet") {
                last = unrest()
                return last == nil
            }
        } catch {
            throw Difference(description: "the store does not become quiet: \(last ?? "")\n\(summary())")
        }
    }
}

/// The numbers of a kind of things, from 1.
struct Numbers {
    private(set) var last = 0

    mutating func next() -> Int {
        last += 1
        return last
    }
}

/// The rules of a store, in milliseconds.
struct HistoryRules: Sendable {
    let hasFront: Bool
    let hasBacking: Bool
    var lifetime: Int?
    var staleWhileRevalidate = 0
    var staleIfError = 0
    var errorExpiry = 0
    let refetchesOnExpiry: Bool
    let completesUnwanted: Bool
    let resetsOnRefresh: Bool
    let refetchesAfterMutation: Bool
    /// The largest number of pages of a list.
    var window: Int?
    // The rules of streams.
    var attempts = 1
    var idle: Int?
    var saveInterval = 0

    /// Draws the rules that lists and streams have.
    init(_ backing: Backing, _ dice: inout SplitMix) {
        (hasFront, hasBacking) = (backing != .plain, backing != .memory)
        // Time advances by whole seconds, so fractions ensure that it never meets a deadline exactly.
        if dice.below(3) > 0 { lifetime = 2_500 }
        if dice.below(3) == 0 { staleWhileRevalidate = 3_250 }
        if dice.below(3) == 0 { staleIfError = 3_250 }
        if dice.below(3) == 0 { errorExpiry = 1_750 }
        refetchesOnExpiry = dice.below(2) == 0
        completesUnwanted = dice.below(3) == 0
        resetsOnRefresh = dice.below(3) > 0
        refetchesAfterMutation = dice.below(4) > 0
    }

    var expiry: Expiry { lifetime.map { .after(.milliseconds($0)) } ?? .never }

    var policy: StorePolicy {
        StorePolicy(
            staleWhileRevalidate: .milliseconds(staleWhileRevalidate), staleIfError: .milliseconds(staleIfError),
            revalidatesOnExpiry: refetchesOnExpiry, errorExpiry: .milliseconds(errorExpiry),
            unwantedFetch: completesUnwanted ? .complete : .cancel(after: .seconds(1)),
            refreshScope: resetsOnRefresh ? .firstPage : .loadedPages, revalidatesAfterMutation: refetchesAfterMutation)
    }
}

/// A difference between a store and its model.
struct Difference: Error, CustomStringConvertible { var description: String }

/// Checks a part of a store's state.
///
/// - Throws: ``Difference``.
func same<Value: Equatable>(_ what: String, _ real: Value, _ expected: Value) throws {
    if real != expected { throw Difference(description: "\(what): the store has \(real), the model \(expected)") }
}

/// The observers and callers of a random history, with the states and results that they have received.
final class HistoryClients: Sendable {
    struct State: Sendable {
        var results: [Int: String] = [:]
        /// The number of callers with a running task.
        var open = 0
        /// Mutations in progress.
        var performing: Set<Int> = []
        var ends: [Int: Bool] = [:]
        var seen: [Int: String] = [:]
        var sawPoison = false
        var observers: Set<Int> = []
    }

    /// Content that no observer may ever see.
    static let poison = -999

    let state = WatchedState(State())

    /// The numbers of open callers, of mutations in progress, and of observers.
    var counts: (Int, Int, Int) { state.read { ($0.open, $0.performing.count, $0.observers.count) } }

    /// Returns why observers or callers are not quiet; `nil` if they can only go on by a command.
    ///
    /// Counts them at both ends: callers as open and as waiting or working, observers as joined and as waiting for a state, and timers as
    /// set and as due.
    func unrest(of keys: [LiveKey], clearing: Int = 0, observers: Int, now: MonotonicInstant) -> String? {
        let here = counts
        // A registered caller that is not suspended yet would not notice its cancellation at once.
        let waiting = keys.reduce(clearing) { sum, key in
            // A worker of the prefetch queue waits like a caller but is not counted.
            sum + key.callers.count { $0.value.suspendedCount > 0 && key.machine.desk.callers[$0.key] != .prefetch }
                + (key.callerGroup?.result.suspendedCount ?? 0)
        }
        if here.0 != waiting + here.1 { return "callers: \(here.0) open, \(waiting) waiting, \(here.1) working" }
        let joined = keys.flatMap { $0.observers.all }
        if here.2 != observers || joined.count != observers { return "observers: \(here.2) of \(observers), \(joined.count) joined" }
        if joined.contains(where: { $0.suspension == nil }) { return "observers: one has a state to take" }
        return keys.contains { $0.timer.map { $0.deadline <= now } ?? false } ? "timers: one is due" : nil
    }

    /// Runs a call and records its result.
    func call(_ id: Int, _ body: @escaping @Sendable () async throws -> String) -> Task<Void, Never> {
        state.update { $0.open += 1 }
        return Task { [state] in
            let result: String
            do { result = try await body() } catch { result = "\(type(of: error))" }
            state.update { state in
                state.results[id] = result
                state.open -= 1
            }
        }
    }

    /// The work of a mutation, which runs until the test ends it.
    func perform(_ id: Int) async throws {
        state.update { _ = $0.performing.insert(id) }
        let succeeds = try await state.wait { $0.ends[id] }
        if !succeeds { throw Offline() }
    }

    func end(_ id: Int, succeeds: Bool) {
        state.update { state in
            state.performing.remove(id)
            state.ends[id] = succeeds
        }
    }

    /// Observes a sequence and records a summary of each state.
    func observe(
        _ id: Int, _ sequence: LoadingStateSequence<[Int]>, _ summary: @escaping @Sendable (LoadingState<[Int]>) -> String
    ) -> Task<Void, Never> {
        state.update { _ = $0.observers.insert(id) }
        return Task { [state] in
            for await seen in sequence {
                state.update { state in
                    state.seen[id] = summary(seen)
                    if seen.content?.contains(Self.poison) == true { state.sawPoison = true }
                }
            }
            state.update { _ = $0.observers.remove(id) }
        }
    }
}
