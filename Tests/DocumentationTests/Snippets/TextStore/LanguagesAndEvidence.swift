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

//: Languages.md: func localized

//: Evidence.md: func marked(_

//: Rollouts.md

//: Publishing.md: struct SignedFetcher

private func make(_ policy: TextStorePolicy) -> TextStorePolicy {
    var policy = policy
    //: Languages.md: policy.acceptedLanguages
    return policy
}

#if canImport(CryptoKit)
func signedBy(_ pem: String) throws -> TextVerifier {
    struct Forged: Error {}
    //: Publishing.md: let key = try
    return verifier
}
#endif

func published(at server: URL) -> (TextSource, VersionSource) {
    //: Publishing.md: let terms = TextSource
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
        //: Languages.md: try await texts
        #expect(eula.language == "de" && eula.text == "Terms in de")
    }

    @Test func `acceptances are kept, compared, exported, and withdrawn`() async throws {
        let (directory, bundle) = (place.url, bundle), server = legalServer
        //: Evidence.md: let texts = try
        try await texts.register(localized("eula", at: server))
        try await texts.setLanguages(["de"])
        //: Evidence.md: let eula = try
        try await texts.setLanguages(["en"])
        //: Evidence.md: if let accepted
        let accepted = try #require(try await texts.acceptance(of: "eula", account: "ada"))
        #expect(try await texts.changes(since: accepted).isEmpty)
        let words = TextDifference(from: "Terms in de", to: "Terms in en").lines.compactMap { line in
            if case .changed(let words) = line { marked(words) } else { nil }
        }
        #expect(words == ["Terms in [-de-]{+en+}"])
        //: Evidence.md: try await texts
        //: Evidence.md: let lines = try
        #expect(String(decoding: lines, as: UTF8.self).split(separator: "\n").count == 2)
        #expect(String(decoding: table, as: UTF8.self).split(separator: "\r\n").count == 3)
    }

    @Test func `the docstrings' examples compile`() async throws {
        //: TextLanguages.swift
        let texts = try TextStore(session: "docs", directory: place.url, bundle: bundle)
        try await texts.register(eula)
        //: AcceptanceRecord.swift
        //: TextDifference.swift
        //: Rollout.swift
        #expect(audience.appVersion?.major == 3)
        #expect(change.lines == [.same("one"), .removed("two"), .added("three")])
    }
}
