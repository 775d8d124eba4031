internal import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore

/// Tests the states and results that observers and callers get for each record in the cacher.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachineReadingTests {
    @Test(arguments: [
        Play("nothing", holds: .nothing, events: [.join, .read], shows: "loading(nothing)", begins: 1),
        Play("valid", events: [.join, .read], shows: "completed(old)"),
        Play("expired", holds: .expired, events: [.join, .read], shows: "loading(old)", begins: 1),
        Play("invalidated", holds: .invalidated, events: [.join, .read], shows: "loading(old)", begins: 1),
        Play("unreadable", events: [.join, .read(succeeds: false)], shows: "loading(nothing)", begins: 1),
        Play("not read yet", events: [.join], shows: "no state"),
        Play("forced", events: [.force, .read], shows: "loading(old)", begins: 1),
        Play("a second observer of valid content", events: [.join, .read, .join], shows: "completed(old)"),
        Play("a second observer, forcing", events: [.join, .read, .force], shows: "loading(old)", begins: 1),
        Play("a second observer while a fetch runs", events: [.force, .read, .join], shows: "loading(old)"),
        Play("a second observer after a failure", events: [.force, .read, .failed, .join], shows: "loading(old)", begins: 1),
    ])
    func `C2, C3, C8: an observer first sees the cached content, and a fetch if it is not valid`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        Play("both, valid", events: [.arrive(.content), .read], shows: "no state", answers: ["old"]),
        Play("both, expired", holds: .expired, events: [.arrive(.content), .read], shows: "loading(old)", begins: 1),
        Play("both, nothing", holds: .nothing, events: [.arrive(.content), .read], shows: "loading(nothing)", begins: 1),
        Play("both, invalidated", holds: .invalidated, events: [.arrive(.content), .read], shows: "loading(old)", begins: 1),
        Play("both, unreadable", events: [.arrive(.content), .read(succeeds: false)], shows: "loading(nothing)", begins: 1),
        Play("cache, valid", events: [.arrive(.cached), .read], shows: "no state", answers: ["old"]),
        Play("cache, expired", holds: .expired, events: [.arrive(.cached), .read], shows: "no state", answers: ["noValidCache"]),
        Play("cache, nothing", holds: .nothing, events: [.arrive(.cached), .read], shows: "no state", answers: ["noValidCache"]),
        Play("cache, unreadable", events: [.arrive(.cached), .read(succeeds: false)], shows: "no state", answers: ["error"]),
        Play("origin, valid", events: [.arrive(.origin), .read], shows: "loading(old)", begins: 1),
        Play("validate, valid", events: [.arrive(.freshness), .read], shows: "no state", answers: ["done"]),
        Play("validate, expired", holds: .expired, events: [.arrive(.freshness), .read], shows: "loading(old)", begins: 1),
        Play("refresh, valid", events: [.arrive(.refresh), .read], shows: "loading(old)", begins: 1),
        Play("both, valid, while a refresh runs", events: [.force, .read, .arrive(.content)], shows: "loading(old)", answers: ["old"]),
        Play("origin, while a refresh runs", events: [.force, .read, .arrive(.origin)], shows: "loading(old)"),
    ])
    func `C1, C3: a caller gets valid content at once and otherwise waits for a fetch`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        Play("both, modified", holds: .nothing, events: [.arrive(.content), .read, .fetched], shows: "completed(new)", answers: ["new"]),
        Play("both, failure", holds: .expired, events: [.arrive(.content), .read, .failed], shows: "no state", answers: ["error"]),
        Play(
            "both, failure while still valid", events: [.force, .read, .arrive(.origin), .failed], shows: "error(old)", answers: ["error"]),
        Play(
            "all callers", holds: .expired, events: [.join, .arrive(.content), .arrive(.origin), .arrive(.freshness), .read, .fetched],
            shows: "completed(new)", answers: ["done", "new", "new"]),
        Play("refresh waits for the save", events: [.join, .read, .arrive(.refresh), .fetched], shows: "completed(new)"),
        Play(
            "refresh is done with the save", events: [.join, .read, .arrive(.refresh), .fetched, .saved], shows: "completed(new)",
            answers: ["done"]),
        Play(
            "refresh fails with the save", events: [.join, .read, .arrive(.refresh), .fetched, .saved(succeeds: false)],
            shows: "completed(new)", answers: ["error"]),
        Play(
            "refresh is done when its fetch fails", events: [.join, .read, .arrive(.refresh), .failed], shows: "error(old)",
            answers: ["done"]),
    ])
    func `C4, C6: the end of a fetch resumes every caller waiting for it, and a failure keeps the content`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        Play(
            "served at once during a refresh", holds: .expired, events: [.arrive(.content), .read], shows: "loading(old)", answers: ["old"],
            begins: 1),
        Play(
            "that fetch continues after its caller returned", holds: .expired, events: [.arrive(.content), .read, .tick, .tick, .fetched],
            shows: "completed(new)"),
        Play(
            "not served after the window", holds: .expired, events: [.tick, .tick, .arrive(.content), .read], shows: "loading(old)",
            begins: 1),
        Play("not served when invalidated", holds: .invalidated, events: [.arrive(.content), .read], shows: "loading(old)", begins: 1),
        Play("not served for `.cache`", holds: .expired, events: [.arrive(.cached), .read], shows: "no state", answers: ["noValidCache"]),
        Play(
            "served instead of an error", holds: .expired, events: [.join, .arrive(.content), .read, .failed, .arrive(.content)],
            shows: "loading(old)", answers: ["old"], begins: 1),
    ])
    func `C3: stale content is served only within the window that the policy allows`(play: Play) {
        play.run(.table(policy: StorePolicy(staleWhileRevalidate: .seconds(1))))
    }

    @Test(arguments: [
        Play("an observer", events: [.force, .read, .failed, .tick, .tick, .join], shows: "error(old)"),
        Play("both", holds: .nothing, events: [.force, .read, .failed, .arrive(.content)], shows: "error(nothing)", answers: ["error"]),
        Play(
            "validate", holds: .nothing, events: [.force, .read, .failed, .arrive(.freshness)], shows: "error(nothing)", answers: ["done"]),
        Play("a forcing observer fetches", events: [.force, .read, .failed, .force], shows: "loading(old)", begins: 1),
        Play("`.origin` fetches", events: [.force, .read, .failed, .arrive(.origin)], shows: "loading(old)", begins: 1),
        Play("refresh fetches", events: [.force, .read, .failed, .arrive(.refresh)], shows: "loading(old)", begins: 1),
        Play(
            "after the error expired", holds: .nothing, events: [.force, .read, .failed, .tick, .tick, .tick, .arrive(.content)],
            shows: "loading(nothing)", begins: 1),
    ])
    func `C12: a failure holds off automatic fetches but not explicit ones`(play: Play) {
        play.run(.table(policy: StorePolicy(errorExpiry: .seconds(3))))
    }

    /// A list whose record is read while it is updated.
    private struct UpdatedList {
        struct Unreadable: Error {}

        var machine: KeyMachine<[Int]>
        private var tickets = TicketCounter()

        init(isShared: Bool) {
            let list = ElementIdentity<Int>.none.rules(isTwoWay: false)
            let position: @Sendable () -> Revision = { .none }
            machine = KeyMachine(rules: KeyRules(list: list, position: isShared ? position : nil))
        }

        /// Plays an event and returns whether it publishes a state.
        @discardableResult
        mutating func play(_ event: (inout KeyMachine<[Int]>, inout KeyMachine<[Int]>.Transition) -> Void) -> Bool {
            var transition = KeyMachine<[Int]>.Transition(time: ManualTime(), tickets: tickets)
            event(&machine, &transition)
            tickets = transition.tickets
            return transition.isPublished
        }

        /// Ends the running read.
        @discardableResult
        mutating func endRead(succeeds: Bool) throws -> Bool {
            let ticket = try #require(machine.origin.reading)
            let record = CacheRecord(content: [1], fetchedAt: Date(timeIntervalSince1970: 100), nextKey: "n")
            let held = HeldRecord(record, deadline: .distantFuture)
            return play { $0.cacheReadFinished(ticket, succeeds ? .success(held) : .failure(Unreadable()), &$1) }
        }
    }

    @Test func `C13: observers of an updated list see that it has more pages once its record was read`() throws {
        var list = UpdatedList(isShared: false)
        list.play { $0.observerJoined(forceRefresh: false, &$1) }
        list.play { $0.updated([5], &$1) }
        #expect(list.machine.additionalState(.next) == .fixed(canRequestAdditionalData: false))
        let isPublished = try list.endRead(succeeds: true)
        #expect(isPublished)
        #expect(list.machine.additionalState(.next) == .fixed(canRequestAdditionalData: true))
    }

    @Test func `C13, D4: a list that is updated after failed reads gets the page keys of its record`() throws {
        var list = UpdatedList(isShared: true)
        // An invalidation that cannot be saved, and a change of another user that cannot be read.
        list.play { $0.invalidated(&$1) }
        try list.endRead(succeeds: false)
        list.play { $0.changedElsewhere(Revision(number: 1, writer: 2), &$1) }
        try list.endRead(succeeds: false)
        try list.endRead(succeeds: false)
        // The record is read again for the invalidation.
        list.play { $0.otherKeyWasSaved(&$1) }
        list.play { $0.updated([5], &$1) }
        try list.endRead(succeeds: true)
        #expect(list.machine.content == [5] && list.machine.pageKey(.next) == "n")
    }
}
