package import StoreCore

/// A cacher in memory that records every call, holds calls at a gate, and fails on request.
package final class GatedCacher<Param: Hashable & Sendable, Content: Sendable>: Cacher {
    package typealias Record = CacheRecord<Content>

    package enum Operation: Hashable, Sendable, CaseIterable { case load, save, remove, removeAll }

    /// A recorded call; `param` is `nil` for `removeAll`.
    package struct Call: Sendable {
        package var number: Int
        package var operation: Operation
        package var param: Param?
        package var content: Content?
    }

    package struct Broken: Error {}

    private struct State: Sendable {
        var records: [Param: Record] = [:]
        var calls: [Call] = []
        var begun = 0
        var ended = 0
        var held: [Int: CheckedContinuation<(any Error)?, Never>] = [:]
        var holding: Set<Operation> = []
        var failing: Set<Operation> = []
        var busy: Set<Param> = []
        var isEmptying = false
        /// The violations of the guarantees that a store gives to a cacher.
        var breaches: [String] = []
    }

    package let expiry: Expiry
    private let desk = WatchedState(State())
    private let listsKeys: Bool
    private let recordsCalls: Bool

    package init(expiry: Expiry = .never, listsKeys: Bool = true, recordsCalls: Bool = true) {
        self.expiry = expiry
        self.listsKeys = listsKeys
        self.recordsCalls = recordsCalls
    }

    // MARK: Control by the test

    package func hold(_ operations: Operation...) { desk.update { $0.holding.formUnion(operations) } }
    package func fail(_ operations: Operation...) { desk.update { $0.failing.formUnion(operations) } }
    package func recover() { desk.update { $0.failing = [] } }

    package func put(_ record: Record, param: Param) { desk.update { $0.records[param] = record } }
    package func record(of param: Param) -> Record? { desk.read { $0.records[param] } }
    package var storedCount: Int { desk.read { $0.records.count } }

    package var calls: [Call] { desk.read { $0.calls } }
    package func calls(_ operation: Operation) -> [Call] { calls.filter { $0.operation == operation } }
    package var breaches: [String] { desk.read { $0.breaches } }
    package var heldNumbers: [Int] { desk.read { $0.held.keys.sorted() } }
    package var runningCount: Int { desk.read { $0.begun - $0.ended } }

    /// Waits until the given number of calls of an operation have begun.
    package func began(_ operation: Operation, count: Int = 1) async throws {
        try await desk.wait { $0.calls.count { $0.operation == operation } >= count ? () : nil }
    }

    /// Waits until a call of the operation is held, and releases the oldest one.
    package func releaseNext(_ operation: Operation, failing: Bool = false) async throws {
        let desk = desk
        let number = try await desk.wait { desk in desk.held.keys.sorted().first { desk.calls[$0 - 1].operation == operation } }
        release(number, failing: failing)
    }

    package func release(_ number: Int, failing: Bool = false) {
        desk.update { $0.held.removeValue(forKey: number) }?.resume(returning: failing ? Broken() : nil)
    }

    /// Opens the gate permanently and releases all held calls.
    package func release() {
        let waiting = desk.update { desk in
            desk.holding = []
            defer { desk.held = [:] }
            return Array(desk.held.values)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    // MARK: Cacher

    package func load(param: Param) async throws -> Record? { try await run(.load, param) { $0.records[param] } }

    package func save(_ record: Record, param: Param) async throws {
        try await run(.save, param, record.content) { $0.records[param] = record }
    }

    package func remove(param: Param) async throws { try await run(.remove, param) { $0.records[param] = nil } }

    package func removeAll() async throws { try await run(.removeAll, nil) { $0.records = [:] } }

    package func keys() async throws -> [Param]? {
        desk.update { desk -> [Param]? in
            if desk.isEmptying { desk.breaches.append("keys during removeAll") }
            return listsKeys ? Array(desk.records.keys) : nil
        }
    }

    private func run<Result: Sendable>(
        _ operation: Operation, _ param: Param?, _ content: Content? = nil, _ body: (inout State) -> Result
    ) async throws -> Result {
        let number = begin(operation, param, content)
        let fault = await withCheckedContinuation { continuation in
            let ruling: (any Error)?? = desk.update { desk in
                if desk.holding.contains(operation) {
                    desk.held[number] = continuation
                    return nil
                }
                return .some(desk.failing.contains(operation) ? Broken() : nil)
            }
            if let ruling { continuation.resume(returning: ruling) }
        }
        return try desk.update { desk -> Swift.Result<Result, any Error> in
            desk.ended += 1
            if let param { desk.busy.remove(param) } else { desk.isEmptying = false }
            if let fault { return .failure(fault) }
            return .success(body(&desk))
        }.get()
    }

    private func begin(_ operation: Operation, _ param: Param?, _ content: Content?) -> Int {
        let (isCancelled, recordsCalls) = (Task.isCancelled, recordsCalls)
        return desk.update { desk in
            if let param {
                if !desk.busy.insert(param).inserted { desk.breaches.append("two calls at once for \(param): \(operation)") }
            } else {
                if !desk.busy.isEmpty { desk.breaches.append("removeAll during calls for \(desk.busy)") }
                if desk.isEmptying { desk.breaches.append("removeAll during removeAll") }
                desk.isEmptying = true
            }
            if param != nil, desk.isEmptying { desk.breaches.append("\(operation) during removeAll") }
            if isCancelled { desk.breaches.append("\(operation) was canceled") }
            desk.begun += 1
            guard recordsCalls else { return desk.begun }
            desk.calls.append(Call(number: desk.begun, operation: operation, param: param, content: content))
            return desk.begun
        }
    }
}
