import Foundation
import StoreCore

/// A cacher that keeps records in memory, writes every call down, holds calls at a gate, and fails on command.
final class GatedCacher<Param: Hashable & Sendable, Content: Sendable>: Cacher {
    typealias Record = CacheRecord<Content>

    enum Operation: Hashable, Sendable, CaseIterable { case load, save, remove, removeAll }

    /// One call; `param` is `nil` for `removeAll`.
    struct Call: Sendable {
        var number: Int
        var operation: Operation
        var param: Param?
        var content: Content?
    }

    struct Broken: Error {}

    private struct Desk: Sendable {
        var records: [Param: Record] = [:]
        var calls: [Call] = []
        var begun = 0
        var ended = 0
        var held: [Int: CheckedContinuation<(any Error)?, Never>] = [:]
        var holding: Set<Operation> = []
        var failing: Set<Operation> = []
        var busy: Set<Param> = []
        var isEmptying = false
        /// What an author may rely on and a store did not keep.
        var breaches: [String] = []
    }

    let expiry: Expiry
    private let desk = WatchedState(Desk())
    private let listsKeys: Bool
    private let writesDown: Bool

    init(expiry: Expiry = .never, listsKeys: Bool = true, writesDown: Bool = true) {
        self.expiry = expiry
        self.listsKeys = listsKeys
        self.writesDown = writesDown
    }

    // MARK: What a test says and asks

    func hold(_ operations: Operation...) { desk.update { $0.holding.formUnion(operations) } }
    func fail(_ operations: Operation...) { desk.update { $0.failing.formUnion(operations) } }
    func recover() { desk.update { $0.failing = [] } }

    func put(_ record: Record, param: Param) { desk.update { $0.records[param] = record } }
    func record(of param: Param) -> Record? { desk.read { $0.records[param] } }
    var storedCount: Int { desk.read { $0.records.count } }

    var calls: [Call] { desk.read { $0.calls } }
    func calls(_ operation: Operation) -> [Call] { calls.filter { $0.operation == operation } }
    var breaches: [String] { desk.read { $0.breaches } }
    var heldNumbers: [Int] { desk.read { $0.held.keys.sorted() } }
    var runningCount: Int { desk.read { $0.begun - $0.ended } }

    /// Waits until so many calls of a kind have begun.
    func began(_ operation: Operation, count: Int = 1) async throws {
        try await desk.wait { $0.calls.count { $0.operation == operation } >= count ? () : nil }
    }

    /// Waits until a call of the kind is held, and lets the oldest such go.
    func releaseNext(_ operation: Operation, failing: Bool = false) async throws {
        let desk = desk
        let number = try await desk.wait { desk in
            desk.held.keys.sorted().first { desk.calls[$0 - 1].operation == operation }
        }
        release(number, failing: failing)
    }

    func release(_ number: Int, failing: Bool = false) {
        desk.update { $0.held.removeValue(forKey: number) }?.resume(returning: failing ? Broken() : nil)
    }

    /// Opens the gate for good.
    func release() {
        let waiting = desk.update { desk in
            desk.holding = []
            defer { desk.held = [:] }
            return Array(desk.held.values)
        }
        for continuation in waiting { continuation.resume(returning: nil) }
    }

    // MARK: Cacher

    func load(param: Param) async throws -> Record? {
        try await run(.load, param) { $0.records[param] }
    }

    func save(_ record: Record, param: Param) async throws {
        try await run(.save, param, record.content) { $0.records[param] = record }
    }

    func remove(param: Param) async throws {
        try await run(.remove, param) { $0.records[param] = nil }
    }

    func removeAll() async throws {
        try await run(.removeAll, nil) { $0.records = [:] }
    }

    func keys() async throws -> [Param]? {
        desk.update { desk -> [Param]? in
            if desk.isEmptying { desk.breaches.append("keys beside removeAll") }
            return listsKeys ? Array(desk.records.keys) : nil
        }
    }

    private func run<Result: Sendable>(
        _ operation: Operation, _ param: Param?, _ content: Content? = nil, _ body: (inout Desk) -> Result
    ) async throws -> Result {
        let number = begin(operation, param, content)
        let fault = await withCheckedContinuation { continuation in
            let answer: (any Error)?? = desk.update { desk in
                if desk.holding.contains(operation) {
                    desk.held[number] = continuation
                    return nil
                }
                return .some(desk.failing.contains(operation) ? Broken() : nil)
            }
            if let answer { continuation.resume(returning: answer) }
        }
        return try desk.update { desk -> Swift.Result<Result, any Error> in
            desk.ended += 1
            if let param { desk.busy.remove(param) } else { desk.isEmptying = false }
            if let fault { return .failure(fault) }
            return .success(body(&desk))
        }.get()
    }

    private func begin(_ operation: Operation, _ param: Param?, _ content: Content?) -> Int {
        let (isCancelled, writesDown) = (Task.isCancelled, writesDown)
        return desk.update { desk in
            if let param {
                if !desk.busy.insert(param).inserted { desk.breaches.append("two calls at once for \(param): \(operation)") }
            } else {
                if !desk.busy.isEmpty { desk.breaches.append("removeAll beside calls for \(desk.busy)") }
                if desk.isEmptying { desk.breaches.append("removeAll beside removeAll") }
                desk.isEmptying = true
            }
            if param != nil, desk.isEmptying { desk.breaches.append("\(operation) beside removeAll") }
            if isCancelled { desk.breaches.append("\(operation) was cancelled") }
            desk.begun += 1
            guard writesDown else { return desk.begun }
            desk.calls.append(Call(number: desk.begun, operation: operation, param: param, content: content))
            return desk.begun
        }
    }
}
