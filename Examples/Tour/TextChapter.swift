import Foundation
import LoopbackOrigin
import StoreCore
import TextStore

/// A versioned text: bundled 1.0.0 gives way to 1.1.0 while somebody looks on, and stays when the origin is gone.
struct TextChapter {
    let stage: Stage
    let bookshop: Bookshop
    let directory: URL

    func run() async throws {
        stage.chapter("A text goes from bundled 1.0.0 to remote 1.1.0, and stays without network")
        bookshop.publishTerms()
        let bundle = try makeBundle()
        let texts = try makeStore(bundle)
        try await texts.register(terms)
        await texts.setVersionSource(versions)
        var observer = ShownObserver(texts.publish(terms), on: stage, describe: Self.describe)
        let first = try await observer.follow { $0.content != nil }
        stage.check("what came with the app is there at once", first.content?.version == SemanticVersion("1.0.0"))
        let newest = try await observer.follow { $0.isCompleted && $0.content?.version == SemanticVersion("1.1.0") }
        stage.check("then what the origin has, with its digest checked", newest.content?.isVerified == true)
        bookshop.origin.goDown()
        stage.note("down; the program starts again")
        let later = try makeStore(bundle)
        try await later.register(terms)
        await later.setVersionSource(versions)
        let kept = try await later.text(for: terms)
        stage.check("the newer one is there without network", kept.version == SemanticVersion("1.1.0"))
        try bookshop.origin.comeBack()
    }

    private var terms: TextSource {
        TextSource(identifier: "terms", bundleFile: BundleFile(fileName: "terms", fileExtension: "txt"))
    }

    private var versions: VersionSource {
        VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
            remoteFile: RemoteFile(url: bookshop.origin.url.appending(path: "texts/versions.json"), mediaTypes: ["application/json"]))
    }

    private func makeStore(_ bundle: Bundle) throws -> TextStore {
        try TextStore(session: "tour", directory: directory.appending(path: "texts"), bundle: bundle)
    }

    /// What the app was delivered with.
    private func makeBundle() throws -> Bundle {
        let place = directory.appending(path: "bundle")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        try Data("A book is yours for two weeks.".utf8).write(to: place.appending(path: "terms.txt"))
        try Data(#"{ "terms": "1.0.0" }"#.utf8).write(to: place.appending(path: "versions.json"))
        guard let bundle = Bundle(path: place.path(percentEncoded: false)) else { throw CocoaError(.fileNoSuchFile) }
        return bundle
    }

    private static func describe(_ text: VersionedText) -> String {
        "\(text.version?.description ?? "no version") from the \(text.origin.rawValue): \(text.text)"
    }
}
