internal import Foundation
internal import StoreCore
import StoreCoreTesting
internal import Testing
import Trials
internal import TextStore

// The examples of the article on testing.

@Suite(.timeLimit(.minutes(hangMinutes)))
struct TermsTests {
    let time = ManualTime()
    let server = ScriptedFetcher<RemoteFile, RemoteText> { request in
        switch request.param.url.lastPathComponent {
        case "versions.json":
            .success(
                RemoteText(
                    bytes: Data(#"{ "eula": "2.0.0" }"#.utf8),
                    contentType: "application/json"))
        case "eula.txt":
            .success(
                RemoteText(
                    bytes: Data("Be kinder.".utf8), contentType: "text/plain"))
        default: .failure(Offline())
        }
    }

    func start(_ bundle: Bundle, _ directory: URL) async throws -> TextStore {
        let texts = try TextStore(
            session: "legal", directory: directory, bundle: bundle, fetcher: server,
            time: time)
        try await texts.register(Legal.eula)
        await texts.setVersionSource(
            VersionSource(
                bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
                remoteFile: RemoteFile(
                    url: legalServer.appending(path: "versions.json"))))
        return texts
    }

    @Test func `new terms need another acceptance`() async throws {
        try await withBundle { bundle, directory in
            server.hold()
            let texts = try await start(bundle, directory)
            let bundled = try await texts.text(for: Legal.eula)
            #expect(bundled.text == "Be kind.")
            try await texts.accept(bundled)
            #expect(await !texts.needsAcceptance(of: bundled, granularity: .major))

            server.release()
            try await texts.refresh()
            let newest = try await texts.text(for: Legal.eula)
            #expect(newest.text == "Be kinder.")
            #expect(await texts.needsAcceptance(of: newest, granularity: .major))
        }
    }

    @Test func `a slow server does not delay the caller beyond the timeout`() async throws {
        try await withBundle { bundle, directory in
            server.hold()
            let texts = try await start(bundle, directory)
            async let waiting = texts.text(
                for: Legal.eula, awaiting: .remote(timeout: .seconds(2)))
            try await time.sleepers(atLeast: 1)
            time.advance(by: .seconds(2))

            let shown = try await waiting
            #expect(shown.text == "Be kind.")
            #expect(shown.fallbackReason?.code == .timedOut)
        }
    }

    @Test func `a fetched text is available after a restart without a server`() async throws {
        try await withBundle { bundle, directory in
            try await start(bundle, directory).refresh()

            server.hold()
            let texts = try await start(bundle, directory)
            #expect(try await texts.text(for: Legal.eula).text == "Be kinder.")
        }
    }
}
