import StoreCore
import StoreTrials
import Trials

/// A random history of a store, which is compared with a model after every step.
protocol RandomHistory {
    /// The steps so far, for the message of a failure.
    var steps: [String] { get }

    init(seed: UInt64, _ backing: Backing)

    /// Runs the history, and leaves no task waiting, however it ends.
    mutating func run() async throws
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
