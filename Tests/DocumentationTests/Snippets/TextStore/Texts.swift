internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import StoreCore
internal import Testing
internal import TextStore
internal import Trials

// The examples of TextStore's articles and docstrings; those that need only a directory and a loopback origin run.

let legalServer = URL(filePath: "/").appending(path: "legal")

//: TextStore.docc/GettingStarted.md: enum Legal: String

//: TextStore.docc/GettingStarted.md: struct RoutedTextFetcher

/// Provides a bundle with two texts and a directory for the session.
func withBundle<Result>(_ body: (_ bundle: Bundle, _ directory: URL) async throws -> Result) async throws -> Result {
    let place = temporaryURL()
    let bundle = place.appending(path: "bundle")
    try FileManager.default.createDirectory(at: bundle, withIntermediateDirectories: true)
    try Data("Be kind.".utf8).write(to: bundle.appending(path: "eula.txt"))
    try Data("We know nothing.".utf8).write(to: bundle.appending(path: "privacy.txt"))
    try Data(#"{ "eula": "1.0.0", "privacy": "2.1.0" }"#.utf8).write(to: bundle.appending(path: "versions.json"))
    return try await body(try #require(Bundle(path: bundle.path())), place.appending(path: "state"))
}

struct TextArticleTests {
    @Test func `a bundled text is available at once`() async throws {
        try await withBundle { bundle, directory in
            //: TextStore.docc/GettingStarted.md: let versions
            //: TextStore.docc/GettingStarted.md: let texts = try
            #expect(here.text == "Be kind." && here.version == SemanticVersion("1.0.0"))
            // Without a server the refresh fails. Waiting for it keeps its save from racing with the directory's removal.
            await #expect(throws: TextStoreError.self) { try await texts.refresh() }
        }
    }

    @Test func `a gate asks for acceptance once`() async throws {
        try await withBundle { bundle, directory in
            let asked = Printed()
            func ask(_ terms: VersionedText) async throws { asked.add(terms.text) }
            let texts = try TextStore(session: "legal", directory: directory, bundle: bundle)
            try await texts.register(TextSource(identifier: "eula", bundleFile: BundleFile(fileName: "eula", fileExtension: "txt")))
            for _ in 1...2 {
                //: GatingOnAcceptance.md
            }
            #expect(asked.lines == ["Be kind."])
        }
    }

    @Test func `a RemoteRouting host fetches texts`() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on(.get, "/legal/eula.txt") { request in .text("Be kinder.").tagged().revalidated(by: request) }
        let fetcher = RoutedTextFetcher(host: RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port))))
        let file = RemoteFile(url: origin.url.appending(path: "legal/eula.txt"))
        guard case .modified(let text, _, let validator?) = try await fetcher.fetch(param: file, revalidating: nil) else {
            Issue.record("the response has no text or no validator")
            return
        }
        #expect(text.bytes == Data("Be kinder.".utf8))
        var keyed = file
        keyed.headers = ["X-API-Key": "key"]
        guard case .notModified = try await fetcher.fetch(param: keyed, revalidating: validator) else {
            Issue.record("an unchanged text was sent again")
            return
        }
        #expect(origin.requests.map { $0.headers["Cache-Control"] } == ["no-cache", "no-cache"])
        #expect(origin.requests.map { $0.headers["X-API-Key"] } == [nil, "key"])
    }

    @Test func `versions compare by precedence`() {
        //: VersionsAndManifests.md: let old = SemanticVersion
        #expect(odd?.description == "v1.0.001")
        if let old, let new { #expect(old < new) }
    }
}

// Compiled, but not run.

/// A trailing closure receives events, because `onEvent` is the only closure parameter of the initializer.
private func logging(directory: URL, bundle: Bundle) throws {
    //: TextStore.docc/GettingStarted.md: let logging = try
    let typed = try TextStore(session: "legal") { (_: TextStoreEvent) in }
    print(logging, typed)
}

private struct Forged: Error {}

private func verifying(isSigned: @escaping @Sendable ([UInt8], String?) -> Bool) throws {
    //: SecurityNotes.md
    print(texts)
}

private func identifiers(_ texts: TextStore) async throws {
    print(try await texts.text(for: "eula"), texts.publish("eula"))
}

private func waiting(_ texts: TextStore) async throws {
    //: TextStore.docc/GettingStarted.md: let newest = try
    print(newest)
    //: OfflineAndFallback.md
    //: TextStore.docc/GettingStarted.md: for await state
}

private func sets(directory: URL, bundle: Bundle) async throws {
    //: ConsistentSets.md: let summary = TextSource
    //: ConsistentSets.md: var policy = TextStorePolicy
    print(hasSwitched)
}

private func policies() {
    //: TextStorePolicy.swift
    //: VersionsAndManifests.md: policy.acceptedEpoch
    print(policy)
}

private func fetchers() throws {
    //: HTTPTextFetcher.swift
    print(texts)
}

private func sources(base: URL) {
    //: TextSource.swift: let eula = TextSource
    print(eula)
}

private func providers() {
    //: TextSource.swift: enum Legal: String
    print(Legal.allCases)
}

private func store(eula: TextSource, versions: VersionSource, render: (LoadingState<VersionedText>) -> Void) async throws {
    //: TextStore.swift
    print(now, newest)
}
