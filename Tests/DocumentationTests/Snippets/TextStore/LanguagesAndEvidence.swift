internal import Foundation
internal import LoopbackOrigin
internal import StoreCore
internal import Testing
internal import TextStore
internal import Trials

#if canImport(CryptoKit)
internal import CryptoKit
#endif

// The examples of the articles about languages and evidence, run with a directory and an origin that is down.

func localized(_ name: String, at server: URL) -> TextSource {
    var files: [String: TextLanguages.Files] = [:]
    for tag in ["en", "de", "fr"] {
        files[tag] = TextLanguages.Files(
            bundleFile: BundleFile(
                fileName: "\(name)-\(tag)", fileExtension: "txt"),
            remoteFile: RemoteFile(
                url: server.appending(path: "\(name)-\(tag).txt")))
    }
    return TextSource(
        identifier: name,
        languages: TextLanguages(files, development: "en"))
}

func marked(_ words: [TextDifference.Word]) -> String {
    words.map { word in
        switch word {
        case .same(let text): text
        case .removed(let text): "[-\(text)-]"
        case .added(let text): "{+\(text)+}"
        }
    }.joined()
}

func versions(at server: URL) -> VersionSource {
    VersionSource(
        bundleFile: BundleFile(
            fileName: "versions", fileExtension: "json"),
        remoteFile: RemoteFile(
            url: server.appending(path: "versions.json")),
        audience: TextAudience(
            appVersion: SemanticVersion("3.1", mode: .lenient),
            platform: "ios"))
}

private func make(_ policy: TextStorePolicy) -> TextStorePolicy {
    var policy = policy
    policy.acceptedLanguages = .together
    return policy
}

#if canImport(CryptoKit)
func signedBy(_ pem: String) throws -> TextVerifier {
    struct Forged: Error {}
    let key = try P256.Signing.PublicKey(pemRepresentation: pem)
    let verifier = TextVerifier { verification in
        // The digests of a signed manifest cover the texts that it lists.
        if verification.identifier != nil, verification.version != nil { return }
        let field = verification.headers["x-signature"] ?? ""
        guard let bytes = Data(base64Encoded: field),
            let signature = try? P256.Signing.ECDSASignature(
                derRepresentation: bytes),
            key.isValidSignature(signature, for: Data(verification.bytes))
        else { throw Forged() }
    }
    return verifier
}
#endif

func published(at server: URL) -> (TextSource, VersionSource) {
    let terms = TextSource(identifier: "eula")
    let manifest = VersionSource(
        remoteFile: RemoteFile(url: server.appending(path: "versions.json")))
    return (terms, manifest)
}

struct LanguagesAndEvidenceTests {
    private let place: TemporaryDirectory
    private let bundle: Bundle

    init() throws {
        place = try TemporaryDirectory()
        let folder = place.url.appending(path: "app.bundle", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for tag in ["en", "de", "fr"] { try Data("Terms in \(tag)".utf8).write(to: folder.appending(path: "eula-\(tag).txt")) }
        bundle = try #require(Bundle(url: folder))
    }

    @Test func `a text in several languages is shown in the preferred one`() async throws {
        let (directory, bundle) = (place.url, bundle), server = legalServer
        let texts = try TextStore(session: "languages", directory: directory, bundle: bundle, policy: make(TextStorePolicy()))
        try await texts.register(localized("eula", at: server))
        try await texts.setLanguages(["de-AT", "fr"])
        let eula = try await texts.text(for: "eula")
        print(eula.language ?? "", eula.version?.description ?? "")
        #expect(eula.language == "de" && eula.text == "Terms in de")
    }

    @Test func `acceptances are kept, compared, exported, and withdrawn`() async throws {
        let (directory, bundle) = (place.url, bundle), server = legalServer
        let texts = try TextStore(
            session: "evidence", directory: directory, bundle: bundle,
            policy: TextStorePolicy(evidence: .allAcceptances))
        try await texts.register(localized("eula", at: server))
        try await texts.setLanguages(["de"])
        let eula = try await texts.text(for: "eula")
        if await texts.needsAcceptance(of: eula, account: "ada") {
            try await texts.accept(eula, account: "ada")
        }
        try await texts.setLanguages(["en"])
        if let accepted = try await texts.acceptance(of: "eula", account: "ada") {
            for line in try await texts.changes(since: accepted).lines {
                switch line {
                case .same(let text): print("  \(text)")
                case .removed(let text): print("- \(text)")
                case .added(let text): print("+ \(text)")
                case .changed(let words): print("~ \(marked(words))")
                }
            }
        }
        let accepted = try #require(try await texts.acceptance(of: "eula", account: "ada"))
        #expect(try await texts.changes(since: accepted).isEmpty)
        let words = TextDifference(from: "Terms in de", to: "Terms in en").lines.compactMap { line in
            if case .changed(let words) = line { marked(words) } else { nil }
        }
        #expect(words == ["Terms in [-de-]{+en+}"])
        try await texts.withdrawAcceptances(of: "eula", account: "ada")
        let lines = try await texts.exportAcceptances(as: .jsonLines)
        let table = try await texts.exportAcceptances(as: .csv)
        #expect(String(decoding: lines, as: UTF8.self).split(separator: "\n").count == 2)
        #expect(String(decoding: table, as: UTF8.self).split(separator: "\r\n").count == 3)
    }

    @Test func `the docstrings' examples compile`() async throws {
        let languages = TextLanguages(
            [
                "en": TextLanguages.Files(bundleFile: BundleFile(fileName: "eula-en")),
                "de": TextLanguages.Files(bundleFile: BundleFile(fileName: "eula-de")),
            ], development: "en")
        let eula = TextSource(identifier: "eula", languages: languages)
        let texts = try TextStore(session: "docs", directory: place.url, bundle: bundle)
        try await texts.register(eula)
        for record in try await texts.acceptanceRecords() {
            print(record.acceptance.date, record.kind, record.acceptance.identifier)
        }
        let change = TextDifference(from: "one\ntwo", to: "one\nthree")
        for line in change.lines {
            switch line {
            case .same(let text): print("  \(text)")
            case .removed(let text): print("- \(text)")
            case .added(let text): print("+ \(text)")
            case .changed(let words): print("~ \(words)")
            }
        }
        let audience = TextAudience(
            appVersion: SemanticVersion("3.1", mode: .lenient), platform: "ios")
        #expect(audience.appVersion?.major == 3)
        #expect(change.lines == [.same("one"), .removed("two"), .added("three")])
    }
}
