internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import StoreCore
internal import Testing
internal import TextStore
internal import Trials

// The examples of TextStore's articles and docstrings; those that need only a directory and a loopback origin run.

let legalServer = URL(filePath: "/").appending(path: "legal")

enum Legal: String, TextSourceProvider, CaseIterable {
    case eula, privacy

    var textSource: TextSource {
        TextSource(
            identifier: rawValue,
            bundleFile: BundleFile(fileName: rawValue, fileExtension: "txt"),
            remoteFile: RemoteFile(
                url: legalServer.appending(path: "\(rawValue).txt")))
    }
}

struct RoutedTextFetcher: RevalidatingFetcher {
    let host: RemoteHost

    func fetch(
        param file: RemoteFile, revalidating validator: Validator?
    ) async throws -> FetchResult<RemoteText> {
        var route = Route(
            path: "/\(segments: file.url.pathComponents.dropFirst())")
        route.options.responseLimit = file.limit
        for (name, value) in file.headers { route.headers.append(name, value) }
        if file.caching == .revalidated {
            route.headers.append("Cache-Control", "no-cache")
        }
        if let tag = validator?.entityTag {
            route.headers.append("If-None-Match", tag)
        }
        if let date = validator?.lastModified {
            route.headers.append("If-Modified-Since", date)
        }
        do {
            let response = try await host.dataResponse(for: route)
            let headers = Dictionary(
                response.fields.fields.map { ($0.name, $0.value) }
            ) { $0 + ", " + $1 }
            let text = RemoteText(
                bytes: response.value,
                contentType: response.fields["Content-Type"], headers: headers)
            let known = Validator(
                entityTag: response.fields["ETag"],
                lastModified: response.fields["Last-Modified"])
            return .modified(text, .unspecified, known)
        } catch let error as RemoteError where error.status == 304 {
            return .notModified()
        }
    }
}

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
            let versions = VersionSource(
                bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
                remoteFile: RemoteFile(url: legalServer.appending(path: "versions.json")))
            let texts = try TextStore(
                session: "legal", directory: directory, bundle: bundle)
            try await texts.register(Legal.allCases)
            await texts.setVersionSource(versions)

            let here = try await texts.text(for: Legal.eula)
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
                let terms = try await texts.text(
                    for: Legal.eula, awaiting: .remote(timeout: .seconds(2)))
                if await texts.needsAcceptance(of: terms, granularity: .major) {
                    try await ask(terms)
                    try await texts.accept(terms)
                }
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
        let old = SemanticVersion("1.9.0")
        let new = SemanticVersion("1.10.0-rc.1+build.5")
        let odd = SemanticVersion("v1.0.001", mode: .lenient)  // described as written
        #expect(odd?.description == "v1.0.001")
        if let old, let new { #expect(old < new) }
    }
}

// Compiled, but not run.

/// A trailing closure receives events, because `onEvent` is the only closure parameter of the initializer.
private func logging(directory: URL, bundle: Bundle) throws {
    let logging = try TextStore(
        session: "legal", directory: directory, bundle: bundle
    ) { event in
        if case .fault(let fault) = event { print(fault) }
    }
    let typed = try TextStore(session: "legal") { (_: TextStoreEvent) in }
    print(logging, typed)
}

private struct Forged: Error {}

private func verifying(isSigned: @escaping @Sendable ([UInt8], String?) -> Bool) throws {
    let verifier = TextVerifier { verification in
        guard isSigned(verification.bytes, verification.headers["x-signature"])
        else { throw Forged() }
    }
    let texts = try TextStore(session: "legal", verify: verifier)
    print(texts)
}

private func identifiers(_ texts: TextStore) async throws {
    print(try await texts.text(for: "eula"), texts.publish("eula"))
}

private func waiting(_ texts: TextStore) async throws {
    let newest = try await texts.text(
        for: Legal.eula, awaiting: .remote(timeout: .seconds(2)))
    print(newest)
    let text = try await texts.text(
        for: Legal.eula, awaiting: .remote(timeout: .seconds(2)))
    if let reason = text.fallbackReason {
        let version = text.version?.description ?? "a text without version"
        print("showing \(version): \(reason.code.rawValue)")
    }
    for await state in texts.publish(Legal.eula) {
        print(
            state.content?.version?.description ?? "none",
            state.isLoading ? "and looking for a newer one" : "")
    }
}

private func sets(directory: URL, bundle: Bundle) async throws {
    let summary = TextSource(
        identifier: "summary",
        remoteFile: RemoteFile(url: legalServer.appending(path: "summary.txt")),
        group: "legal")
    let details = TextSource(
        identifier: "details",
        remoteFile: RemoteFile(url: legalServer.appending(path: "details.txt")),
        group: "legal")
    var policy = TextStorePolicy()
    policy.activation = .manually
    let store = try TextStore(
        session: "legal", directory: directory, bundle: bundle, policy: policy)
    try await store.register([summary, details])
    let hasSwitched = try await store.activate()
    print(hasSwitched)
}

private func policies() {
    var policy = TextStorePolicy()
    policy.activation = .atNextLaunch
    policy.checkInterval = .seconds(3600)
    policy.acceptedEpoch = 1
    print(policy)
}

private func fetchers() throws {
    let texts = try TextStore(
        session: "legal", fetcher: HTTPTextFetcher(deadline: .seconds(10)))
    print(texts)
}

private func sources(base: URL) {
    let eula = TextSource(
        identifier: "eula",
        bundleFile: BundleFile(fileName: "eula", fileExtension: "txt"),
        remoteFile: RemoteFile(url: base.appending(path: "eula.txt")))
    print(eula)
}

private func providers() {
    enum Legal: String, TextSourceProvider, CaseIterable {
        case eula, privacy

        var textSource: TextSource {
            TextSource(
                identifier: rawValue,
                bundleFile: BundleFile(fileName: rawValue, fileExtension: "txt"))
        }
    }
    print(Legal.allCases)
}

private func store(eula: TextSource, versions: VersionSource, render: (LoadingState<VersionedText>) -> Void) async throws {
    let texts = try TextStore(session: "legal")
    try await texts.register(eula)
    await texts.setVersionSource(versions)

    let now = try await texts.text(for: eula)  // from memory, without waiting
    let newest = try await texts.text(
        for: eula, awaiting: .remote(timeout: .seconds(2)))
    for await state in texts.publish(eula) { render(state) }
    print(now, newest)
}
