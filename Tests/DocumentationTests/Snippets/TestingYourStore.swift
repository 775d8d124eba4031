internal import Foundation
internal import StoreCore
import StoreCoreTesting
internal import Testing

//: TestingYourStore.md: @Suite struct UserRefreshTests

extension UserRefreshTests {
    //: TestingYourStore.md: @Test func `a failure keeps

    //: TestingYourStore.md: @Test func `a thousand

    @Test func `retries wait as long as the policy says`() async throws {
        var policy = StorePolicy()
        policy.retry = .exponential(attempts: 2, base: .seconds(1))
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: fetcher, policy: policy, time: time)
        fetcher.enqueue(.failure(URLError(.timedOut)), .success("Ada"))

        //: TestingYourStore.md: async let user
    }
}

@Suite struct ModelTests {
    let fetcher = ScriptedFetcher<Int, String>()
    let users: Store<Int, String>

    init() {
        users = Store(cacher: MemoryCacher(), fetcher: fetcher)
    }

    //: TestingYourStore.md: @Test func `a screen shows

    //: TestingYourStore.md: @Test func `the cacher
}

@Suite struct GreetingTests {
    //: TestingYourStore.md: @Test func `a greeting
}

//: TestingYourStore.md: final class Greeting
