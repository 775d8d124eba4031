internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import SyncEngine
internal import Testing
internal import TextStore

/// The defaults in the articles.
struct DefaultsTests {
    @Test func `StoreCore has the defaults of the table in RefreshingAndExpiring`() {
        let policy = StorePolicy()
        #expect(policy.staleWhileRevalidate == .zero && policy.staleIfError == .zero && policy.errorExpiry == .zero)
        #expect(!policy.revalidatesOnExpiry && policy.minimumInterval == .seconds(1))
        #expect(policy.retry.attempts <= 1 && policy.unwantedFetch == .cancel(after: .seconds(1)) && policy.refreshScope == .firstPage)
        #expect(StorePolicy.shortestInterval == .milliseconds(100) && policy.prefetchWidth == 8)
        #expect(policy.revalidatesAfterMutation)
        #expect(policy.fetchWidth == nil && policy.fetchTimeLimit == nil && policy.staleAfter == nil && policy.expiryJitter == 0)
        #expect(policy.fetchContext == .detached && policy.leaseDuration == .seconds(30))
        #expect(policy.idleTimeout == nil && policy.saveInterval == .seconds(1))
        #expect(MemoryCacher<Int, Int>().expiry == .never)
        let retry = RetryPolicy.exponential(attempts: 3)
        #expect(retry.base == .milliseconds(200) && retry.multiplier == 2 && retry.cap == .seconds(30))
    }

    @Test func `a memory cacher keeps ten thousand entries`() async throws {
        let cacher = MemoryCacher<Int, Int>()
        let store = Store(cacher: cacher) { $0 }
        for key in 0...10_000 { await store[key].update(key) }
        #expect(await cacher.keys()?.count == 10_000)
    }

    @Test func `RemoteRouting has the defaults of ErrorsAndRetries and SecurityNotes`() {
        let host = RemoteHost("api.example.com")
        #expect(host.timeouts == .init(head: .seconds(30), idle: .seconds(30), overall: .seconds(120)))
        #expect(host.retry.attempts == 3 && !host.allowsInsecureCredentials)
        #expect(HostLimits().responseBytes == 16 * 1024 * 1024 && HostLimits().redirects == 20)
    }

    @Test func `TextStore and SyncEngine have the defaults of their articles`() {
        #expect(TextStorePolicy().checkInterval == .seconds(15 * 60) && TextStorePolicy().activation == .immediately)
        #expect(TextStorePolicy().revisionJump == 100_000_000 && TextStorePolicy().acceptedEpoch == 0)
        let options = SyncOptions()
        #expect(options.removalLimit == .share(0.5) && options.retry.attempts == 3 && options.stopsOnError)
        #expect(options.removalTiming == .afterDownloads && options.localEdits == .overwrite && options.duplicates == .refuse)
    }
}
