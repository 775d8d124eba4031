internal import Foundation
internal import StoreCore
import StoreCoreTesting
internal import Testing
import Trials
internal import TextStore

// The examples of the article on testing.

@Suite(.timeLimit(.minutes(hangMinutes)))
struct TermsTests {
    //: TestingWithTexts.md: let time = ManualTime

    //: TestingWithTexts.md: func start(_

    @Test func `new terms need another acceptance`() async throws {
        try await withBundle { bundle, directory in
            //: TestingWithTexts.md: let bundled = try
        }
    }

    @Test func `a slow server does not delay the caller beyond the timeout`() async throws {
        try await withBundle { bundle, directory in
            //: TestingWithTexts.md: async let waiting
        }
    }

    @Test func `a fetched text is available after a restart without a server`() async throws {
        try await withBundle { bundle, directory in
            //: TestingWithTexts.md: try await start
        }
    }
}
