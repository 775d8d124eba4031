import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T9: unversioned texts, which are refreshed by their age.
struct ExpiryTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private var notes: TextSource { bench.notes }

    private var statuses: [Int?] { bench.origin.requests(to: "/notes.txt").map(\.status) }

    private func store() throws -> TextStore { try bench.store(policy: TextStorePolicy(textExpiry: .seconds(3600))) }

    /// Collects the completed and failed states of an observer.
    private func observe(_ store: TextStore, _ seen: WatchedState<[String]>) -> Task<Void, Never> {
        Task { [notes] in
            for await state in store.publish(notes) {
                switch state {
                case .completed(let text, _, _): seen.update { $0.append(text.text) }
                case .error(let error, _): seen.update { $0.append((error as? TextStoreError)?.code.rawValue ?? "\(error)") }
                case .loading: break
                }
            }
        }
    }

    /// Starts a store whose text is observed.
    private func observed() async throws -> (TextStore, WatchedState<[String]>, Task<Void, Never>) {
        bench.serve("notes", "Notes 1")
        let store = try store(), seen = WatchedState<[String]>([])
        try await store.register(notes)
        let observing = observe(store, seen)
        try await seen.wait { $0 == ["Notes 1"] ? () : nil }
        return (store, seen, observing)
    }

    @Test func `T9: an observed unversioned text is refreshed whenever it expires, and not before`() async throws {
        let (_, seen, observing) = try await observed()
        defer { observing.cancel() }
        for (number, expected) in [[200, 304], [200, 304, 304]].enumerated() {
            try await bench.time.advance(by: .seconds(3599), sleepers: 1)
            #expect(statuses.count == number + 1)
            bench.time.advance(by: .seconds(1))
            try await seen.wait { $0.count == number + 2 ? () : nil }
            #expect(statuses == expected)
        }
        bench.serve("notes", "Notes 2")
        try await bench.time.advance(by: .seconds(3600), sleepers: 1)
        try await seen.wait { $0.last == "Notes 2" ? () : nil }
        #expect(seen.current == ["Notes 1", "Notes 1", "Notes 1", "Notes 2"])
    }

    @Test func `T9: an expired text whose refresh fails is retried after a pause, and shown meanwhile`() async throws {
        let (store, seen, observing) = try await observed()
        defer { observing.cancel() }
        bench.origin.on(.get, "/notes.txt", inTurn: .status(503), .text("Notes 2"))
        try await bench.time.advance(by: .seconds(3600), sleepers: 1)
        try await seen.wait { $0.last == "unexpectedStatus" ? () : nil }
        #expect(try await store.text(for: notes).text == "Notes 1")
        try await bench.time.advance(by: .seconds(5), sleepers: 1)
        try await seen.wait { $0.last == "Notes 2" ? () : nil }
    }

    @Test func `T9: an unobserved text is not refreshed until the next read`() async throws {
        let (store, _, observing) = try await observed()
        try await bench.time.sleepers(atLeast: 1)
        observing.cancel()
        try await store.session.wait { $0.observers.isEmpty ? () : nil }
        bench.time.advance(by: .seconds(7200))
        try await store.session.wait { $0.timer == nil ? () : nil }
        #expect(store.session.read { $0.flights.isEmpty })
        #expect(try await store.text(for: notes, awaiting: patient).text == "Notes 1")
        #expect(statuses == [200, 304])
    }

    @Test func `T2: a text that is observed before its registration is fetched at registration`() async throws {
        bench.serve("notes", "Notes 1")
        let store = try store()
        let seen = WatchedState<[String]>([])
        let observing = observe(store, seen)
        defer { observing.cancel() }
        try await seen.wait { $0 == ["unknownIdentifier"] ? () : nil }
        try await store.register(notes)
        try await seen.wait { $0.last == "Notes 1" ? () : nil }
    }

    @Test func `T9: setting the clock back a year refreshes a text once, not at every read`() async throws {
        bench.serve("notes", "Notes 1")
        try await store().register(notes)
        let first = try store()
        try await first.register(notes)
        _ = try await first.text(for: notes, awaiting: patient)
        bench.time.shiftDate(by: .seconds(-365 * 86_400))
        let store = try store()
        try await store.register(notes)
        for _ in 0..<5 { #expect(try await store.text(for: notes, awaiting: patient).text == "Notes 1") }
        #expect(statuses == [200, 304])
        bench.time.advance(by: .seconds(3600))
        _ = try await store.text(for: notes, awaiting: patient)
        #expect(statuses == [200, 304, 304])
    }

    @Test(arguments: [TextStorePolicy.Activation.manually, .atNextLaunch], [false, true])
    func `T9: an unversioned text that waits for its activation is refreshed by its age, not at every read`(
        activation: TextStorePolicy.Activation, hasOlder: Bool
    ) async throws {
        bench.serve("notes", "Notes 1")
        if hasOlder {
            let first = try store()
            try await first.register(notes)
            _ = try await first.text(for: notes, awaiting: patient)
            bench.time.advance(by: .seconds(3600))
            bench.serve("notes", "Notes 2")
        }
        let store = try bench.store(policy: TextStorePolicy(activation: activation, textExpiry: .seconds(3600)))
        try await store.register(notes)
        // Without an older text, none can be shown before the activation.
        for _ in 0..<5 { _ = try? await store.text(for: notes, awaiting: patient) }
        #expect(statuses.count == (hasOlder ? 2 : 1))
        bench.time.advance(by: .seconds(3600))
        for _ in 0..<5 { _ = try? await store.text(for: notes, awaiting: patient) }
        #expect(statuses.count == (hasOlder ? 3 : 2))
        // A waiting text in the future says nothing about its age.
        bench.time.shiftDate(by: .seconds(-365 * 86_400))
        for _ in 0..<5 { _ = try? await store.text(for: notes, awaiting: patient) }
        #expect(statuses.count == (hasOlder ? 4 : 3))
    }

    @Test func `T9: a check that could not be saved is not repeated at every read`() async throws {
        bench.serve("notes", "Notes 1")
        let store = try store()
        try await store.register(notes)
        _ = try await store.text(for: notes, awaiting: patient)
        // A file in place of the directory prevents every save.
        try FileManager.default.removeItem(at: bench.place.file("state"))
        try Data().write(to: bench.place.file("state"))
        bench.time.advance(by: .seconds(3600))
        for _ in 0..<3 { #expect(try await store.text(for: notes, awaiting: patient).text == "Notes 1") }
        #expect(statuses == [200, 304])
    }
}
